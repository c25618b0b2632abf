"""Whoever wants to know how runs go without being part of them (metrics, logs), and which run this task works for.

Told once a run, never once a token. An observer changes nothing: what it raises is the event loop's to report.
"""

from contextvars import ContextVar
from typing import Final, Protocol

from headwater.events import Outcome
from headwater.records import Run

CURRENT: Final[ContextVar[Run | None]] = ContextVar("headwater.run", default=None)
"""The run that a task belongs to. Not for callbacks of a connection: those are of the run that has opened it."""


def ids(run: Run) -> dict[str, str | None]:
    """For every line that a log has of it."""
    return {"run_id": run.id, "session_id": run.session_id}


def told(outcome: Outcome) -> tuple[str, str]:
    """How it ended, and why: words of ours, and never an upstream's."""
    return type(outcome).__name__.lower(), outcome.reason


class Observer(Protocol):
    def ended(self, run: Run, stopped_in_s: float | None) -> None:
        """Its end is kept. `stopped_in_s`: from the stop that was asked for to the moment its source was closed."""

    def recovered(self, run: Run) -> None:
        """Its worker was dead, and this one has ended it."""


class All:
    """Several as one."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def ended(self, run: Run, stopped_in_s: float | None) -> None:
        for observer in self._observers:
            observer.ended(run, stopped_in_s)

    def recovered(self, run: Run) -> None:
        for observer in self._observers:
            observer.recovered(run)


class Nobody:
    def ended(self, run: Run, stopped_in_s: float | None) -> None:
        pass

    def recovered(self, run: Run) -> None:
        pass
