"""uvicorn's connection, with a way past ASGI for an answer's head and body.

A token that goes through `send` costs a coroutine, a dictionary and a dozen lines; here it is one write to the
transport, and the stream is told at once when its client is behind or gone. The head goes the same way: all that is
in it is ours, and known to be good. The end of an answer still goes through ASGI, so that keep-alive, pipelining and
closing stay uvicorn's.

    uvicorn.run(app, http=DirectProtocol)
    outlet = outlet_of(scope)
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Protocol, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

Headers = list[tuple[bytes, bytes]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

OUTLET: Final = "headwater.outlet"
HEAD_BYTES: Final = 128 * 1024
"""Of a request. Far more than the guard lets pass, which has a better answer to it."""
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Writer(Protocol):
    """Who writes to an outlet, and is told how its client fares."""

    def on_full(self) -> None:
        """The client is behind: what is written is held in memory until `on_room`."""

    def on_room(self) -> None: ...

    def on_gone(self) -> None:
        """Nothing that is written will arrive."""


class _Held:
    """In a transport's place, as far as an answer needs one; what it was given goes out at its exit."""

    # Not by `contextmanager`, which took 30 µs of a request.
    __slots__ = ("_closing", "_outlet", "_pieces", "write")

    def __init__(self, outlet: "Outlet") -> None:
        self._outlet = outlet
        self._pieces: list[bytes] = []
        self._closing = False
        self.write = self._pieces.append

    def close(self) -> None:
        self._closing = True

    def __enter__(self) -> None:
        self._outlet.go_through(cast(asyncio.Transport, self))

    def __exit__(self, *_: object) -> None:
        transport = self._outlet.transport
        self._outlet.go_through(transport)
        if self._pieces:
            transport.write(b"".join(self._pieces))
        if self._closing:
            transport.close()


class Outlet:
    """Where one answer goes, from its head to the last `http.response.body`, which is ASGI's."""

    __slots__ = ("_cycle", "_flow", "_silent", "_write", "_writer", "gone", "marks", "transport", "wrote")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._silent = cycle.scope["method"] == "HEAD"
        self._flow = cycle.flow
        self.transport = cycle.transport
        self._write = cycle.transport.write
        self._writer: Writer | None = None
        self.marks: Headers = []
        """Headers besides, of whoever stands before the application: what is begun here does not pass them."""
        self.gone = False
        self.wrote = False
        """For whoever asks now and then whether anything was."""

    def attach(self, writer: Writer, *, limit_bytes: int | None = None) -> None:
        """`limit_bytes`: how far behind a client may be before `on_full`; None leaves it to the transport."""
        self._writer = writer
        if self.gone:
            writer.on_gone()
            return
        # A body of more than 64 kB leaves reading paused, and whoever does not read never hears of a FIN.
        self._flow.resume_reading()
        self.transport.set_write_buffer_limits(high=limit_bytes)
        if self.behind:
            # In a pipeline: by what was answered before.
            writer.on_full()

    def detach(self) -> None:
        self._writer = None

    def together(self) -> _Held:
        """What is sent or written meanwhile goes out as one: each write is a system call."""
        return _Held(self)

    def begin(self, status: int, headers: Headers, length: int | None = None) -> None:
        """The head. `length`: of the body, which then is the end's; None: it comes in chunks."""
        cycle = self._cycle
        cycle.response_started, cycle.waiting_for_100_continue = True, False
        lines = [b"%b: %b\r\n" % header for header in (*cycle.default_headers, *headers, *self.marks)]
        if length is not None:
            cycle.chunked_encoding, cycle.expected_content_length = False, length
            lines.append(b"content-length: %d\r\n" % length)
            if not cycle.keep_alive:
                # Only here: to Node 20 a reset that follows it would be a clean end of what came in chunks.
                lines.append(b"connection: close\r\n")
        elif not self._silent:
            cycle.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked\r\n")
        self._write(b"%b%b\r\n" % (STATUS_LINE[status], b"".join(lines)))

    def go_through(self, transport: asyncio.Transport) -> None:
        self._cycle.transport, self._write = transport, transport.write

    def write(self, body: bytes) -> None:
        """One chunk, at once. Never an empty one: that would end the body."""
        self.wrote = True
        if not self._silent:
            self._write(b"%x\r\n%b\r\n" % (len(body), body))

    def abort(self) -> None:
        """Nobody is to take what came for all of it."""
        self.transport.abort()

    @property
    def behind(self) -> bool:
        """The client is, and `send` would wait for it: in a pipeline, from the start."""
        return bool(self._flow.write_paused)

    async def drain(self) -> None:
        """Until it is not."""
        await self._flow.drain()

    def full(self) -> None:
        if self._writer is not None:
            self._writer.on_full()

    def room(self) -> None:
        if self._writer is not None:
            self._writer.on_room()

    def lost(self) -> None:
        self.gone = True
        if self._writer is not None:
            self._writer.on_gone()


def outlet_of(scope: MutableMapping[str, Any]) -> Outlet | None:
    """None: the client has left."""
    outlet: Outlet | None = scope["extensions"].get(OUTLET)
    return outlet


class DirectProtocol(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._open: list[tuple[RequestResponseCycle, Outlet]] = []
        """The requests that are not answered yet: more than one only in a pipeline."""
        self._asking_since_s: float | None = None
        """Since when a request has been on its way that is not whole yet; a new connection is to bring one."""

        self._in_head = False
        self._head_bytes = 0

    def close_if_asking_since(self, before_s: float) -> None:
        """Whoever sends a request bit by bit, or none at all, holds a connection that others could have."""
        if self._asking_since_s is not None and self._asking_since_s < before_s:
            self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._asking_since_s = self.loop.time()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            # The parser gathers a header for as long as it comes.
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self.transport.write(_TOO_LARGE)
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        if self._asking_since_s is None:
            self._asking_since_s = self.loop.time()

    def on_message_complete(self) -> None:
        self._asking_since_s = None
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        self._in_head = False
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            # Its task has not begun: this is in the scope before anybody looks.
            outlet = Outlet(self.cycle)
            self.scope["extensions"] = {OUTLET: outlet}  # type: ignore[dict-item]
            self._open.append((self.cycle, outlet))

    def on_response_complete(self) -> None:
        cycle, outlet = self._open.pop(0)
        # Else a request, its outlet and the stream hold one another until the next garbage collection.
        outlet.detach()
        cycle.scope["extensions"] = {}
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        for _, outlet in self._open:
            outlet.full()

    def resume_writing(self) -> None:
        super().resume_writing()
        for _, outlet in self._open:
            outlet.room()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # Not by uvicorn where it broke: it would hold all of this for as long as an idle connection is kept.
        self._unset_keepalive_if_required()
        for cycle, outlet in self._open:
            # uvicorn tells only the last one of a pipeline.
            cycle.disconnected = True
            cycle.message_event.set()
            outlet.lost()
            cycle.scope["extensions"] = {}
        self._open.clear()
        # As above: each of these holds the connection.
        self.cycle = self.parser = None  # type: ignore[assignment]
