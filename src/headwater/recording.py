"""The file in which an upstream's answer is kept: its head, and its bytes with the time at which each came.

JSON lines: a head, then what was read, piece by piece, then how it ended. Writing gives bytes to append, so that
a crash leaves a file that can still be read. Pure: whoever records brings the time and does the I/O, and makes
the file readable for its owner only.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from headwater.errors import HeadwaterError
from headwater.events import DialectName

VERSION: Final = 1
# What would let its reader act as somebody else, and what describes the connection rather than the answer:
# the bytes are kept without chunks and compression.
_DROPPED: Final = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie", "set-cookie"}
) | frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding"})
_SECRETS: Final = frozenset({"api_key", "apikey", "key", "authorization", "access_token"})

HowEnded = Literal["complete", "closed", "reset", "abandoned"]
"""`complete`: as HTTP has it. `closed`: FIN in the middle. `abandoned`: it went on, but we had enough of it."""


class RecordingUnreadable(HeadwaterError):
    pass


class Head(Struct, frozen=True, kw_only=True):
    headwater_recording: int = VERSION
    dialect: DialectName
    upstream: str
    model: str
    request: Any
    """The JSON that was sent."""
    at_unix_s: float
    """When it was sent."""
    t: float
    """Milliseconds from then to the head, as in every line."""
    status: int
    """0: there was no head."""
    headers: tuple[tuple[str, str], ...] = ()


class Piece(Struct, frozen=True):
    t: float
    data: bytes


class End(Struct, frozen=True):
    t: float
    end: HowEnded
    detail: str | None = None


class Recording(Struct, frozen=True):
    head: Head
    pieces: tuple[Piece, ...]
    end: End | None
    """None: the recorder did not live to see it."""


class _Line(Struct, frozen=True):
    """A line after the head: data in one form or the other, or an end."""

    t: float
    data: str | None = None
    base64: str | None = None
    end: HowEnded | None = None
    detail: str | None = None


def write_head(
    *,
    dialect: DialectName,
    upstream: str,
    model: str,
    request: Any,
    at_unix_s: float,
    t_ms: float,
    status: int,
    headers: Iterable[tuple[str, str]],
) -> bytes:
    head = Head(
        dialect=dialect,
        upstream=upstream,
        model=model,
        request=_without_secrets(request),
        at_unix_s=at_unix_s,
        t=round(t_ms, 3),
        status=status,
        headers=tuple((name, value) for name, value in headers if name.lower() not in _DROPPED),
    )
    return _line(head)


def write_piece(t_ms: float, data: bytes) -> bytes:
    try:
        return _line({"t": round(t_ms, 3), "data": data.decode()})
    except UnicodeDecodeError:
        # Also what was merely cut inside a character: every piece stays as it came.
        return _line({"t": round(t_ms, 3), "base64": base64.b64encode(data).decode()})


def write_end(t_ms: float, end: HowEnded, detail: str | None = None) -> bytes:
    return _line(End(round(t_ms, 3), end, detail))


def read(data: bytes) -> Recording:
    """Raises `RecordingUnreadable`. A file without an end, or whose last line is torn, is read as far as it goes."""
    first, *rest = data.split(b"\n")
    head = _read_head(first)
    pieces: list[Piece] = []
    for number, line in enumerate(rest, start=2):
        if not line:
            continue
        try:
            read = msgspec.json.decode(line, type=_Line)
            if read.end is not None:
                return Recording(head, tuple(pieces), End(read.t, read.end, read.detail))
            pieces.append(Piece(read.t, _bytes(read)))
        except (msgspec.DecodeError, binascii.Error) as error:
            if number == len(rest) + 1:
                break
            raise RecordingUnreadable(f"line {number} of the recording: {error}") from None
    return Recording(head, tuple(pieces), None)


def _read_head(line: bytes) -> Head:
    try:
        head = msgspec.json.decode(line, type=Head)
    except msgspec.DecodeError as error:
        raise RecordingUnreadable(f"this is no recording: its first line is no head: {error}") from None
    if head.headwater_recording != VERSION:
        raise RecordingUnreadable(
            f"the recording has version {head.headwater_recording}, this Headwater reads {VERSION}"
        )
    return head


def _bytes(line: _Line) -> bytes:
    if line.base64 is not None:
        return base64.b64decode(line.base64, validate=True)
    return (line.data or "").encode()


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def _without_secrets(request: Any) -> Any:
    if not isinstance(request, dict):
        return request
    return {name: value for name, value in request.items() if str(name).lower() not in _SECRETS}
