"""A server that answers each connection as the test has written it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from headwater import sse
from headwater.clock import SystemClock
from headwater.events import Entry, Event, encode_entry, wire_name

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
CLEAN_END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def frame(seq: int, event: Event) -> bytes:
    return sse.encode(encode_entry(Entry(seq, 0.0, event)), event=wire_name(event), id=seq)


def refusal(status: int, body: bytes, headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d No\r\n%bcontent-length: %d\r\n\r\n%b" % (status, headers, len(body), body)


class Wire:
    """One connection, once the request has come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, *data: bytes) -> None:
        self._writer.write(b"".join(data))
        await self._writer.drain()

    def abort(self) -> None:
        self._writer.transport.abort()

    async def request(self) -> None:
        """Until another one has come."""
        await self._reader.readuntil(b"\r\n\r\n")

    async def gone(self) -> None:
        """Until the client has left."""
        while await self._reader.read(1000):
            pass


Answer = bytes | Callable[[Wire], Awaitable[None]]
"""Bytes, after which the connection is closed; or something else to do."""


class Server:
    def __init__(self, answers: tuple[Answer, ...]) -> None:
        self._answers = list(answers)
        self.requests: list[str] = []
        self.url = ""

    @property
    def cursors(self) -> list[str | None]:
        """The `Last-Event-ID` of each request."""
        return [self._header(request, "last-event-id") for request in self.requests]

    def _header(self, request: str, name: str) -> str | None:
        lines = [line.partition(": ") for line in request.split("\r\n")[1:]]
        return next((value for key, _, value in lines if key == name), None)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        answer = self._answers.pop(0)
        wire = Wire(reader, writer)
        try:
            await (wire.send(answer) if isinstance(answer, bytes) else answer(wire))
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[Server]:
    scripted = Server(answers)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    scripted.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api/runs/run_1/events"
    try:
        yield scripted
    finally:
        server.close()


class HurriedClock(SystemClock):
    """Nobody waits: what is slept is noted. `step_s` passes with each look at the time."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.slept: list[float] = []
        self._now_s = 0.0
        self._step_s = step_s

    def now_s(self) -> float:
        self._now_s += self._step_s
        return self._now_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
