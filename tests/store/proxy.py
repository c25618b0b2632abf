"""Between a worker and its Postgres: passes everything on, until it is told to lose something."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

SOCKET = ".s.PGSQL.5432"
CANCEL_REQUEST = b"\0\0\0\x10\x04\xd2\x16\x2e"


class Proxy:
    def __init__(self, server_folder: str) -> None:
        self._server = f"{server_folder}/{SOCKET}"
        self._open: set[asyncio.StreamWriter] = set()
        self.refusing = False
        self.deaf = False
        """Notifications are lost, as in a pooler."""
        self.losing: Literal["request", "answer"] = "answer"
        self.loses: Callable[[bytes], bool] | None = None
        """Of which request that, once; the connection is then cut."""
        self.lost = asyncio.Event()
        self.refuse_then = False
        """After that nobody gets through any more."""
        self.silent = False
        """Answers are lost."""
        self._flows = asyncio.Event()
        self.thaw()
        self.silent_from: Callable[[bytes], bool] | None = None
        """From which question on that."""
        self.cut_on_cancel = False
        """Who takes a question back is cut off at that moment."""

    def freeze(self) -> None:
        """Nothing is passed on, either way, and every connection stays open."""
        self._flows.clear()

    def thaw(self) -> None:
        """What was held back arrives."""
        self._flows.set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.close()
            return
        try:
            from_server, to_server = await asyncio.open_unix_connection(self._server)
        except OSError:
            # It is not there, as while it is restarted.
            writer.close()
            return
        both = {writer, to_server}
        self._open |= both
        back = asyncio.create_task(self._back(from_server, writer))
        try:
            while data := await reader.read(1 << 20):
                await self._flows.wait()
                if self.cut_on_cancel and data.startswith(CANCEL_REQUEST):
                    self.refusing = True
                    self.cut()
                    break
                if self.silent_from is not None and self.silent_from(data):
                    self.silent, self.silent_from = True, None
                if self.loses is not None and self.loses(data):
                    back.cancel()
                    await asyncio.wait([back])
                    if self.losing == "answer":
                        to_server.write(data)
                        await from_server.read(1)
                    self.loses, self.refusing = None, self.refuse_then
                    self.lost.set()
                    break
                to_server.write(data)
        except ConnectionError:
            pass
        finally:
            back.cancel()
            self._open -= both
            for one in both:
                one.close()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                await self._flows.wait()
                if not self.silent and not (self.deaf and data.startswith(b"A")):
                    writer.write(data)
        writer.close()

    def cut(self) -> None:
        """All that are connected are so no longer."""
        for writer in tuple(self._open):
            writer.transport.abort()


@asynccontextmanager
async def proxied(url: str, folder: Path) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before the server of this url, and its own."""
    server_folder = parse_qs(urlsplit(url).query)["host"][0]
    proxy = Proxy(server_folder)
    listening = await asyncio.start_unix_server(proxy.connected, folder / SOCKET)
    try:
        yield proxy, url.replace(server_folder, str(folder))
    finally:
        listening.close()
        proxy.thaw()
        proxy.cut()
