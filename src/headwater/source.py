"""What a run pumps: a model turn, the agent loop, a user's own agent.

Only the agreement between the two sides. Events are pushed, not pulled: the socket's read callback
decodes them and hands them on, so that no task wakes for a token (docs/decisions/0002).
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from headwater.accumulate import Accumulator
from headwater.events import Event, Interrupted, Outcome, ReasoningDelta, Stopped, TextDelta


class Ended(Struct, frozen=True):
    outcome: Outcome
    last: Sequence[Event] = ()
    """What came with the end, in the fold and not taken yet: it is kept and shown as one with it."""


class Suspended(Struct, frozen=True):
    """It can't go on before somebody has answered; all that it needs to go on is in its log."""

    until: datetime | None = None


class Straight(Struct, frozen=True):
    """A way past `take` for a text that stands for itself in JSON: its bytes, between these, are written there."""

    before: bytes
    after: bytes
    write: Callable[[bytes], None]


class Sink(Protocol):
    @property
    def fold(self) -> Accumulator:
        """What the run's events amount to so far."""

    @property
    def stopping(self) -> Stopped | Interrupted | None:
        """Why the source is being cancelled: said before the cancel. None: nobody has asked for it."""

    def take(self, events: Sequence[Event]) -> None:
        """What one read has brought, already applied to `fold`. Not to be called once `run` is over."""

    @property
    def straight(self) -> Straight | None:
        """Where a plain text may go instead, if it may. To be asked for each: it is so until it is not."""

    async def kept(self) -> None:
        """Until all that was taken so far is committed. What can't be kept ends the run, and so cancels this."""


_WORDS: Final = (TextDelta, ReasoningDelta)


def emit(sink: Sink, *events: Event) -> None:
    fold = sink.fold
    taken: list[Event] = []
    for event in events:
        if isinstance(event, _WORDS) and not event.text.isascii():
            event = _mended(event)
        fold.apply(event)
        taken.append(event)
    sink.take(taken)


def _mended(event: TextDelta | ReasoningDelta) -> TextDelta | ReasoningDelta:
    """Half a character, which Python can hold and no wire can: a source that is not ours may well say one."""
    whole = event.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return event if whole == event.text else replace(event, text=whole)


class Source(Protocol):
    @property
    def unwind_s(self) -> float | None:
        """For so long it may clean up once it is cancelled. None: for as long as all may."""

    async def run(self, sink: Sink) -> Ended | Suspended:
        """Bring events until the end, which is the return value: no `RunEnded` is pushed.

        A stop is a cancel of the task that is in here: words that had arrived and were held back are pushed, the
        upstream's connection is closed, and then `CancelledError` comes out.
        """

    def pause(self) -> None:
        """Whoever reads is behind: bring nothing more for now. The silence that follows is no stall."""

    def resume(self) -> None: ...
