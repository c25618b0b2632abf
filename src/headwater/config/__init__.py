"""What can be set, where each value came from, and what is wrong with it."""
