"""Raw sockets on both sides: an upstream that writes what it is told, and a client that reads what comes."""

import asyncio
import os
import socket
import ssl
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Self

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

LIMIT_S = 20
"""A safety net: nothing here takes a second."""


@asynccontextmanager
async def listening(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port on which every connection is talked to."""
    tasks: set[asyncio.Task[None]] = set()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(accepted, "127.0.0.1", 0, ssl=tls)
    port: int = server.sockets[0].getsockname()[1]
    try:
        yield port
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0)
        await server.wait_closed()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """A whole one: its head and its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
    return head + await reader.readexactly(length)


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


@contextmanager
def nobody_answers() -> Iterator[int]:
    """A port whose listener's queue is full: no handshake ever ends."""
    with socket.socket() as listener, ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield listener.getsockname()[1]


class Left:
    """What is left of sockets and tasks since it was entered."""

    def __enter__(self) -> Self:
        self._before = self._now()
        return self

    def __exit__(self, *_: object) -> None: ...

    def _now(self) -> tuple[set[int], set[str]]:
        sockets = set()
        for fd in map(int, os.listdir("/dev/fd")):
            with suppress(OSError):
                if stat.S_ISSOCK(os.fstat(fd).st_mode):
                    sockets.add(fd)
        # The upstream's side is a task too, for a moment.
        return sockets, {task.get_name() for task in asyncio.all_tasks()}

    async def nothing(self) -> None:
        sockets, tasks = self._before
        await until(lambda: self._now()[0] <= sockets and self._now()[1] <= tasks)


async def until(reached: Callable[[], bool]) -> None:
    for _ in range(LIMIT_S * 1000):
        if reached():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("not reached")
