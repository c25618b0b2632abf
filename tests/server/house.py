"""A real server on a real socket, in the test's own loop, in front of a simulator that speaks all three dialects."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import anthropic
import httpx2
import msgspec
import openai
from msgspec import Struct
from msgspec.structs import replace

from headwater.clock import Clock
from headwater.config.secret import Secret, SecretUrl
from headwater.config.settings import ServerSettings, Settings, StoreSettings, UpstreamSettings
from headwater.events import DialectName
from headwater.server.process import Server, server_for
from headwater.server.services import Services
from headwater.sse import Decoder
from headwater.testing import Simulator

DIALECTS: Final[tuple[DialectName, ...]] = ("chat", "responses", "messages")
PATHS: Final[dict[DialectName, str]] = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
SAFETY_S: Final = 120.0
"""No test waits longer. It is no measure of anything."""


def settings_for(simulator: Simulator, store: str = "memory:", **server: Any) -> Settings:
    """An upstream for each dialect, named for it. One attempt: what goes wrong is to be seen.

    On a machine that is very busy, one that has all day would else be given up."""
    upstreams: dict[str, UpstreamSettings] = {
        dialect: UpstreamSettings(
            dialect=dialect,
            base_url=f"{simulator.url}/v1",
            api_key=(Secret("any"),),
            retries=0,
            list_models=False,
            cool_down_s=0,
            connect_timeout_s=SAFETY_S,
            first_token_timeout_s=3600,
            idle_timeout_s=3600,
        )
        for dialect in DIALECTS
    }
    return Settings(
        # No heartbeat finds out for us who is gone.
        server=ServerSettings(**{"heartbeat_s": 3600, **server}),
        store=StoreSettings(url=SecretUrl(store)),
        upstreams=upstreams,
    )


class Clients:
    """Of a server, wherever it runs."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lines: list[Line] = []
        self.http = httpx2.AsyncClient(base_url=url, timeout=SAFETY_S)
        self.openai = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any", timeout=SAFETY_S)
        self.anthropic = anthropic.AsyncAnthropic(base_url=url, api_key="any", timeout=SAFETY_S)

    async def close(self) -> None:
        for line in self._lines:
            await line.leave()
        await self.http.aclose()
        await self.openai.close()
        await self.anthropic.close()

    async def post(self, dialect: DialectName, model: str, *, stream: bool = False, **more: Any) -> httpx2.Response:
        return await self.http.post(PATHS[dialect], json=asking(dialect, model, stream=stream, **more))

    async def events(self, dialect: DialectName, model: str, **more: Any) -> "list[Frame]":
        """All of a stream, read to its clean end."""
        answer = await self.post(dialect, model, stream=True, **more)
        assert answer.status_code == 200, answer.text
        return frames(answer.content)

    async def raw(self, dialect: DialectName, model: str, **more: Any) -> "Line":
        """A connection of its own, on which this was asked."""
        line = await self.line()
        line.ask(PATHS[dialect], asking(dialect, model, **more))
        return line

    async def line(self, *, receive_bytes: int | None = None) -> "Line":
        self._lines.append(await Line.open(self.url, receive_bytes=receive_bytes))
        return self._lines[-1]


class House(Clients):
    """With the server itself at hand."""

    def __init__(self, url: str, server: Server, services: Services, simulator: Simulator) -> None:
        super().__init__(url)
        self.server = server
        self.services = services
        self.simulator = simulator

    def buffered_bytes(self) -> int:
        """What the server holds for clients that have not read it."""
        return sum(one.transport.get_write_buffer_size() for one in self.server.server_state.connections)


class Frame(Struct, frozen=True):
    event: str
    data: Any
    """A text if it is no JSON."""


def frames(body: bytes) -> list[Frame]:
    decoder = Decoder()
    found = [*decoder.feed(body)]
    return [Frame(frame.event or "", _loaded(frame.data)) for frame in found]


def _loaded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return bytes(data).decode()


def asking(dialect: DialectName, model: str, text: str = "Hi", **more: Any) -> dict[str, Any]:
    said = {"input": text} if dialect == "responses" else {"messages": [{"role": "user", "content": text}]}
    limit = {"max_tokens": 1000} if dialect == "messages" else {}
    return {"model": model, **said, **limit, **more}


class Line:
    """One connection to a server, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, url: str, *, receive_bytes: int | None = None) -> Self:
        host, _, port = url.removeprefix("http://").strip("/").rpartition(":")
        wire = socket.socket()
        if receive_bytes is not None:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        wire.setblocking(False)
        await asyncio.get_running_loop().sock_connect(wire, (host, int(port)))
        reader, writer = await asyncio.open_connection(sock=wire, limit=2**16 if receive_bytes is None else 1024)
        return cls(reader, writer)

    @staticmethod
    def request(path: str, body: Any, *headers: str, method: str = "POST") -> bytes:
        sent = body if isinstance(body, bytes) else msgspec.json.encode(body)
        head = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(sent)}", *headers]
        return "\r\n".join([*head, "", ""]).encode() + sent

    def ask(self, path: str, body: Any, *headers: str, method: str = "POST") -> None:
        self.writer.write(self.request(path, body, *headers, method=method))

    async def until(self, mark: bytes) -> bytes:
        async with asyncio.timeout(SAFETY_S):
            return await self.reader.readuntil(mark)

    async def answer(self) -> bytes:
        """One whole answer, its head included."""
        head = await self.until(b"\r\n\r\n")
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return head + (await self.reader.readexactly(int(length)) if length else await self.until(b"0\r\n\r\n"))

    async def rest(self) -> bytes:
        async with asyncio.timeout(SAFETY_S):
            return await self.reader.read()

    async def leave(self) -> None:
        """FIN."""
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()

    def reset(self) -> None:
        """RST."""
        wire = self.writer.get_extra_info("socket")
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.writer.transport.abort()


@asynccontextmanager
async def open_house(store: str = "memory:", clock: Clock | None = None, **server: Any) -> AsyncIterator[House]:
    async with Simulator() as simulator:
        services = await Services.open(settings_for(simulator, store, **server), "http://test/", clock)
        listener = socket.create_server(("127.0.0.1", 0))
        running = server_for(services)
        serving = asyncio.create_task(running.serve([listener]))
        house = House(f"http://127.0.0.1:{listener.getsockname()[1]}", running, services, simulator)
        try:
            yield house
        finally:
            await house.close()
            await services.runs.close()
            running.should_exit = True
            await serving
            await services.close()


async def eventually(condition: Any) -> None:
    """Until it holds. There is news of nearly everything; this is for the rest."""
    async with asyncio.timeout(SAFETY_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def texts(dialect: DialectName, found: Iterable[Frame]) -> str:
    """All text of a stream."""
    said = []
    for frame in found:
        match dialect, frame.data:
            case "chat", {"choices": [{"delta": {"content": str(text)}}]}:
                said.append(text)
            case "responses", {"type": "response.output_text.delta", "delta": str(text)}:
                said.append(text)
            case "messages", {"delta": {"type": "text_delta", "text": str(text)}}:
                said.append(text)
            case _:
                pass
    return "".join(said)


def with_upstream(settings: Settings, name: str, **changes: Any) -> Settings:
    changed = {**settings.upstreams, name: replace(settings.upstreams[name], **changes)}
    return replace(settings, upstreams=changed)
