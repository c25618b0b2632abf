"""What all runs of a worker share, and what they are made from."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from headwater.clock import Clock
from headwater.records import Run
from headwater.runs.observing import Nobody, Observer
from headwater.source import Source
from headwater.store.base import Store
from headwater.store.results import Started

MakeSource = Callable[[Run], Awaitable[Source]]
"""What a run pumps. Asked once the session's lock is held; raises `CallerError`."""


class Habits(Struct, frozen=True, kw_only=True):
    """What all runs of a worker share."""

    store: Store
    clock: Clock
    make_id: Callable[[str], str]
    """A new id with this prefix."""
    tail_bytes: int = 64 * 1024
    unwind_s: float = 5.0
    """For so long a source that was cancelled may clean up; then it is left to itself."""
    begin_next: Callable[[Started], object] = lambda _: None
    """The next run of a queue is this worker's, and running: nobody else will begin it."""
    observer: Observer = Nobody()
    torn_down: Callable[[], bool] = lambda: False
    """All that this process does was cancelled: that is no ending, and the next one finds it so."""
