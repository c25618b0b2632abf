"""The connection to an upstream, on real sockets: however an answer is framed or broken, there is one ending."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headwater.upstream.connection import Connection, Ending, Headers
from headwater.upstream.pool import Address, Pool
from tests.upstream.wire import HEAD, LAST, LIMIT_S, chunked, listening, read_request

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Sockets behave a little differently on each event loop: on both, then."""
    return "asyncio", {"use_uvloop": request.param}


CERTIFICATE = Path(__file__).parent / "localhost.pem"


class Answer:
    """A reader that keeps what it is told."""

    def __init__(self, leave_at: str = "") -> None:
        self.status = 0
        self.headers: Headers = {}
        self.body = b""
        self.ending: Ending | None = None
        self.ended = asyncio.Event()
        self.connection: Connection | None = None
        self._leave_at = leave_at

    def on_head(self, status: int, headers: Headers) -> None:
        assert not self.status
        self.status, self.headers = status, headers
        self._leave("head")

    def on_body(self, data: bytes) -> None:
        assert self.status
        assert data
        self.body += data
        self._leave("body")

    def on_end(self, ending: Ending, rest: bytes) -> None:
        assert self.ending is None
        self.body += rest
        self.ending = ending
        self.ended.set()

    def _leave(self, at: str) -> None:
        if at == self._leave_at:
            assert self.connection is not None
            self.connection.leave(self)


async def ask(pool: Pool, answer: Answer | None = None) -> Answer:
    answer = answer or Answer()
    connection = pool.take() or await pool.connect()
    answer.connection = connection
    connection.ask(pool.head("/v1/x", {"content-type": "text/plain"}) + b"content-length: 2\r\n\r\nHi", answer)
    async with asyncio.timeout(LIMIT_S):
        await answer.ended.wait()
    return answer


async def closed(answer: Answer) -> None:
    assert answer.connection is not None
    for _ in range(LIMIT_S * 1000):
        if not answer.connection.open:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("still open")


async def answered(*pieces: bytes, reset: bool = False) -> Answer:
    """What is made of these bytes, each in a read of its own, and then a close."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.005)
        if not reset:
            writer.close()
            await writer.wait_closed()

    async with listening(talk) as port:
        pool = Pool(Address(False, "127.0.0.1", port))
        answer = await ask(pool)
        pool.close()
        return answer


BODY = chunked(b"one", b"two")
LENGTH = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "body", "ending"),
    [
        pytest.param([HEAD + BODY + LAST], b"onetwo", "clean", id="in one read"),
        pytest.param([bytes([b]) for b in HEAD + BODY + LAST], b"onetwo", "clean", id="byte by byte"),
        pytest.param([LENGTH, b"one", b"two"], b"onetwo", "clean", id="content-length"),
        pytest.param([b"HTTP/1.1 200 OK\r\n\r\none", b"two"], b"onetwo", "clean", id="ended by the close"),
        pytest.param([b"HTTP/1.0 200 OK\r\n\r\none"], b"one", "clean", id="HTTP/1.0"),
        pytest.param([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", "clean", id="no body"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", HEAD, BODY, LAST], b"onetwo", "clean", id="100 first"),
        pytest.param(
            [b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + HEAD + BODY + LAST], b"onetwo", "clean", id="103"
        ),
        pytest.param([HEAD, BODY, b"0\r\nx-trailer: 1\r\n\r\n"], b"onetwo", "clean", id="trailers"),
        pytest.param([HEAD + BODY], b"onetwo", "broken", id="cut between chunks"),
        pytest.param([HEAD + BODY[:-3]], b"onetw", "broken", id="cut inside a chunk"),
        pytest.param([LENGTH, b"one"], b"one", "broken", id="shorter than its length"),
        pytest.param([HEAD], b"", "broken", id="cut after the head"),
        pytest.param([HEAD[:20]], b"", "broken", id="cut inside the head"),
        pytest.param([], b"", "unanswered", id="closed without a word"),
        pytest.param([HEAD, BODY + b"xyz\r\n"], b"onetwo", "malformed", id="a chunk without a size"),
        pytest.param([b"SSH-2.0-OpenSSH_9\r\n"], b"", "malformed", id="not HTTP"),
        pytest.param(
            [b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nabc"], b"", "upgraded", id="upgrade"
        ),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\nx: " + b"y" * 40_000, b"y" * 40_000], b"", "oversized", id="an endless header"
        ),
        pytest.param(
            [HEAD + BODY + b"0\r\nx: ", b"y" * 40_000, b"y" * 40_000], b"onetwo", "oversized", id="an endless trailer"
        ),
    ],
)
async def test_an_answer_ends_in_one_way(pieces: list[bytes], body: bytes, ending: Ending) -> None:
    answer = await answered(*pieces)
    assert (answer.body, answer.ending) == (body, ending)


async def test_a_reset_is_no_clean_end_even_where_a_close_would_be() -> None:
    answer = await answered(HEAD, BODY, reset=True)
    assert answer.body == b"onetwo"
    assert answer.ending in ("broken", "reset")


async def test_the_head_is_told_with_names_in_lower_case() -> None:
    answer = await answered(b"HTTP/1.1 429 Slow down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")
    assert (answer.status, answer.headers) == (429, {"retry-after": "7", "content-length": "0"})


class Upstream:
    """Answers every request with these bytes, and counts."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.connections = 0
        self.requests: list[bytes] = []
        self.closed = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.requests.append(await read_request(reader))
                writer.write(self.answer)
        finally:
            self.closed.set()


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        pytest.param(HEAD + BODY + LAST, 1, id="whole"),
        pytest.param(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 3\r\n\r\none", 3, id="told to close"),
        pytest.param(b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\none", 3, id="HTTP/1.0"),
        pytest.param(HEAD + BODY + LAST + LENGTH + b"stolen", 3, id="an answer too many"),
        pytest.param(HEAD + BODY + LAST + b"rubbish", 3, id="rubbish after it"),
    ],
)
async def test_a_connection_serves_another_request_only_after_a_whole_answer(answer: bytes, connections: int) -> None:
    upstream = Upstream(answer)
    async with listening(upstream.talk) as port:
        pool = Pool(Address(False, "127.0.0.1", port))
        answers = [await ask(pool) for _ in range(3)]
        pool.close()
    assert upstream.connections == connections
    assert {answer.body for answer in answers} <= {b"onetwo", b"one"}


