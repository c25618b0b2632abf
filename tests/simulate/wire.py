"""A client that hides nothing: the bytes as they come, and how the connection ended."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, Literal

from msgspec import Struct

from headwater.events import DialectName
from headwater.testing import Simulator

DIALECTS: tuple[DialectName, ...] = ("chat", "responses", "messages")
PATHS: dict[DialectName, str] = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}


class Received(Struct, frozen=True):
    data: bytes
    end: Literal["fin", "reset"]

    @property
    def head(self) -> str:
        return self.data.partition(b"\r\n\r\n")[0].decode("latin-1")

    @property
    def status(self) -> int:
        return int(self.head.split(" ", 2)[1])

    @property
    def headers(self) -> dict[str, str]:
        lines = [line.partition(": ") for line in self.head.split("\r\n")[1:]]
        return {name: value for name, _, value in lines}

    @property
    def raw_body(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[2]

    @property
    def chunks(self) -> list[bytes]:
        """Raises ValueError where they are malformed or torn. Ends with an empty one if they end as they should."""
        rest, found = self.raw_body, []
        while rest:
            size, line, after = rest.partition(b"\r\n")
            length = int(size, 16)
            if not line or after[length : length + 2] != b"\r\n":
                raise ValueError(rest[:100])
            found.append(after[:length])
            rest = after[length + 2 :]
        return found

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks) if "transfer-encoding" in self.headers else self.raw_body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def frames(self) -> list[Any]:
        """The JSON of each frame; a terminator as text."""
        lines = [line[6:] for line in self.body.decode().split("\n") if line.startswith("data: ")]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]


def body_for(dialect: DialectName, model: str, **fields: Any) -> dict[str, Any]:
    user = [{"role": "user", "content": "Hello there"}]
    bodies: dict[DialectName, dict[str, Any]] = {
        "chat": {"messages": user},
        "responses": {"input": "Hello there"},
        "messages": {"messages": user, "max_tokens": 100},
    }
    return {"model": model, "stream": True} | bodies[dialect] | fields


def request(
    path: str, body: Any = None, *, method: str = "POST", headers: dict[str, str] | None = None, close: bool = True
) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    fields = {"host": "sim", "content-type": "application/json", "content-length": str(len(data))}
    fields |= {"anthropic-version": "2023-06-01"} | ({"connection": "close"} if close else {}) | (headers or {})
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + data


@contextlib.asynccontextmanager
async def connected(
    simulator: Simulator,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, _, port = simulator.url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**20)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def send(simulator: Simulator, data: bytes) -> Received:
    """Everything up to the end of the connection."""
    async with connected(simulator) as (reader, writer):
        writer.write(data)
        received = b""
        try:
            while piece := await reader.read(2**16):
                received += piece
        except ConnectionResetError:
            return Received(received, "reset")
        return Received(received, "fin")


async def ask(simulator: Simulator, model: str, dialect: DialectName = "chat", **fields: Any) -> Received:
    return await send(simulator, request(PATHS[dialect], body_for(dialect, model, **fields)))
