"""The way of a token through real sockets: what the client sees, and when the upstream is let go."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from bench.skeleton import Gateway
from uvicorn.server import ServerState

from headwater.server.direct import DirectProtocol
from tests.upstream.wire import HEAD, LAST, LIMIT_S, Talk, chunked, listening, read_request

pytestmark = pytest.mark.anyio
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def token(text: str) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}\n\n' % text.encode()


def request(method: str = "POST", *headers: str, version: str = "1.1") -> bytes:
    lines = [f"{method} /v1/chat/completions HTTP/{version}", "host: h", "content-length: 2", *headers]
    return "\r\n".join([*lines, "", "{}"]).encode()


class Upstream:
    """Streams two tokens and its end, each in a write of its own, unless it is told to break off."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces or (HEAD, chunked(token("a")), chunked(token("b")), chunked(FINISH) + LAST)
        self.connections = 0
        self.asked = asyncio.Event()
        self.closed = asyncio.Event()
        self.go_on = True

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                await read_request(reader)
                self.asked.set()
                for piece in self.pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.002)
                if not self.go_on:
                    return
        finally:
            self.closed.set()


@asynccontextmanager
async def serving(talk: Talk, mode: str = "chat", database: str = "") -> AsyncIterator[int]:
    async with listening(talk) as upstream_port:
        config = uvicorn.Config(Gateway(upstream_port, mode, database), http=DirectProtocol, log_config=None)
        config.load()
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: DirectProtocol(config, state, {}), "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for connection in list(state.connections):
                connection.transport.abort()
            await asyncio.gather(*state.tasks)


@asynccontextmanager
async def client(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(LIMIT_S):
            yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def read_answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    body = b""
    while True:
        size = int(await reader.readuntil(b"\r\n"), 16)
        body += (await reader.readexactly(size + 2))[:-2]
        if not size:
            return head, body


def said(body: bytes) -> str:
    return "".join(part.split(b'"')[0].decode() for part in body.split(b'"content":"')[1:])


@pytest.mark.parametrize("mode", ["pass", "chat", "loop", "thread"])
async def test_connections_on_both_sides_serve_one_request_after_another(mode: str, tmp_path: Path) -> None:
    upstream = Upstream()
    async with serving(upstream.talk, mode, str(tmp_path / "db")) as port, client(port) as (reader, writer):
        for _ in range(3):
            writer.write(request())
            head, body = await read_answer(reader)
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert said(body) == "ab"
            assert body.endswith(b"data: [DONE]\n\n")
    assert upstream.connections == 1


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serving(Upstream().talk) as port, client(port) as (reader, writer):
        writer.write(request() * 3)
        bodies = [(await read_answer(reader))[1] for _ in range(3)]
        assert [said(body) for body in bodies] == ["ab"] * 3
        assert b"chatcmpl-1" in bodies[0]
        assert b"chatcmpl-3" in bodies[2]


@pytest.mark.parametrize("asking", [request("POST", "connection: close"), request(version="1.0")])
async def test_a_client_that_wants_the_connection_closed_gets_it(asking: bytes) -> None:
    async with serving(Upstream().talk) as port, client(port) as (reader, writer):
        writer.write(asking)
        assert said((await read_answer(reader))[1]) == "ab"
        assert await reader.read() == b""


async def test_an_answer_to_head_has_no_body() -> None:
    async with serving(Upstream().talk) as port, client(port) as (reader, writer):
        writer.write(request("HEAD") + request())
        assert b"chunked" not in await reader.readuntil(b"\r\n\r\n")
        assert said((await read_answer(reader))[1]) == "ab"


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        pytest.param([HEAD, chunked(token("a"))], b"upstream_truncated", id="cut"),
        pytest.param([HEAD, chunked(token("a")), b"rubbish\r\n"], b"upstream_truncated", id="malformed"),
        pytest.param([HEAD, chunked(token("a"), b"data: {nonsense\n\n")], b"upstream_error", id="unreadable"),
        pytest.param([], b"upstream_truncated", id="closed before the head"),
    ],
)
async def test_a_broken_upstream_is_told_to_the_client_and_not_asked_again(pieces: list[bytes], code: bytes) -> None:
    upstream = Upstream(*pieces)
    upstream.pieces = tuple(pieces)
    upstream.go_on = False
    async with serving(upstream.talk) as port, client(port) as (reader, writer):
        for _ in range(2):
            writer.write(request())
            body = (await read_answer(reader))[1]
            assert said(body) == ("a" if pieces else "")
            assert b'"code":"%b"' % code in body
            assert b"[DONE]" not in body
    assert upstream.connections == 2


async def test_an_upstream_that_is_not_there_is_told_to_the_client() -> None:
    async with listening(Upstream().talk) as nobody:
        pass
    config = uvicorn.Config(Gateway(nobody, "chat", ""), http=DirectProtocol, log_config=None)
    config.load()
    server = await asyncio.get_running_loop().create_server(
        lambda: DirectProtocol(config, ServerState(), {}), "127.0.0.1", 0
    )
    async with client(server.sockets[0].getsockname()[1]) as (reader, writer):
        writer.write(request())
        assert b'"error"' in (await read_answer(reader))[1]
    server.close()


@pytest.mark.parametrize("pieces", [[b""], [HEAD], [HEAD, chunked(token("a"))]], ids=["asked", "head", "token"])
async def test_a_client_that_leaves_closes_the_upstream_at_once(pieces: list[bytes]) -> None:
    """C41, also while the upstream is silent."""
    upstream = Upstream(*pieces)
    async with serving(upstream.talk) as port:
        async with client(port) as (reader, writer):
            writer.write(request())
            await upstream.asked.wait()
            if len(pieces) == 2:
                await reader.readuntil(b'"content":"a"')
        async with asyncio.timeout(LIMIT_S):
            await upstream.closed.wait()


async def test_a_pipeline_that_is_left_closes_the_upstream_of_the_request_that_runs() -> None:
    upstream = Upstream(HEAD, chunked(token("a")), *[chunked(token("b" * 1000))] * 2000)
    async with serving(upstream.talk) as port:
        async with client(port) as (reader, writer):
            writer.write(request() * 2)
            await reader.readuntil(b'"content":"a"')
        async with asyncio.timeout(LIMIT_S):
            await upstream.closed.wait()


async def test_a_slow_client_holds_up_the_upstream_and_misses_nothing() -> None:
    """C50, and no more than the sockets' own buffers is held in memory."""
    written = 0
    word, count = "x" * 10_000, 4_000

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await read_request(reader)
        writer.write(HEAD)
        for _ in range(count):
            writer.write(chunked(token(word)))
            await writer.drain()
            written += 1
        writer.write(chunked(FINISH) + LAST)
        await reader.read()

    async with serving(flood) as port, client(port) as (reader, writer):
        writer.write(request())
        await reader.readuntil(b"\r\n\r\n")
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(0.2)
        assert 0 < written < count
        received = 0
        while received < count:
            size = int(await reader.readuntil(b"\r\n"), 16)
            received += (await reader.readexactly(size + 2)).count(b'"content":"')
        assert received == count
