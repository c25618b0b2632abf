"""What can be set, and where each value came from."""