@pytest.mark.parametrize("at", ["head", "body"])
async def test_who_leaves_hears_nothing_more_and_the_upstream_is_closed(at: str) -> None:
    upstream = Upstream(HEAD + BODY)
    async with listening(upstream.talk) as port:
        pool = Pool(Address(False, "127.0.0.1", port))
        answer = Answer(leave_at=at)
        connection = answer.connection = await pool.connect()
        connection.ask(pool.head("/", {}) + b"content-length: 0\r\n\r\n", answer)
        async with asyncio.timeout(LIMIT_S):
            await upstream.closed.wait()
        assert answer.ending is None
        assert answer.body == (b"" if at == "head" else b"onetwo")
        assert pool.take() is None


async def test_an_old_reader_can_not_close_a_connection_that_serves_another() -> None:
    upstream = Upstream(HEAD + BODY + LAST)
    async with listening(upstream.talk) as port:
        pool = Pool(Address(False, "127.0.0.1", port))
        first = await ask(pool)
        assert first.connection is not None
        first.connection.leave(first)
        assert (await ask(pool)).ending == "clean"
        assert upstream.connections == 1
        pool.close()


async def test_a_connection_that_is_paused_at_its_end_is_read_again() -> None:
    upstream = Upstream(HEAD + BODY + LAST)

    class Slow(Answer):
        def on_head(self, status: int, headers: Headers) -> None:
            super().on_head(status, headers)
            assert self.connection is not None
            self.connection.pause()

    async with listening(upstream.talk) as port:
        pool = Pool(Address(False, "127.0.0.1", port))
        await ask(pool, Slow())
        assert (await ask(pool, Slow())).body == b"onetwo"
        assert upstream.connections == 1
        pool.close()


async def test_a_connection_that_the_upstream_closed_while_idle_is_not_given_out() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + BODY + LAST)
        await writer.drain()

    async with listening(once) as port:
        pool = Pool(Address(False, "127.0.0.1", port))
        answer = await ask(pool)
        await closed(answer)
        assert pool.take() is None


async def test_what_is_said_to_an_idle_connection_closes_it() -> None:
    async def chatty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + BODY + LAST)
        await asyncio.sleep(0.01)
        writer.write(LENGTH + b"stolen")
        await reader.read()

    async with listening(chatty) as port:
        pool = Pool(Address(False, "127.0.0.1", port))
        answer = await ask(pool)
        await closed(answer)
        assert (answer.body, pool.take()) == (b"onetwo", None)


async def test_connections_are_not_kept_for_ever() -> None:
    upstream = Upstream(HEAD + BODY + LAST)
    async with listening(upstream.talk) as port:
        pool = Pool(Address(False, "127.0.0.1", port), keep_idle_s=0)
        await ask(pool)
        await ask(pool)
        assert upstream.connections == 2
        pool.close()


async def test_a_refused_connection_is_an_error_of_the_system() -> None:
    async with listening(Upstream(b"").talk) as port:
        pass
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await Pool(Address(False, "127.0.0.1", port)).connect()
