"""The native API: runs, sessions and the rest, under `/api`. `api.Native` is all of it."""
