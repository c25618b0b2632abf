"""Requests over HTTP: on a kept connection or a new one, and in which words it is told that there is no answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headwater.errors import UpstreamError
from headwater.events import Failed
from headwater.upstream.http import HttpExchange, HttpOpener
from tests.upstream.wire import HEAD, LAST, LIMIT_S, Left, Talk, chunked, listening, read_request

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@asynccontextmanager
async def opener(talk: Talk, *, tls: bool = False) -> AsyncIterator[HttpOpener]:
    async with listening(talk) as port:
        url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"
        one = HttpOpener(url, lambda key: {"authorization": f"Bearer {key}"}, connect_s=LIMIT_S, max_connections=1)
        try:
            yield one
        finally:
            one.close()


async def whole(exchange: HttpExchange) -> bytes:
    body, ended = bytearray(), asyncio.Event()
    exchange.listen(body.extend, lambda _: ended.set())
    async with asyncio.timeout(LIMIT_S):
        await ended.wait()
    return bytes(body)


async def failure(one: HttpOpener, key: str = "k") -> Failed:
    with pytest.raises(UpstreamError) as caught:
        await one.open(b"{}", key)
    return caught.value.failed


class Upstream:
    """Answers so many requests on each connection, and then closes it with these last bytes."""

    def __init__(self, per_connection: int, last: bytes = b"") -> None:
        self.connections = 0
        self.requests = 0
        self._per_connection = per_connection
        self._last = last

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for _ in range(self._per_connection):
            await read_request(reader)
            self.requests += 1
            writer.write(HEAD + chunked(b"one") + LAST)
        await read_request(reader)
        self.requests += 1
        writer.write(self._last)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


async def test_a_kept_connection_that_is_closed_as_it_is_used_is_a_failure_that_may_be_tried_again() -> None:
    """The request may have been taken, and be paid for: whether to send it once more is policy's to say (C20)."""
    upstream = Upstream(1)
    async with opener(upstream.talk) as one:
        for n in range(1, 4):
            assert await whole(await one.open(b"{}", "k")) == b"one"
            assert (await failure(one)).retryable
            assert (upstream.connections, upstream.requests) == (n, 2 * n)


async def test_a_new_connection_that_is_closed_is_not_asked_again() -> None:
    upstream = Upstream(0)
    async with opener(upstream.talk) as one:
        failed = await failure(one)
        assert "closed the connection before it had answered" in failed.message
        assert failed.retryable
        # The only slot is free again.
        await failure(one)
        assert (upstream.connections, upstream.requests) == (2, 2)


async def test_a_kept_connection_that_had_begun_to_answer_is_not_asked_again() -> None:
    upstream = Upstream(1, HEAD[:20])
    async with opener(upstream.talk) as one:
        await whole(await one.open(b"{}", "k"))
        assert "closed the connection" in (await failure(one)).message
        assert (upstream.connections, upstream.requests) == (1, 2)


async def test_a_key_that_can_not_be_sent_is_not_told_and_costs_no_connection() -> None:
    upstream = Upstream(0)
    async with opener(upstream.talk) as one:
        with Left() as left:
            failed = await failure(one, "s3cret\n")
            assert "the header 'authorization'" in failed.message
            assert "s3cret" not in repr(failed)
            assert not failed.retryable
            with pytest.raises(UpstreamError, match="authorization"):
                await one.get(10, "s3cret\n")
            await left.nothing()
        assert upstream.connections == 0


@pytest.mark.parametrize(
    ("answer", "words", "retryable"),
    [
        pytest.param(b"220 mail.example\r\n", "is not HTTP", True, id="not HTTP"),
        pytest.param(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 80_000, "is too large: over 64 kB", True, id="a large head"),
        pytest.param(
            b"HTTP/1.1 101 Switch\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            "another protocol",
            True,
            id="an upgrade",
        ),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", "with nothing (status 204)", False, id="no content"),
    ],
)
async def test_what_is_no_answer_has_words_of_its_own(answer: bytes, words: str, *, retryable: bool) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await reader.read()

    async with opener(talk) as one:
        failed = await failure(one)
        assert words in failed.message
        assert failed.retryable == retryable


async def test_a_proxy_that_wants_a_login_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        await reader.read()

    async with listening(refuse) as port:
        monkeypatch.setenv("https_proxy", f"http://someone:s3cret@127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "")
        one = HttpOpener("https://models.example/v1", lambda _: {}, connect_s=LIMIT_S, max_connections=1)
        failed = await failure(one)
        assert "407" in failed.message
        assert f"http://user:password@127.0.0.1:{port}" in failed.message
        assert "s3cret" not in failed.message
        assert not failed.retryable
