"""A scripted upstream of all three dialects that fails on demand: `headwater simulate`, `testing.Simulator`."""
