"""uvicorn's connection, with a way past ASGI for an answer, and for a request that needs no task.

A token that goes through `send` costs a coroutine, a dictionary and a dozen lines; here it is one write to the
transport, and the stream is told at once when its client is behind or gone. Head and end go the same way: all that is
in them is ours, and known to be good. A request whose body is small is shown to the application's `at_once` when it is
there, and gets a task only if that wants one. Parsing, pipelining and closing stay uvicorn's.

    uvicorn.run(app, http=DirectProtocol)
    outlet = outlet_of(scope)
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import copy_context
from typing import Any, Final, Protocol, cast

import httptools
from starlette.types import ASGIApp
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

Headers = list[tuple[bytes, bytes]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

OUTLET: Final = "headwater.outlet"
HEAD_BYTES: Final = 128 * 1024
"""Of a request, and of what else may come that is no body. Far more than the guard lets pass, which has a better answer
to it."""
UNHEARD_BYTES: Final = 2 * 1024 * 1024
"""Whoever goes on for so long after that is cut, whatever they wait for."""
MOST_WAITING: Final = 32
"""Requests of a connection, behind the one that is being answered."""
HELD_BYTES: Final = 64 * 1024
"""Of a body that is waited for without a task. With more, uvicorn stops reading until somebody takes it."""
LENGTH_DIGITS: Final = 20
"""The parser takes no larger number; what stands before it are zeros, and Python takes no thousands of them."""
_REFUSED: Final = b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_BAD: Final = _REFUSED % b"400 Bad Request"
_TOO_LARGE: Final = _REFUSED % b"431 Request Header Fields Too Large"


class AtOnce(Protocol):
    """What an application may have besides being one."""

    def __call__(self, scope: MutableMapping[str, Any], body: bytes, outlet: "Outlet") -> ASGIApp | None:
        """Whom to give the request to, in a task. None: nobody, it is being answered already."""


class Writer(Protocol):
    """Who writes to an outlet, and is told how its client fares."""

    def on_full(self) -> None:
        """The client is behind: what is written is held in memory until `on_room`."""

    def on_room(self) -> None: ...

    def on_gone(self) -> None:
        """Nothing that is written will arrive."""


class Outlet:
    """Where one answer goes."""

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

    def begin(self, status: int, headers: Headers, body: bytes = b"") -> None:
        """The head, and what there is of a body that comes in chunks. `end` it."""
        self.wrote = True
        if self._silent:
            self._write(b"%b\r\n" % self._head(status, headers))
            return
        self._cycle.chunked_encoding = True
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        self._write(b"%btransfer-encoding: chunked\r\n\r\n%b" % (self._head(status, headers), chunk))

    def write(self, body: bytes) -> None:
        """One chunk, at once. Never an empty one: that would end the body."""
        self.wrote = True
        if not self._silent:
            self._write(b"%x\r\n%b\r\n" % (len(body), body))

    def end(self, body: bytes = b"") -> None:
        """The last chunk. Behind it, the next request of the connection may begin."""
        if not self._silent:
            self._write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n")
        self._complete()

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """All of it, in one piece."""
        # Only here: to Node 20 a reset that follows it would be a clean end of what came in chunks.
        closing = b"" if self._cycle.keep_alive else b"connection: close\r\n"
        head = b"%bcontent-length: %d\r\n%b\r\n" % (self._head(status, headers), len(body), closing)
        self._write(head if self._silent else head + body)
        self._complete()

    def _head(self, status: int, headers: Headers) -> bytes:
        cycle = self._cycle
        cycle.response_started, cycle.waiting_for_100_continue = True, False
        lines = [b"%b: %b\r\n" % header for header in (*cycle.default_headers, *headers, *self.marks)]
        return STATUS_LINE[status] + b"".join(lines)

    def _complete(self) -> None:
        cycle = self._cycle
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def abort(self) -> None:
        """Nobody is to take what came for all of it."""
        self.transport.abort()

    @property
    def behind(self) -> bool:
        """The client is: in a pipeline, from the start."""
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
        self._at_once: AtOnce | None = getattr(self.app, "at_once", None)
        self._open: list[tuple[RequestResponseCycle, Outlet]] = []
        """The requests that are not answered yet: more than one only in a pipeline."""
        self._next: tuple[RequestResponseCycle, ASGI3Application] | None = None
        """What is to begin, as far as uvicorn is concerned."""
        self._held: tuple[RequestResponseCycle, Outlet] | None = None
        """What begins when its body is there."""
        self._asking_since_s = math.inf
        """Since when a request has been on its way that is not whole yet; a new connection is to bring one."""
        self._idle_since_s = math.inf
        self._mute_bytes = 0
        """That have come since the last piece of a body, or the beginning of a head."""
        self._deaf = False
        """What comes is not looked at any more."""
        self._context = copy_context()
        """Of tasks. One may begin behind the end of an answer, in whosever context that is written."""

    def tick(self, now_s: float, request_timeout_s: float) -> None:
        """Whoever sends a request bit by bit, or none at all, holds a connection that others could have."""
        if self.flow.read_paused and math.isfinite(self._asking_since_s):
            # It is us who keep them waiting.
            self._asking_since_s = now_s
        slow = now_s - self._asking_since_s > request_timeout_s
        if slow or now_s - self._idle_since_s > self.timeout_keep_alive:
            self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._asking_since_s = self.loop.time()

    def data_received(self, data: bytes) -> None:
        self._mute_bytes += len(data)
        if self._deaf:
            if self._mute_bytes > UNHEARD_BYTES:
                self.transport.abort()
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self.parser.get_method() != b"CONNECT":
                self._read_again(data[upgrade.args[0] :])
                return
            self._refuse(_BAD)
        except httptools.HttpParserError as error:
            self.logger.warning("Invalid HTTP request received: %s", error.__context__ or error)
            self._refuse(_BAD)
        if self._held is not None and not self._held[0].more_body:
            self._begin(*self._held)
        if self._mute_bytes > HEAD_BYTES and not self._deaf:
            # The parser gathers a header, or a trailer, for as long as it comes.
            self._refuse(_TOO_LARGE)

    def _refuse(self, answer: bytes) -> None:
        """No more is heard. What was asked before is answered before the connection ends: no word of ours comes in
        between; `answer` is for who has asked nothing else."""
        self._deaf, self._asking_since_s = True, math.inf
        in_a_body = bool(self.cycle) and self.cycle.more_body
        if self._open and not in_a_body:
            self.cycle.keep_alive = False
        elif in_a_body and (len(self._open) != 1 or self.cycle.response_started):
            self.transport.abort()
        else:
            self.transport.write(answer)
            # To close it now, with more on its way, would reset it, and the answer with it: the next `tick` does.
            self.transport.write_eof()
            self._asking_since_s = -math.inf
            self._tell_gone()

    def _read_again(self, rest: bytes) -> None:
        """Who would rather speak something else than HTTP/1.1 may be answered in it all the same. But the parser takes
        the body of such a request for what comes next: so it gets the request as one that has no such wish."""
        version = self.parser.get_http_version().encode()
        lines = [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        head = b"%b %b HTTP/%b\r\n%b\r\n" % (self.parser.get_method(), self.url, version, b"".join(lines))
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(head + rest)

    def _would_leave(self) -> bool:
        return bool(self.parser.should_upgrade()) and self.parser.get_method() != b"CONNECT"

    def on_message_begin(self) -> None:
        if len(self._open) > MOST_WAITING:
            raise _TooManyError
        super().on_message_begin()
        self._mute_bytes, self._idle_since_s = 0, math.inf
        if self._asking_since_s == math.inf:
            self._asking_since_s = self.loop.time()

    def on_body(self, body: bytes) -> None:
        self._mute_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._would_leave():
            return
        self._asking_since_s = math.inf
        super().on_message_complete()
        # Also of one that was answered before: that is how it is known whose bytes come next.
        self.cycle.more_body = False

    def on_headers_complete(self) -> None:
        if self._would_leave():
            return
        super().on_headers_complete()
        # It may have begun behind another, whose answer has ended meanwhile.
        self._idle_since_s = math.inf
        # What comes behind a body in chunks is no part of the head.
        self.headers = []
        if self.pipeline:
            # Whoever does not read never hears of a FIN. How many may wait is bounded.
            self.flow.resume_reading()
        cycle = self.cycle
        outlet = Outlet(cycle)
        self.scope["extensions"] = {OUTLET: outlet}  # type: ignore[dict-item]
        self._open.append((cycle, outlet))
        if self._next is not None:
            (_, app), self._next = self._next, None
            if self._at_once is not None and self._is_small():
                self._held = (cycle, outlet)
            else:
                self._begin_task(cycle, app)

    def _is_small(self) -> bool:
        if self.expect_100_continue or self.scope["method"] != "POST":
            return False
        length = next((value for name, value in self.scope["headers"] if name == b"content-length"), b"")
        return length.isdigit() and int(length[-LENGTH_DIGITS:]) <= HELD_BYTES

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._next = (cycle, app)

    def _begin(self, cycle: RequestResponseCycle, outlet: Outlet) -> None:
        """With its body."""
        self._held = None
        app: ASGIApp | None = self.app
        if self._at_once is not None and not self.transport.is_closing():
            try:
                app = self._at_once(cast(MutableMapping[str, Any], cycle.scope), bytes(cycle.body), outlet)
            except Exception as error:
                app = _raising(error)
        if app is not None:
            self._begin_task(cycle, cast(ASGI3Application, app))

    def _begin_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        task = self.loop.create_task(cycle.run_asgi(app), context=self._context.copy())
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_response_complete(self) -> None:
        """Instead of uvicorn's, which has a timer for each idle connection: those are looked at by `tick`."""
        cycle, outlet = self._open.pop(0)
        # Else a request, its outlet and the stream hold one another until the next garbage collection.
        outlet.detach()
        cycle.scope["extensions"] = {}
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            # Always by a task: a long pipeline of what is answered at once would be a deep recursion.
            self._begin_task(*self.pipeline.pop())
        else:
            self._idle_since_s = self.loop.time()

    def pause_writing(self) -> None:
        super().pause_writing()
        for _, outlet in self._open:
            outlet.full()

    def resume_writing(self) -> None:
        super().resume_writing()
        for _, outlet in list(self._open):
            outlet.room()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._tell_gone()
        # As above: each of these holds the connection.
        self.cycle = self.parser = None  # type: ignore[assignment]

    def _tell_gone(self) -> None:
        """Nobody gets an answer any more. uvicorn tells only the last one of a pipeline."""
        for cycle, outlet in self._open:
            cycle.disconnected = True
            cycle.message_event.set()
            outlet.lost()
            cycle.scope["extensions"] = {}
        self._open.clear()
        self.pipeline.clear()
        self._held = None


class _TooManyError(Exception):
    def __str__(self) -> str:
        return f"more than {MOST_WAITING} wait for an answer on one connection"


def _raising(error: Exception) -> ASGIApp:
    """For uvicorn to report, and to answer."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise error

    return app
