"""A scripted upstream of all three dialects that fails on demand: `headwater simulate`, `testing.Simulator`.

Here are the values that a script is made of.
"""

from headwater.simulate.script import (
    Answer,
    BadChunk,
    BadJson,
    BadUtf8,
    Call,
    Cut,
    Fault,
    Fin,
    Http,
    HugeFrame,
    Pace,
    Raw,
    Reasoning,
    Reset,
    Scenario,
    Script,
    Stall,
    StreamError,
    Usage,
    Writes,
)

__all__ = [
    "Answer",
    "BadChunk",
    "BadJson",
    "BadUtf8",
    "Call",
    "Cut",
    "Fault",
    "Fin",
    "Http",
    "HugeFrame",
    "Pace",
    "Raw",
    "Reasoning",
    "Reset",
    "Scenario",
    "Script",
    "Stall",
    "StreamError",
    "Usage",
    "Writes",
]
