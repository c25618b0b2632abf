"""What every dialect has: request in, request out, decode, encode, and its endings.

A dialect is a module with the functions of `Dialect`; `headwater.dialects`
names them all.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct, field

from headwater.conversation import Ask, Assistant, Opaque, Request, Target
from headwater.errors import CallerError
from headwater.events import DialectName, Event, FailureStyle, Outcome, Usage
from headwater.judge import Evidence
from headwater.mould import Around
from headwater.sse import Frame

STOP: Final = "headwater.stop"
"""Ours, in an opaque item's `type`: what an upstream said of the end of its answer that only its own dialect has."""

NOT_CARRIED: Final = "not_carried"
"""The code of a `Notice` that says what a pairing of dialects could not carry."""

CONTINUED: Final = "continued"
"""The code of a `Notice` that says that an answer was cut off and goes on in a new message."""

NOTED: Final = frozenset((NOT_CARRIED, CONTINUED, "context_trimmed"))
"""The codes of what becomes a note in a client's answer (`headwater.notes`)."""


class Head(Struct, frozen=True):
    """What every part of an answer repeats, derived from its run."""

    run_id: str
    created: int
    """Unix seconds."""
    model: str
    """As the client named it."""
    echo: dict[str, Any] = field(default_factory=dict)
    """See `Ask.echo`; an answer without it says what the dialect has as defaults."""


class Whole(Struct, frozen=True):
    """An answer in one piece."""

    status: int
    body: bytes


def noted(notes: Sequence[str]) -> dict[str, Any]:
    """The field of a successful answer that is not its dialect's: there only if there is something to note (C66)."""
    return {"headwater": {"notes": list(dict.fromkeys(notes))}} if notes else {}


def stops(message: Assistant, dialect: DialectName) -> list[dict[str, Any]]:
    """What upstreams of this dialect said of the ends of their answers: of each turn, and of each that was cut."""
    told = [part.data for part in message.parts if isinstance(part, Opaque) and part.dialect == dialect]
    return [data for data in told if data.get("type") == STOP]


class Note(Struct, frozen=True):
    """Something that a client asked for and that the upstream is not told, or not in the same words."""

    field: str
    """As the conversation names it, not the client's dialect."""
    text: str
    refuse: bool = False
    """The answer would be to another question: better none."""


class Decoder(Protocol):
    """Upstream frames to events, for one attempt."""

    @property
    def evidence(self) -> Evidence: ...

    def feed(self, frame: Frame, out: list[Event]) -> None:
        """Append what the frame brings. Raises `FrameUnreadable`."""

    def whole(self, body: bytes, out: list[Event]) -> None:
        """An answer that came in one piece. Raises `FrameUnreadable`."""

    def end(self, out: list[Event]) -> None:
        """There are no more frames: append what was waiting for that."""

    def around_text(self, data: bytes) -> Around | None:
        """What stands before and after the text in this data, which was the last that was fed.

        Only if data that has another text there (and, before it, another number of the frame), and is else the same,
        would bring just that text, and have no other effect than what `said` does. None: don't know.
        """


class Encoder(Protocol):
    """Events to client frames, for one answer."""

    def encode(self, event: Event) -> bytes:
        """The frames for an event, `RunEnded` included; often none."""

    def around_text(self) -> tuple[bytes, bytes] | None:
        """What is to stand before and after the JSON string's inside of the next text, and of all that follow it.

        Only while a text has no other effect than its frame. None: it is to be encoded.
        """


class Dialect(Protocol):
    @property
    def name(self) -> DialectName: ...

    def parse(self, body: bytes) -> Ask:
        """A client's request. Raises `CallerError`."""

    def render(self, request: Request, target: Target) -> bytes:
        """The JSON that an upstream is asked with."""

    def decoder(self, call_id_prefix: str) -> Decoder:
        """`call_id_prefix` begins the ids of calls that the upstream gave none."""

    def encoder(self, head: Head, *, include_usage: bool, style: FailureStyle) -> Encoder: ...

    def whole(self, head: Head, message: Assistant, usage: Usage, outcome: Outcome, notes: Sequence[str] = ()) -> Whole:
        """The answer for a client that did not ask for a stream, whatever the outcome."""

    def error(self, error: CallerError) -> Whole:
        """A refusal of ours, in the dialect's own shape."""
