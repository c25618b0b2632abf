"""What a client of a dialect is told of a run: as a stream, as the rest of one, or in one piece.

Pure. The endings are the dialects' own; what is decided here is which status goes with them.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Opaque, Reasoning, Text, ToolCall
from headwater.dialects import endings, messages
from headwater.dialects.base import NOT_CARRIED, NOTED, Dialect, Encoder, Head, Whole
from headwater.dialects.carry import MAY_BE_UNSAID, unsaid
from headwater.events import DialectName, Event, Notice, Outcome, RunEnded, TextDelta, Usage
from headwater.server.direct import Headers

_json = msgspec.json.encode

JSON: Final = (b"content-type", b"application/json")
SSE: Final = (b"content-type", b"text/event-stream; charset=utf-8")
NO_RETRY: Final = (b"x-should-retry", b"false")
"""A model was asked, and that was paid for: clients that try again by themselves should not."""

_SEAM: Final = Opaque("responses", {"type": "message"})
"""Says no more than that another message begins."""
_BEATS: Final[dict[DialectName, bytes]] = {
    "chat": b": keep-alive\n\n",
    "responses": b": keep-alive\n\n",
    "messages": messages.ping(),
}


class Remarks(Struct):
    """What a dialect has no words for, each thing once."""

    dialect: DialectName
    made: list[str] = []

    def fresh(self, event: Event) -> Notice | None:
        why = unsaid(event, self.dialect)
        if why is None or why in self.made:
            return None
        self.made.append(why)
        return Notice(NOT_CARRIED, why)


class After:
    """The rest of a stream of which the client has had so many frames."""

    def __init__(self, encoder: Encoder, frames: int) -> None:
        self._encoder = encoder
        self._had = frames

    def around_text(self) -> None:
        return None

    def encode(self, event: Event) -> bytes:
        body = self._encoder.encode(event)
        while self._had and body:
            body = body.partition(b"\n\n")[2]
            self._had -= 1
        return body


class Streamed:
    """An `Answer` as it comes. Refused before anything was said, it is one piece with the status of that (C64)."""

    def __init__(self, dialect: Dialect, head: Head, encoder: Encoder, *, refusable: bool = True) -> None:
        """Not `refusable`: the stream was there before, and is only looked at again."""
        self._dialect = dialect
        self._head = head
        self._encode = encoder.encode
        self._around_text = encoder.around_text
        self._remarks = Remarks(dialect.name)
        self._status = 200
        self._begun = not refusable
        self.beat = _BEATS[dialect.name]

    @property
    def headers(self) -> Headers:
        return _headers(self._head, self._status, SSE if self._status == 200 else JSON)

    def begin(self) -> int:
        self._begun = True
        return self._status

    def around_text(self) -> tuple[bytes, bytes] | None:
        return self._around_text()

    def encode(self, events: Sequence[Event]) -> bytes:
        if len(events) == 1:
            # Nearly every read there is; and nearly each is a text.
            event = events[0]
            if type(event) is TextDelta and self._begun and not event.refusal:
                return self._encode(event)
            return self._one(event)
        pieces: list[bytes] = []
        plain: list[TextDelta] = []
        for event in events:
            if type(event) is TextDelta and not event.refusal:
                plain.append(event)
                continue
            if plain:
                pieces.append(self._texts(plain))
                plain = []
            pieces.append(self._one(event))
        if plain:
            pieces.append(self._texts(plain))
        return b"".join(pieces)

    def _texts(self, events: Sequence[TextDelta]) -> bytes:
        # What the first one is encoded to may be how all others go on.
        first = self._one(events[0])
        around = self._around_text() if len(events) > 1 and self._begun else None
        if around is None:
            return b"".join([first, *map(self._one, events[1:])])
        listed = _json([event.text for event in events[1:]])
        if b"\\" in listed:
            return b"".join([first, *map(self._encode, events[1:])])
        # No quote but those of the list: each comma between two is where a frame ends and the next begins.
        before, after = around
        return b"".join([first, before, listed[2:-2].replace(b'","', after + before), after])

    def _one(self, event: Event) -> bytes:
        if type(event) in MAY_BE_UNSAID and (remark := self._remarks.fresh(event)) is not None:
            self._encode(remark)
        if not self._begun and type(event) is RunEnded:
            self._status = endings.stream_status(event.outcome)
            if self._status != 200:
                return self._dialect.whole(self._head, Assistant(), Usage(), event.outcome).body
        body = self._encode(event)
        if body:
            # What was made will be sent, and what was sent had the status of a success.
            self._begun = True
        return body


class Gathered:
    """An `Answer` in one piece."""

    beat = b""

    def __init__(self, dialect: Dialect, head: Head) -> None:
        self._dialect = dialect
        self._head = head
        self._fold = Accumulator()
        self._remarks = Remarks(dialect.name)
        self._status = 0

    @property
    def headers(self) -> Headers:
        return _headers(self._head, self._status, JSON)

    def begin(self) -> int:
        return self._status

    def around_text(self) -> None:
        return None

    def encode(self, events: Sequence[Event]) -> bytes:
        for event in events:
            self._fold.apply(event)
            self._remarks.fresh(event)
        outcome = self._fold.outcome
        if outcome is None:
            return b""
        whole = self._whole(outcome)
        self._status = whole.status
        return whole.body

    def _whole(self, outcome: Outcome) -> Whole:
        noticed = [notice.text for notice in self._fold.notices if notice.code in NOTED]
        notes = [*noticed, *self._remarks.made]
        return self._dialect.whole(self._head, said(self._fold), self._fold.usage, outcome, notes)


def said(fold: Accumulator) -> Assistant:
    return joined(message for message in fold.messages() if isinstance(message, Assistant))


def joined(turns: Iterable[Assistant]) -> Assistant:
    """All turns as one message: that is what a dialect's answer is. Where one ends is told as it is in a stream."""
    parts: list[Text | Reasoning | ToolCall | Opaque] = []
    for turn in turns:
        parts += [_SEAM, *turn.parts] if parts and turn.parts else turn.parts
    return Assistant(tuple(parts))


def _headers(head: Head, status: int, content_type: tuple[bytes, bytes]) -> Headers:
    about = [content_type, (b"x-run-id", head.run_id.encode())]
    return about if status < 400 else [*about, NO_RETRY]
