"""Reads one attempt: its bytes in, its events and one outcome out.

Pure: the caller does the I/O and passes on what it read. Wires framing, the
dialect's decoder, the think splitter, the accumulator and the judge, in the
order in which a token passes them.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from headwater import sse
from headwater.accumulate import Accumulator
from headwater.dialects.base import Decoder
from headwater.dialects.nesting import SHALLOW_BYTES, is_deep_json
from headwater.errors import FrameTooLarge, FrameUnreadable
from headwater.events import Completed, Event, Failed, Notice, Outcome, TextDelta
from headwater.judge import Rules, Transport, judge
from headwater.mould import Mould
from headwater.think import ThinkSplitter

DEFAULT_LIMIT_BYTES: Final = 64 * 1024 * 1024
# OpenAI's is in no document of theirs: tests/wire/responses/keepalive.sse
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"
# To look at a frame by itself, and to learn from it, takes what ten frames take that are known by what was learned.
_OPENING: Final = 2
_FEW: Final = 4
_MANY: Final = 16
_STRETCHES: Final = 8
_FIRST: Final = (b"data: ", b"event: ")
KEEP_ALIVES: Final = frozenset({"ping", "keepalive"})


class TurnEnd(Struct, frozen=True):
    events: list[Event]
    """The last ones, which only the end has brought out."""
    outcome: Outcome


class TurnReader:
    """`feed` every read, until there is no more or it is `closed`; then `end`, once."""

    __slots__ = (
        "_accumulator",
        "_activity",
        "_body",
        "_decoder",
        "_evidence",
        "_frame_limit",
        "_frames",
        "_learned",
        "_limit",
        "_mould",
        "_room",
        "_rules",
        "_streaming",
        "_text_flows",
        "_think",
        "closed",
        "plain",
    )

    def __init__(
        self,
        decoder: Decoder,
        accumulator: Accumulator,
        *,
        rules: Rules = Rules(),
        think_tags: bool = True,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        frame_limit_bytes: int = sse.DEFAULT_LIMIT_BYTES,
    ) -> None:
        self._frames = sse.Decoder(frame_limit_bytes)
        self._decoder = decoder
        self._evidence = decoder.evidence
        self._think = ThinkSplitter() if think_tags else None
        self._text_flows = not think_tags
        """Text is text, and not the beginning of a tag."""
        self._accumulator = accumulator
        self._rules = rules
        self._limit = limit_bytes
        self._frame_limit = frame_limit_bytes
        self._room = limit_bytes
        self._streaming = False
        """An event stream has begun, and is not closed yet."""
        self._body: bytearray | None = None
        """An answer that is no event stream; the decoder may know what to make of it."""
        self._mould: Mould | None = None
        """What the next read may be like, as long as a token of that kind would change nothing but the text."""
        self._learned = 0
        self.plain: Callable[[bytes], str | None] = _unknown
        """The text of a read that is a token like the last, already accumulated: it stands for itself in JSON.

        None: it is to be fed. To be asked for each: it changes with what is fed.
        """
        self._activity = 0
        self.closed = False
        """Nothing that the upstream may still send can matter: stop reading."""

    def feed(self, data: bytes) -> list[Event]:
        """Take what was read; give the events that it brought, already accumulated."""
        text = self.plain(data)
        if text is not None:
            return [TextDelta(text)]
        if self._streaming and (self._mould is None or not self._mould.takes_several):
            return self._feed_any(data)
        events: list[Event] = []
        # Frames by themselves: what opens an answer and its first word, which tells what the others look like.
        singly = _OPENING if not self._streaming and data.startswith(_FIRST) else 0
        for _ in range(_STRETCHES):
            if self._mould is not None:
                texts, data = self._mould.take_some(data)
                events += [TextDelta(text) for text in texts]
                if not data:
                    return events
                # Behind many that are alike, what is not may well stand before as many again.
                singly = int(len(texts) >= _MANY)
            cut = data.find(b"\n\n") + 2
            if not singly or len(data) <= _FEW * cut or cut < _FEW or self.closed:
                break
            singly -= 1
            events += self._feed_any(data[:cut])
            data = data[cut:]
        return events if self.closed else events + self._feed_any(data)

    @property
    def activity(self) -> int:
        """Counts the frames (C7). Keep-alives are none."""
        return self._activity if self._mould is None else self._activity + self._mould.count

    def _feed_any(self, data: bytes) -> list[Event]:
        # In one piece, as `Mould.take` is.
        if self._mould is not None:
            self._activity += self._mould.count
            self._room = self._mould.room
            self._mould, self.plain = None, _unknown
        self._room -= len(data)
        if not self._streaming or self._room < 0:
            data = self._streamed(data)
        out: list[Event] = []
        evidence = self._evidence
        frames = self._frames.feed(data)
        for frame in frames:
            if frame.event in KEEP_ALIVES:
                continue
            self._activity += 1
            try:
                if len(frame.data) > SHALLOW_BYTES:
                    _check_depth(frame.data)
                self._decoder.feed(frame, out)
            except FrameUnreadable as error:
                evidence.unreadable = error
            except RecursionError:
                evidence.unreadable = FrameUnreadable("JSON that is nested too deeply", frame.data)
            else:
                if not evidence.terminated and evidence.error is None:
                    continue
            self._streaming, self.closed = False, True
            return self._deliver(out)
        if self._room < 0 or self._frames.error is not None:
            self._give_up()
        plain = bool(out) and all(map(_is_plain, out))
        events = self._accumulate(out) if plain and self._text_flows else self._deliver(out)
        if plain and self._text_flows:
            self._learn(data, frames[-1])
        return events

    def _learn(self, data: bytes, frame: sse.Frame) -> None:
        """The next read may be like the last frame of this one, which has brought text alone, if it is a plain one."""
        if frame.event in KEEP_ALIVES:
            return
        # Some servers pad each frame with noise, so that no two are alike: then it is not worth the time.
        name = b"" if frame.event is None else b"event: %b\n" % frame.event.encode()
        if self._learned * 4 <= self.activity and data.endswith(b"%bdata: %b\n\n" % (name, frame.data)):
            self._learned += 1
            around = self._decoder.around_text(frame.data)
            if around is not None:
                keep = self._accumulator.growing_text()
                self._mould = Mould(around, self._frame_limit, name, room_bytes=self._room, keep=keep)
                self.plain = self._mould.take

    def _streamed(self, data: bytes) -> bytes:
        """What of it belongs to an event stream: asked at the beginning, and past the limit."""
        if not self._streaming and self._body is None:
            # An event stream never begins with a bracket; JSON and HTML do, whatever the headers say.
            start = data.lstrip(_BLANK)[:1]
            if start and start in b"{[<":
                self._body = bytearray()
            else:
                self._streaming = bool(start)
        fitting = data if self._room >= 0 else data[: self._room]
        if self._body is None:
            return fitting
        self._body += fitting
        self._activity += 1
        return b""

    def _give_up(self) -> None:
        self._evidence.unreadable = self._frames.error or FrameTooLarge(self._limit)
        self._streaming, self.closed = False, True

    def end(self, transport: Transport, fault: Failed | None = None) -> TurnEnd:
        """There is no more to read, or by `fault` no more is waited for. How did it end?"""
        events = self.flush(transport)
        outcome = judge(self._evidence, self._accumulator.delivered(), transport, self._rules, fault)
        if dropped := dropped_calls(outcome, self._accumulator):
            events += self._accumulate(dropped)
        return TurnEnd(events, outcome)

    def flush(self, transport: Transport = "broken") -> list[Event]:
        """What had arrived and was still held back. Nothing can be fed after it."""
        events = [] if self.closed else self._decode_rest(transport)
        self._decoder.end(events)
        if self._think is not None:
            events = self._think.split(events) + self._think.end()
        self._accumulate(events)
        self.closed = self._evidence.closed
        return events

    def _decode_rest(self, transport: Transport) -> list[Event]:
        out: list[Event] = []
        try:
            if self._body is not None:
                body = bytes(self._body).strip(_BLANK)
                _check_depth(body)
                self._decoder.whole(body, out)
            for frame in self._frames.end():
                _check_depth(frame.data)
                self._decoder.feed(frame, out)
        except (FrameUnreadable, RecursionError) as error:
            # Where the connection broke, this is just what it broke off.
            if self._body is not None and transport == "clean":
                deep = FrameUnreadable("JSON that is nested too deeply", bytes(self._body))
                self._evidence.unreadable = error if isinstance(error, FrameUnreadable) else deep
        return out

    def _deliver(self, decoded: list[Event]) -> list[Event]:
        if self._think is not None:
            decoded = self._think.split(decoded)
            self._text_flows = self._think.settled
        return self._accumulate(decoded)

    def _accumulate(self, events: list[Event]) -> list[Event]:
        for event in events:
            self._accumulator.apply(event)
        return events


def _is_plain(event: Event) -> bool:
    return type(event) is TextDelta and not event.refusal


def _unknown(data: bytes) -> None:
    """Nothing was learned of the last one."""


def _check_depth(data: bytes) -> None:
    """What can be read here must be one that can be written elsewhere, too."""
    if is_deep_json(data):
        raise FrameUnreadable("JSON that is nested too deeply", data)


def dropped_calls(outcome: Outcome, accumulator: Accumulator) -> list[Event]:
    """The notice that a turn's tool calls will not be run, if there are any and it did not complete."""
    if type(outcome) is Completed:
        return []
    names = tuple(call.name for call in accumulator.turn_calls if call.state in ("asked", "waiting"))
    if not names:
        return []
    text = f"The answer ended early. These tool calls were not run: {', '.join(names)}."
    return [Notice("tool_call_dropped", text, names, for_model=True)]
