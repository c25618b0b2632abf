"""Exit codes, for scripts: how the run ended, or why there was none. In docs/cli.md, too."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NoReturn

import typer

if TYPE_CHECKING:
    from headwater.events import Outcome

COMPLETED: Final = 0
FAILED: Final = 1
USAGE: Final = 2
INCOMPLETE: Final = 3
STOPPED: Final = 4
INTERRUPTED: Final = 5
NO_SERVER: Final = 6
TERMINAL_LOST: Final = 129
CTRL_C: Final = 130
PIPE_CLOSED: Final = 141
TERMINATED: Final = 143

MEANINGS: Final = {
    COMPLETED: "done; the run was completed",
    FAILED: "the run failed; or the command did, at something that is not your mistake",
    USAGE: "wrong arguments, a wrong configuration, or a request that the server refuses",
    INCOMPLETE: "the answer is not whole: a token limit, a content filter, a limit of turns",
    STOPPED: "the run was stopped, by you or by somebody else",
    INTERRUPTED: "the server went away under the run",
    NO_SERVER: "there is no server that answers, and none can be started here",
    TERMINAL_LOST: "its terminal was closed (SIGHUP); the run goes on",
    CTRL_C: "left with Ctrl-C",
    PIPE_CLOSED: "whoever read the output has gone",
    TERMINATED: "it was told to end (SIGTERM); the run goes on",
}

BY_OUTCOME: Final = {
    "completed": COMPLETED,
    "failed": FAILED,
    "incomplete": INCOMPLETE,
    "stopped": STOPPED,
    "interrupted": INTERRUPTED,
}

BY_SIGNAL: Final = {"SIGHUP": TERMINAL_LOST, "SIGTERM": TERMINATED}


def code_of(outcome: "Outcome") -> int:
    return BY_OUTCOME[str(outcome.__struct_config__.tag)]


def worst(codes: Iterable[int]) -> int:
    """Of several runs: the first of these that there is."""
    found = set(codes)
    order = (FAILED, INTERRUPTED, INCOMPLETE, STOPPED)
    return next((code for code in order if code in found), COMPLETED)


def leave(message: str, code: int = USAGE) -> NoReturn:
    typer.echo(f"headwater: {message}", err=True)
    raise typer.Exit(code)
