"""What may be done to runs and sessions, and what follows: written once, for every engine."""
