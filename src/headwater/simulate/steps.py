"""An answer as the steps that a connection takes: write this, wait so long, go silent, end so. Pure, and lazy.

Faults are put in where they strike; after one that ends the stream nothing follows.
"""

import random
from collections.abc import Generator, Iterator
from typing import Final, Literal, assert_never

from msgspec import Struct

from headwater.simulate.script import (
    Answer,
    BadChunk,
    BadJson,
    BadUtf8,
    Cut,
    Fault,
    Fin,
    HugeFrame,
    Point,
    Raw,
    Reset,
    Stall,
    StreamError,
    Writes,
)
from headwater.simulate.writers import Part, Piece, Writer


class Send(Struct, frozen=True):
    data: bytes
    tokens: int = 0
    """Of text and reasoning, that it completes."""


class Wait(Struct, frozen=True):
    seconds: float


class Silence(Struct, frozen=True):
    """For ever."""


class End(Struct, frozen=True):
    how: Literal["answered", "fin", "reset"]
    """`answered`: the body is complete as HTTP sees it, and the connection may be used again."""
    close: bool = False
    """After an answer: it is the end of the connection that ends the body."""


Step = Send | Wait | Silence | End
Steps = Generator[Step, None, None]
Strike = Generator[Step, None, bool]
"""Returns whether that was the end."""

Framing = Literal["chunked", "close", "length"]

_TOKENS: Final[frozenset[Part]] = frozenset({"text", "reasoning"})
_PACED: Final[frozenset[Part]] = _TOKENS | {"arguments"}
_OMITTED_WITH: Final[dict[Part, tuple[str, ...]]] = {"ending": ("finish", "terminator")}
_BEFORE: Final[dict[Part, tuple[Point, ...]]] = {
    "finish": ("before_finish",),
    "terminator": ("before_terminator",),
    "ending": ("before_finish", "before_terminator"),
}
_AFTER: Final[dict[Part, tuple[Point, ...]]] = {
    "finish": ("after_finish",),
    "terminator": ("after_terminator",),
    "ending": ("after_finish", "after_terminator"),
}
_TORN: Final = b'data: {"id":"torn'
_HUGE_WRITE_BYTES: Final = 64 * 1024


