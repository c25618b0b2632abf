"""Runs: generations that are owned by one worker, committed before they are shown, and ended exactly once."""
