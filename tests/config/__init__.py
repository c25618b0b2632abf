"""Configuration: files, the environment, flags, and all that can be wrong with them."""
