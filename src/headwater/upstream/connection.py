"""A connection to an upstream: HTTP/1.1, kept alive, one exchange at a time, no task woken for a read.

Owns the framing of answers, and whether the connection can serve another one. Refuses upgrades, heads
that are too long, and bytes that nobody asked for. Does not connect (that is the pool's), and does
not say what an ending means.
"""

import asyncio
import math
import re
from collections.abc import Callable
from typing import Final, Literal, Protocol, cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

HEAD_LIMIT_BYTES: Final = 64 * 1024

Ending = Literal["clean", "broken", "reset", "unanswered", "malformed", "oversized", "upgraded"]
"""`clean`: the body ended as HTTP says that it should. `broken`: the peer closed before that, or `reset`;
`unanswered`: before its first byte. `malformed`: not HTTP. `oversized`: too much head, or trailer. `upgraded`: to what
nobody asked for."""

_KEEP_ALIVE: Final = re.compile(r"\btimeout\s*=\s*([0-9]{1,9})", re.IGNORECASE)

Headers = dict[str, str]
"""By their names in lower case. The last counts, if there are several."""


class Reader(Protocol):
    """Whom an exchange tells of its answer: a head, reads of the body, and one end. No head: only the end."""

    def on_head(self, status: int, headers: Headers) -> None: ...

    def on_body(self, data: bytes) -> None:
        """Called once a read, however many chunks it has brought."""

    def on_end(self, ending: Ending, rest: bytes) -> None:
        """The last that is heard, with what the last read has brought. The connection is no longer the reader's."""


class Connection(asyncio.Protocol):
    # A stream's objects are cold each time that a token comes: slots touch half the memory.
    __slots__ = (
        "_complete",
        "_early",
        "_headers",
        "_idle",
        "_lost",
        "_overhead_bytes",
        "_parser",
        "_paused",
        "_pieces",
        "_reader",
        "_reusable",
        "_status",
        "_transport",
        "_until_closed",
        "_wanted",
        "_wire",
        "keep_s",
        "on_body",
    )

    def __init__(self, idle: Callable[["Connection"], None], lost: Callable[["Connection"], None]) -> None:
        """`idle`: it may be asked again. `lost`: it may not be, any more."""
        self._idle = idle
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._wire: asyncio.Transport | None = None
        """What carries TLS, which does not tell how much of it is unsent."""
        self.keep_s = math.inf
        """How long the peer says that it keeps an idle connection."""
        self._paused = False
        self._early: bytes | None = b""
        """Said before the first request: a server that is full, or none of HTTP. None once it was asked."""
        self._reader: Reader | None = None
        self._status = 0
        self._headers: Headers = {}
        self._until_closed = False
        """The body has no length: the peer ends it by closing."""
        self._reusable = False
        self._complete = False
        self._overhead_bytes = 0
        """Read since the request or the last piece of the body: head, trailers, extensions of chunks."""
        self._pieces: list[bytes] = []
        self._wanted = 0
        """How many of them belong to an answer that is complete."""
        # The parser calls it for each chunk, without a frame of ours.
        self.on_body = self._pieces.append
        self._parser = HttpResponseParser(self)

    # ------------------------------------------------------------ for the reader

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, request: bytes, reader: Reader) -> None:
        """Send a request; the reader is told of the answer."""
        assert self._reader is None
        self._reader = reader
        self._status = 0
        self._complete = False
        self._overhead_bytes = 0
        early, self._early = self._early, None
        if self._transport is not None:
            self._transport.write(request)
        if early:
            self.resume()
            self.data_received(early)
        if self._transport is None and self._reader is reader:
            self._end("unanswered", b"")

    def leave(self, reader: Reader) -> None:
        """The rest is not wanted: close, at once. Nothing, if the exchange is over already."""
        if self._reader is reader:
            self._reader = None
            self.close()

    def close(self) -> None:
        if self._transport is not None:
            # Not `close`: that would first wait until a long request is sent.
            self._transport.abort()

    def pause(self) -> None:
        if self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and self._paused:
            self._paused = False
            self._transport.resume_reading()

    # ----------------------------------------------------------- for the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def secured(self, transport: asyncio.Transport, wire: asyncio.Transport) -> None:
        """It has TLS, on top of `wire`."""
        self._transport, self._wire = transport, wire

    def eof_received(self) -> None:
        # What we have not sent, nobody will read: the loop would wait for it.
        self.close()

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            if self._early is None:
                # Nobody asked for it.
                self.close()
            else:
                self._early += data
                self.pause()
            return
        ending: Ending | None = None
        try:
            self._parser.feed_data(data)
        except HttpParserCallbackError as error:
            # The reader's own mistake, and not the peer's.
            raise error.__context__ or error from None
        except HttpParserUpgrade:
            ending = "upgraded"
        except HttpParserError:
            ending = "malformed"
        pieces = self._pieces
        if self._complete:
            del pieces[self._wanted :]
            ending = "clean"
        if pieces:
            self._overhead_bytes = 0
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
        else:
            body = b""
            self._overhead_bytes += len(data)
            if self._overhead_bytes > HEAD_LIMIT_BYTES:
                ending = "oversized"
        if self._reader is not reader:
            # It left when it saw the head.
            return
        if ending is not None:
            self._end(ending, body)
        elif body:
            reader.on_body(body)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._lost(self)
        if exc is None and self._until_closed and self._status:
            self._end("clean", b"")
        else:
            broken: Ending = "broken" if exc is None else "reset"
            self._end(broken if self._status or self._overhead_bytes else "unanswered", b"")
        if self._early is None:
            # It holds this one: each that is closed would stay until the next garbage collection.
            del self._parser

    def _end(self, ending: Ending, rest: bytes) -> None:
        reader, self._reader = self._reader, None
        if ending == "clean" and self._reusable and self.open and self._all_sent():
            self.resume()
            self._idle(self)
        else:
            self.close()
        if reader is not None:
            reader.on_end(ending, rest)

    def _all_sent(self) -> bool:
        """An answer may come early, as a 413 does: the next request would then wait behind the rest of this one."""
        transport, wire = self._transport, self._wire
        if wire is not None and wire.get_write_buffer_size():
            return False
        return transport is None or not transport.get_write_buffer_size()

    # --------------------------------------------------------------- for the parser

    def on_message_begin(self) -> None:
        if self._complete:
            # Bytes after the end of the answer: whose they are, nobody knows.
            self._reusable = False
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower().decode("latin-1")] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200 or self._complete or self._reader is None:
            # 100 and 103 announce the head that follows.
            return
        self._status = status
        self._reusable = self._parser.should_keep_alive()
        # What may come as trailers is no part of it.
        named, self._headers = self._headers, {}
        self._until_closed = "content-length" not in named and "transfer-encoding" not in named
        timeout = _KEEP_ALIVE.search(named["keep-alive"]) if "keep-alive" in named else None
        self.keep_s = int(timeout[1]) if timeout else math.inf
        self._reader.on_head(status, named)

    def on_message_complete(self) -> None:
        if self._status and not self._complete:
            self._complete = True
            self._wanted = len(self._pieces)