class Performance:
    """One answer's steps. `pieces` are its body; `writer` is for the faults that speak the dialect."""

    def __init__(
        self, answer: Answer, head: bytes, pieces: Iterator[Piece], writer: Writer, *, framing: Framing
    ) -> None:
        self._answer = answer
        self._head = head
        self._pieces = pieces
        self._writer = writer
        self._framing: Framing = framing
        self._faults = list(answer.faults)
        self._sends = _Sends(answer.writes, framing)
        self._in_body = False
        self._tokens = 0
        self._fragments = 0
        self._paced = 0

    def steps(self) -> Steps:
        if self._answer.pace.head_s:
            yield Wait(self._answer.pace.head_s)
        if (yield from self._strike("before_head")):
            return
        half = len(self._head) // 2 if any(fault.at == "in_head" for fault in self._faults) else 0
        if half:
            yield Send(self._head[:half])
            if (yield from self._strike("in_head")):
                return
        yield Send(self._head[half:])
        self._in_body = True
        if (yield from self._strike("after_head")):
            return
        for piece in self._pieces:
            if (yield from self._play(piece)):
                return
        yield from self._sends.flush()
        yield from self._end()

    def _play(self, piece: Piece) -> Strike:
        part = piece.part
        if part != "start" and (yield from self._strike("after_tokens", self._tokens)):
            return True
        for point in _BEFORE.get(part, ()):
            if (yield from self._strike(point)):
                return True
        if not self._is_omitted(part):
            if part in _PACED:
                yield from self._pace()
            yield from self._sends.put(piece.data, token=part in _TOKENS)
        self._tokens += part in _TOKENS
        if part == "arguments":
            self._fragments += 1
            if (yield from self._strike("in_arguments", self._fragments)):
                return True
        for point in _AFTER.get(part, ()):
            if (yield from self._strike(point)):
                return True
        return False

    def _is_omitted(self, part: Part) -> bool:
        return any(name in self._answer.omit for name in _OMITTED_WITH.get(part, (part,)))

    def _pace(self) -> Steps:
        pace = self._answer.pace
        delay_s = 1 / pace.tokens_per_s if pace.tokens_per_s else 0.0
        if self._paced < len(pace.delays_s):
            delay_s = pace.delays_s[self._paced]
        elif self._paced == 0:
            delay_s = pace.first_token_s or delay_s
        self._paced += 1
        if delay_s:
            yield Wait(delay_s)

    # ------------------------------------------------------------------ faults

    def _strike(self, point: Point, count: int = 0) -> Strike:
        """All faults of this point, each once."""
        due = [fault for fault in self._faults if fault.at == point and fault.tokens <= count]
        for fault in due:
            self._faults.remove(fault)
            yield from self._sends.flush()
            if (yield from self._inflict(fault)):
                return True
        return False

    def _inflict(self, fault: Fault) -> Strike:
        match fault:
            case Cut():
                yield from self._end()
            case Fin():
                if self._in_body:
                    yield Send(self._sends.torn(_TORN))
                yield End("fin")
            case Reset():
                yield End("reset")
            case BadChunk():
                yield Send(b"zz\r\n" + _TORN)
                yield End("fin")
            case StreamError():
                yield from self._sends.put(self._writer.error(fault))
                yield from self._end()
            case Stall():
                return (yield from self._stall(fault))
            case BadJson() | BadUtf8() | HugeFrame() | Raw():
                yield from self._spoil(fault)
                return False
            case unreachable:
                assert_never(unreachable)
        return True

    def _stall(self, fault: Stall) -> Strike:
        left_s = fault.seconds
        if fault.keep_alive_s is None:
            yield Wait(left_s) if left_s is not None else Silence()
            return left_s is None
        while left_s is None or left_s > 0:
            pause_s = fault.keep_alive_s if left_s is None else min(fault.keep_alive_s, left_s)
            yield Wait(pause_s)
            yield from self._sends.put(self._writer.keep_alive())
            left_s = None if left_s is None else left_s - pause_s
        return False

    def _spoil(self, fault: BadJson | BadUtf8 | HugeFrame | Raw) -> Steps:
        match fault:
            case BadJson():
                yield from self._sends.put(_TORN + b"\n\n")
            case BadUtf8():
                yield from self._sends.put(self._writer.token("~").replace(b"~", b"\xff\xfe"))
            case Raw():
                yield from self._sends.put(fault.text.encode("utf-8", "surrogatepass"))
            case HugeFrame():
                before, _, after = self._writer.token("~").partition(b"~")
                yield from self._sends.put(before)
                for start in range(0, fault.size_bytes, _HUGE_WRITE_BYTES):
                    yield from self._sends.put(b"x" * min(_HUGE_WRITE_BYTES, fault.size_bytes - start))
                yield from self._sends.put(after)
            case unreachable:
                assert_never(unreachable)

    def _end(self) -> Steps:
        """As complete as HTTP can make it."""
        if not self._in_body:
            yield End("fin")
            return
        if self._framing == "chunked":
            yield Send(b"0\r\n\r\n")
        yield End("answered", close=self._framing == "close")


class _Sends:
    """From frames to writes: tokens are gathered, bytes are cut, chunks are framed, as the script says."""

    def __init__(self, writes: Writes, framing: Framing) -> None:
        self._writes = writes
        self._chunked = framing == "chunked"
        self._chance = random.Random(writes.seed)
        self._gathered: list[bytes] = []

    def put(self, data: bytes, *, token: bool = False) -> Steps:
        if token and self._writes.tokens > 1:
            self._gathered.append(data)
            if len(self._gathered) == self._writes.tokens:
                yield from self.flush()
            return
        yield from self.flush()
        yield from self._write(data, int(token))

    def flush(self) -> Steps:
        if self._gathered:
            data, tokens = b"".join(self._gathered), len(self._gathered)
            self._gathered.clear()
            yield from self._write(data, tokens)

    def torn(self, data: bytes) -> bytes:
        """The beginning of a chunk that promises more."""
        return b"%x\r\n%b" % (len(data) + 64, data) if self._chunked else data

    def _write(self, data: bytes, tokens: int) -> Steps:
        pieces = self._cut(data)
        last = len(pieces) - 1
        for n, piece in enumerate(pieces):
            framed = b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece
            yield Send(framed, tokens if n == last else 0)
            if self._writes.gap_s and n != last:
                yield Wait(self._writes.gap_s)

    def _cut(self, data: bytes) -> list[bytes]:
        every = self._writes.every_bytes
        if self._writes.seed is None and every is None:
            return [data]
        pieces, start = [], 0
        while start < len(data):
            size = every or self._chance.randint(1, self._writes.up_to_bytes)
            pieces.append(data[start : start + size])
            start += size
        return pieces
