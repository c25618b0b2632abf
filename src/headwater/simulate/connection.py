"""One client's connection: HTTP/1.1 in, steps out. Callbacks only, no task: a thousand of them are cheap.

A server of our own, since no HTTP server lets one write half a head, tear a chunk or reset a connection.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Iterator
from typing import Final, Protocol, assert_never, cast

import httptools
from msgspec import Struct

from headwater.errors import FrameTooLarge
from headwater.simulate.http import head
from headwater.simulate.journal import Closed, Connected, Exchange, Journal
from headwater.simulate.pacer import Due, Pacer
from headwater.simulate.steps import End, Send, Silence, Step, Wait

_LIMIT_BYTES: Final = 64 * 1024 * 1024
# Others get a turn after so many writes of an answer that is as fast as it goes.
_WRITES_PER_TURN: Final = 32
_SILENCE: Final = Silence()
_LINGER_0: Final = struct.pack("ii", 1, 0)


class HttpRequest(Struct, frozen=True):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Playing(Struct):
    steps: Iterator[Step]
    exchange: Exchange | None = None
    """None: it is not worth noting."""
    status: int = 200


class Desk(Protocol):
    """Where requests are answered."""

    @property
    def journal(self) -> Journal: ...

    @property
    def pacer(self) -> Pacer: ...

    def answer(self, request: HttpRequest, connection: Connected) -> Playing: ...

    def joined(self, connection: "Connection") -> None: ...

    def left(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._parser = httptools.HttpRequestParser(self)
        self._requests: deque[tuple[HttpRequest, bool]] = deque()
        self._playing: Playing | None = None
        self._blocked = False
        self._due: Due | None = None
        self._due_s = 0.0
        self._next: asyncio.Handle | None = None
        self._keep_alive = True
        self._closing: Closed | None = None
        self._begin()

    # ----------------------------------------------------------------- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # It then says after each write whether the socket took it all: a reset comes after the bytes before it.
        self._transport.set_write_buffer_limits(high=0)
        self._record = self._desk.journal.opened()
        self._desk.joined(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if self._body_bytes > _LIMIT_BYTES:
                self._refuse(413, f"Simulator: a request may have {_LIMIT_BYTES} bytes.")
            else:
                self._refuse(400, f"Simulator: this is no HTTP request: {error}")

    def eof_received(self) -> None:
        # Half of a connection is no use to a client of a stream: it has gone.
        self._closing = self._closing or "client_fin"

    def connection_lost(self, exc: Exception | None) -> None:
        self._halt()
        how = self._closing or ("client_reset" if exc is not None else "client_fin")
        playing, self._playing = self._playing, None
        if playing is not None and playing.exchange is not None:
            self._desk.journal.ended(playing.exchange, how)
        self._requests.clear()
        self._desk.journal.closed(self._record, how)
        self._desk.left(self)

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        # What the client's slowness has cost is not made up for, else a silence could be swallowed by it.
        self._due_s = max(self._due_s, self._desk.pacer.now_s())
        # It may have given way to others just when the socket was full.
        self._halt()
        self._go_on()

    # --------------------------------------------------------------- httptools

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)
        self._body_bytes += len(body)
        if self._body_bytes > _LIMIT_BYTES:
            # The parser stops there, and says so to whoever feeds it.
            raise FrameTooLarge(_LIMIT_BYTES)

    def on_message_complete(self) -> None:
        path = self._url.decode("latin-1").partition("?")[0]
        method = self._parser.get_method().decode()
        request = HttpRequest(method, path, self._headers, b"".join(self._body))
        self._requests.append((request, self._parser.should_keep_alive()))
        self._begin()
        self._answer_next()

    # ------------------------------------------------------------------ playing

    def close(self) -> None:
        """The simulator shuts down."""
        self._closing = self._closing or "simulator_fin"
        self._transport.abort()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0

    def _refuse(self, status: int, message: str) -> None:
        body = message.encode()
        headers = {"content-type": "text/plain", "content-length": str(len(body)), "connection": "close"}
        self._transport.write(head(status, headers.items()) + body)
        self._close("simulator_fin")

    def _answer_next(self) -> None:
        if self._playing is not None or not self._requests or self._closing is not None:
            return
        request, self._keep_alive = self._requests.popleft()
        self._playing = self._desk.answer(request, self._record)
        self._due_s = self._desk.pacer.now_s()
        self._go_on()

    def _go_on(self) -> None:
        self._due = self._next = None
        playing = self._playing
        writes = 0
        while playing is not None and not self._blocked and self._closing is None:
            match next(playing.steps, _SILENCE):
                case Send(data, tokens):
                    self._transport.write(data)
                    if playing.exchange is not None:
                        playing.exchange.status = playing.status
                        playing.exchange.sent_bytes += len(data)
                        playing.exchange.sent_tokens += tokens
                    writes += 1
                    if writes == _WRITES_PER_TURN:
                        self._next = asyncio.get_running_loop().call_soon(self._go_on)
                        return
                case Wait(seconds):
                    self._due_s += seconds
                    self._due = self._desk.pacer.at(self._due_s, self._go_on)
                    return
                case Silence():
                    return
                case End() as end:
                    self._end(playing, end)
                    return
                case unreachable:
                    assert_never(unreachable)

    def _end(self, playing: Playing, end: End) -> None:
        if end.how == "answered":
            self._playing = None
            if playing.exchange is not None:
                self._desk.journal.ended(playing.exchange, "answered")
            if end.close or not self._keep_alive:
                self._close("simulator_fin")
            else:
                self._answer_next()
        elif end.how == "fin":
            self._close("simulator_fin")
        else:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_0)
            self._closing = "simulator_reset"
            self._transport.abort()

    def _close(self, how: Closed) -> None:
        self._closing = self._closing or how
        self._halt()
        self._transport.close()

    def _halt(self) -> None:
        for waiting in (self._due, self._next):
            if waiting is not None:
                waiting.cancel()
        self._due = self._next = None
