"""The states of a run, as a table. A pair that is not in it is a bug, and raises."""

from enum import Enum
from typing import Final

from headwater.events import Outcome


class RunState(Enum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    """For a person's approval; no worker holds it."""
    ENDED = "ended"


class Signal(Enum):
    CLAIMED = "claimed"
    """A worker takes it up, for the first time or again."""
    SUSPENDED = "suspended"
    """Its source can't go on before somebody has answered."""
    STOPPED = "stopped"
    """A stop was acted on."""
    FINISHED = "finished"
    """Its source gave an outcome."""
    ABANDONED = "abandoned"
    """Recovery found it without a living owner."""


TRANSITIONS: Final[dict[tuple[RunState, Signal], RunState]] = {
    (RunState.QUEUED, Signal.CLAIMED): RunState.RUNNING,
    (RunState.QUEUED, Signal.STOPPED): RunState.ENDED,
    (RunState.RUNNING, Signal.SUSPENDED): RunState.WAITING,
    (RunState.RUNNING, Signal.STOPPED): RunState.ENDED,
    (RunState.RUNNING, Signal.FINISHED): RunState.ENDED,
    (RunState.RUNNING, Signal.ABANDONED): RunState.ENDED,
    (RunState.WAITING, Signal.CLAIMED): RunState.RUNNING,
    (RunState.WAITING, Signal.STOPPED): RunState.ENDED,
}


class IllegalTransition(AssertionError):
    """Two parts of the program disagree about a run."""


def advance(state: RunState, signal: Signal) -> RunState:
    try:
        return TRANSITIONS[state, signal]
    except KeyError:
        raise IllegalTransition(f"a run that is {state.value} can't be {signal.value}") from None


def status(state: RunState, outcome: Outcome | None) -> str:
    """What the API shows: the state, or how it ended."""
    return state.value if outcome is None else str(outcome.__struct_config__.tag)
