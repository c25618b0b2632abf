"""What is said to whoever stopped a run."""

from typing import Literal

from msgspec import Struct

from headwater.events import Interrupted, Outcome, Stopped
from headwater.lifecycle import RunState
from headwater.records import Run
from headwater.runs.live import LiveRun


class StopAnswer(Struct, frozen=True):
    run: Run
    """As it stands now: ended, or, where its worker has not confirmed in time, not yet."""
    first: bool
    """Nobody had asked before, and it had not ended."""
    upstream_closed: bool | Literal["unknown"]

    @property
    def caused_by_this_call(self) -> bool:
        return self.caused(self.run.outcome)

    def caused(self, outcome: Outcome | None) -> bool:
        """Whoever asked first has caused it, also while nobody has confirmed it; not if it ended otherwise."""
        return self.first and (outcome is None or isinstance(outcome, Stopped))


def upstream_closed(run: Run, before: Run, live: LiveRun | None) -> bool | Literal["unknown"]:
    """`before`: as it was when the stop was asked for; `live`: if it is this worker's."""
    if before.state is not RunState.RUNNING:
        return True
    if run.outcome is None:
        return False
    if live is not None:
        return live.upstream_closed
    return "unknown" if isinstance(run.outcome, Interrupted) else True
