"""The native API on a real socket, over a real store, in the loop of the test."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec
import uvicorn
from msgspec.structs import replace
from starlette.applications import Starlette

from headwater import sse
from headwater.clock import Clock
from headwater.config.secret import Secret, SecretUrl
from headwater.config.settings import (
    KeySettings,
    ModelSettings,
    ServerSettings,
    Settings,
    StoreSettings,
    UpstreamSettings,
)
from headwater.events import DialectName
from headwater.server.callers import Keyring
from headwater.server.guard import Guard
from headwater.server.native.api import Native
from headwater.server.services import Services
from headwater.testing import Simulator

T = TypeVar("T")

KEYS = {"ann": "a" * 20, "bob": "b" * 20}
MODELS = {
    "fast": "sim/tokens-5",
    "hang": "sim/tokens-9,stall-after-3",
    "cut": "sim/tokens-9,cut-after-3",
    "slow": "sim/tokens-60@200",
    "big": "sim/tokens-3,huge-after-1",
}
"""What the simulator answers, by our names."""
UPSTREAMS: dict[str, DialectName] = {"up": "chat", "responses": "responses", "messages": "messages"}
"""Models are `up`'s, unless they are asked for by an upstream's name."""
WAIT_S = 20.0
"""A safety net: nothing is waited for so long unless it is broken."""


def store_url(kind: str, folder: Path) -> SecretUrl:
    return SecretUrl("memory:" if kind == "memory" else f"sqlite:{folder / 'h.db'}")


TWO_OWNERS = tuple(KeySettings(owner=owner, key=Secret(key), scopes=("chat", "approve")) for owner, key in KEYS.items())


def settings_of(url: SecretUrl, **server: Any) -> Settings:
    return Settings(
        server=ServerSettings(**server),
        store=StoreSettings(url=url),
        models=tuple(ModelSettings(name=name, upstream="up", model=model) for name, model in MODELS.items()),
    )


class Answer(msgspec.Struct):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def error(self) -> Any:
        return self.json["error"]

    @property
    def code(self) -> str:
        return str(self.error["code"])


async def until(look: Callable[[], Awaitable[T]], good: Callable[[T], bool]) -> T:
    """For what nobody tells of."""
    async with asyncio.timeout(WAIT_S):
        while not good(found := await look()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


class Served:
    def __init__(
        self, simulator: Simulator, services: Services, native: Native, url: str, client: aiohttp.ClientSession
    ) -> None:
        self.simulator = simulator
        self.services = services
        self.native = native
        self.url = url
        self._client = client

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        sent = dict(headers or {})
        if key is not None:
            sent["authorization"] = f"Bearer {KEYS.get(key, key)}"
        content = raw if raw is not None else None if body is None else msgspec.json.encode(body)
        if content is not None:
            sent.setdefault("content-type", "application/json")
        async with self._client.request(method, f"{self.url}{path}", data=content, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.ask("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await self.ask("POST", path, {} if body is None else body, **options)

    async def run(self, input: str = "Hello", model: str = "demo/echo", **more: Any) -> Any:
        answer = await self.post("/api/runs", {"input": input, "model": model} | more)
        assert answer.status == 201, answer.body
        return answer.json

    async def session(self, **body: Any) -> str:
        answer = await self.post("/api/sessions", body)
        assert answer.status == 201, answer.body
        return str(answer.json["id"])

    async def say(self, session_id: str, content: str = "Hello", model: str = "demo/echo", **more: Any) -> Any:
        answer = await self.post(f"/api/sessions/{session_id}/messages", {"content": content, "model": model} | more)
        assert answer.status == 201, answer.body
        return answer.json

    async def ended(self, run_id: str) -> Any:
        """The run, once it has."""
        async with asyncio.timeout(WAIT_S):
            await self.services.runs.wait(None, run_id)
        return (await self.get(f"/api/runs/{run_id}")).json

    @asynccontextmanager
    async def stream(self, path: str, **headers: str) -> AsyncIterator["Events"]:
        async with self._client.get(f"{self.url}{path}", headers=headers) as response:
            assert response.status == 200, await response.read()
            yield Events(response)

    async def events(self, run_id: str, after: int = -1) -> list[sse.Frame]:
        """All, to the end of the connection."""
        async with self.stream(f"/api/runs/{run_id}/events?after={after}") as events:
            return await events.rest()


class Events:
    """What comes on a stream, frame by frame."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.seen = b""
        self._decoder = sse.Decoder()
        self._frames: list[sse.Frame] = []

    async def next(self) -> sse.Frame | None:
        async with asyncio.timeout(WAIT_S):
            while not self._frames:
                piece = await self.response.content.readany()
                if not piece:
                    return None
                self.seen += piece
                self._frames += self._decoder.feed(piece)
        return self._frames.pop(0)

    async def until(self, event: str) -> list[sse.Frame]:
        found: list[sse.Frame] = []
        while not found or found[-1].event != event:
            frame = await self.next()
            assert frame is not None, f"no {event} in {[one.event for one in found]}"
            found.append(frame)
        return found

    async def rest(self) -> list[sse.Frame]:
        found: list[sse.Frame] = []
        while (frame := await self.next()) is not None:
            found.append(frame)
        return found


@asynccontextmanager
async def served(settings: Settings, doors_clock: Clock | None = None) -> AsyncIterator[Served]:
    """`doors_clock` is for whom to let in alone."""
    async with Simulator() as simulator:
        upstreams = {
            name: UpstreamSettings(dialect=dialect, base_url=f"{simulator.url}/v1", retries=0, list_models=name == "up")
            for name, dialect in UPSTREAMS.items()
        }
        async with _served(replace(settings, upstreams=upstreams), simulator, doors_clock) as server:
            yield server


def _config(native: Native) -> uvicorn.Config:
    # Whom to believe is the guard's to know: uvicorn believes whatever comes from this machine.
    app = Starlette(routes=native.routes())
    return uvicorn.Config(app, log_level="warning", lifespan="off", proxy_headers=False)


@asynccontextmanager
async def _served(settings: Settings, simulator: Simulator, doors_clock: Clock | None) -> AsyncIterator[Served]:
    # Named, else asyncio leaves Nagle on: 40 ms for every small answer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    services = await Services.open(settings, url)
    clock = doors_clock or services.clock
    guard = Guard(settings.server, Keyring(settings.server.keys, services.store, clock), clock)
    native = Native(services, guard)
    server = uvicorn.Server(_config(native))
    serving = asyncio.create_task(server.serve([listener]))
    client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    try:
        yield Served(simulator, services, native, url, client)
    finally:
        await client.close()
        native.close()
        server.should_exit = True
        await serving
        await services.close()
