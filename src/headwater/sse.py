"""Server-sent events: bytes to frames and back.

Owns the framing and nothing else: what is in `data` stays bytes. The decoder
takes its input in any cut, in time linear in its length, and holds at most
`limit_bytes` of an unfinished frame.
"""

import re
from typing import Final

from msgspec import Struct, field

from headwater.errors import FrameTooLarge

DEFAULT_LIMIT_BYTES: Final = 16 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_CR: Final = 13
_LF: Final = 10
_LINE_BREAK: Final = re.compile(rb"\r\n|\r|\n")


class Frame(Struct, frozen=True, gc=False):
    data: bytes
    event: str | None = None
    id: str | None = None
    """The last id that the stream has named, as the standard has it."""


class Decoder(Struct, eq=False):
    """Incremental: `feed` what was read, as it was read; `end` when there is no more."""

    limit_bytes: int = DEFAULT_LIMIT_BYTES
    retry_ms: int | None = None
    error: FrameTooLarge | None = None
    _line: bytearray = field(default_factory=bytearray)
    """The unfinished line."""
    _data: bytearray = field(default_factory=bytearray)
    """The unfinished frame's data, each line with its newline."""
    _event: str | None = None
    _id: str | None = None
    _after_cr: bool = False
    _start: bytes | None = b""
    """What may turn out to be a byte order mark; None once that is settled."""
    _amid: bool = True
    """Any of the above is pending: the next read does not begin where a frame does."""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are whole by now. Past the limit there are no more: see `error`."""
        if _CR in data or len(data) > self.limit_bytes:
            return self._feed_lines(data)
        if self._amid:
            if self._start != b"" or data[:1] in (b"", _BOM[:1]):
                return self._feed_amid(data)
            # The beginning, and no byte order mark: nothing is pending.
            self._start, self._amid = None, False
        only = data[6:-2]
        if _LF not in only and data[:6] == b"data: " and data[-2:] == b"\n\n":
            # One plain frame: nearly every read of a stream that takes its time.
            return [Frame(only, None, self._id)]
        # Frames of one `data` line each, all named or none: nearly all there are. A third of the time of going by
        # lines; where anything else comes, nothing has been changed yet, so begin again.
        end = data.rfind(b"\n\n")
        frames: list[Frame] = []
        if end > 0 and data[:6] == b"data: ":
            for body in data[6:end].split(b"\n\ndata: "):
                if _LF in body:
                    return self._feed_lines(data)
                frames.append(Frame(body, None, self._id))
        elif end > 0 and data[:7] == b"event: ":
            for named in data[7:end].split(b"\n\nevent: "):
                name, found, body = named.partition(b"\ndata: ")
                if not found or _LF in name or _LF in body:
                    return self._feed_lines(data)
                frames.append(Frame(body, name.decode("utf-8", "replace") or None, self._id))
        else:
            return self._feed_lines(data)
        if end + 2 < len(data):
            frames += self._feed_lines(data[end + 2 :])
        return frames

    def end(self) -> list[Frame]:
        """The last frame, if the peer left out the blank line that should follow it.

        The standard drops it. Real servers end on `data: [DONE]`, and what was
        cut inside its JSON will not parse, so that reading it is safe.
        """
        frames: list[Frame] = []
        if self._start:
            self._line += self._start
        if self.error is None:
            self._take_line(bytes(self._line), frames)
            self._line.clear()
            self._take_line(b"", frames)
        return frames

    def _feed_amid(self, data: bytes) -> list[Frame]:
        """By lines up to the end of what was begun; then there may be plain frames again."""
        cut = data.find(b"\n\n") + 2
        if not 1 < cut < len(data):
            return self._feed_lines(data)
        frames = self._feed_lines(data[:cut])
        return frames + (self._feed_lines(data[cut:]) if self._amid else self.feed(data[cut:]))

    def _feed_lines(self, data: bytes) -> list[Frame]:
        """Anything that the standard allows, in any cut."""
        frames: list[Frame] = []
        if self._start is not None:
            data = self._without_bom(self._start + data)
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        for line in data.splitlines(keepends=True):
            bare = line.rstrip(b"\r\n")
            if len(self._data) + len(self._line) + len(bare) > self.limit_bytes:
                self.error = FrameTooLarge(self.limit_bytes)
            if self.error is not None:
                break
            self._line += bare
            if len(bare) < len(line):
                self._take_line(bytes(self._line), frames)
                self._line.clear()
            self._after_cr = line.endswith(b"\r")
        self._amid = bool(
            self._line or self._data or self._event or self._after_cr or self._start is not None or self.error
        )
        return frames

    def _without_bom(self, data: bytes) -> bytes:
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._start = data
            return b""
        self._start = None
        return data.removeprefix(_BOM)

    def _take_line(self, line: bytes, frames: list[Frame]) -> None:
        if not line:
            if self._data:
                frames.append(Frame(bytes(self._data[:-1]), self._event, self._id))
                self._data.clear()
            self._event = None
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data += value + b"\n"
        elif name == b"event":
            self._event = value.decode("utf-8", "replace") or None
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)


def encode(data: bytes, *, event: str | None = None, id: str | int | None = None) -> bytes:
    """One frame. `data` is JSON or other text; line breaks in it are kept."""
    head = b""
    if id is not None:
        head += b"id: %b\n" % str(id).encode()
    if event is not None:
        head += b"event: %b\n" % event.encode()
    if b"\n" in data or b"\r" in data:
        data = _LINE_BREAK.sub(b"\ndata: ", data)
    return b"%bdata: %b\n\n" % (head, data)


def comment(text: str = "") -> bytes:
    """A keep-alive: no client sees it, no proxy may time out."""
    return b": %b\n\n" % text.encode()
