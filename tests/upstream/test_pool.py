"""The pool of connections: how one is made, what a stop leaves of it, and how long it is kept."""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from headwater.upstream.pool import Address, Pool
from headwater.upstream.resolve import Peer, Resolver, look_up
from tests.upstream.test_connection import BODY, Answer, Upstream, ask, closed
from tests.upstream.test_proxy import contexts
from tests.upstream.wire import HEAD, LAST, LIMIT_S, Left, Talk, listening, nobody_answers, until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


async def test_a_dead_first_address_leaves_time_for_the_second() -> None:
    upstream = Upstream(HEAD + BODY + LAST)
    async with listening(upstream.talk) as port:
        with nobody_answers() as silent:

            def both(host: str, _: int) -> Sequence[Peer]:
                return [*look_up("127.0.0.1", silent), *look_up("127.0.0.1", port)]

            pool = Pool(Address(False, "two.example", 80), resolver=Resolver(both))
            assert (await ask(pool)).body == b"onetwo"
            pool.close()


async def stopped(pool: Pool, at: asyncio.Event | None = None) -> None:
    """Connects until `at`, or for a moment, and is told to stop."""
    task = asyncio.create_task(pool.connect(), name="to be stopped")
    async with asyncio.timeout(LIMIT_S):
        await (at.wait() if at else asyncio.sleep(0.05))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class TestAStopLeavesNothing:
    """C42, while connecting."""

    async def test_in_the_lookup(self) -> None:
        loop, asked, let_go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def silent(host: str, port: int) -> Sequence[Peer]:
            loop.call_soon_threadsafe(asked.set)
            let_go.wait(LIMIT_S)
            return ()

        with Left() as left:
            await stopped(Pool(Address(False, "silent.example", 80), resolver=Resolver(silent)), asked)
            await left.nothing()
        let_go.set()

    @pytest.mark.parametrize("tls", [False, True])
    async def test_in_the_connecting(self, *, tls: bool) -> None:
        with nobody_answers() as port, Left() as left:
            await stopped(Pool(Address(tls, "127.0.0.1", port), tls=contexts()[1] if tls else None))
            await left.nothing()

    async def test_in_the_handshake(self) -> None:
        greeted = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(10)
            greeted.set()
            await reader.read()

        async with listening(silent) as port:
            with Left() as left:
                await stopped(Pool(Address(True, "localhost", port), tls=contexts()[1]), greeted)
                await left.nothing()

    @pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["asking", "in the handshake"])
    async def test_in_a_proxy(self, answer: bytes) -> None:
        asked = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            if answer:
                await reader.readexactly(10)
            asked.set()
            await reader.read()

        async with listening(silent) as port:
            with Left() as left:
                way = Address(False, "127.0.0.1", port)
                await stopped(Pool(Address(True, "localhost", 1), proxy=way, tls=contexts()[1]), asked)
                await left.nothing()

    @pytest.mark.parametrize("steps", range(12))
    async def test_at_any_step(self, steps: int) -> None:
        server, client = contexts()
        async with listening(Upstream(b"").talk, server) as port:
            pool = Pool(Address(True, "localhost", port), tls=client)
            with Left() as left:
                task = asyncio.create_task(pool.connect(), name="to be stopped")
                for _ in range(steps):
                    await asyncio.sleep(0)
                if task.cancel():
                    [connection] = await asyncio.gather(task, return_exceptions=True)
                    assert isinstance(connection, asyncio.CancelledError)
                else:
                    # On a slow machine so many turns of the loop are enough.
                    task.result().close()
                await left.nothing()


def says(greeting: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        await writer.drain()
        await reader.read(1)

    return talk


class TestAServerThatSpeaksFirst:
    async def test_that_it_is_full(self) -> None:
        async with listening(says(b"HTTP/1.1 503 Full\r\ncontent-length: 2\r\n\r\nNo")) as port:
            for _ in range(5):
                answer = await ask(Pool(Address(False, "127.0.0.1", port)))
                assert (answer.status, answer.body, answer.ending) == (503, b"No", "clean")

    async def test_and_is_none_of_http(self) -> None:
        async with listening(says(b"220 mail.example ESMTP\r\n")) as port:
            for _ in range(5):
                assert (await ask(Pool(Address(False, "127.0.0.1", port)))).ending == "malformed"

    async def test_and_has_no_tls(self) -> None:
        async with listening(says(b"220 mail.example ESMTP\r\n")) as port:
            for _ in range(5):
                with pytest.raises(OSError, match=r"speaks first|WRONG_VERSION|RECORD"):
                    await Pool(Address(True, "localhost", port), tls=contexts()[1]).connect()

    async def test_after_which_it_is_gone(self) -> None:
        async def gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.abort()

        async with listening(gone) as port:
            pool = Pool(Address(False, "127.0.0.1", port))
            connection = await pool.connect()
            await until(lambda: not connection.open)
            for _ in range(2):
                answer = Answer()
                connection.ask(b"Hello", answer)
                async with asyncio.timeout(LIMIT_S):
                    await answer.ended.wait()
                assert answer.ending == "unanswered"


class TestKeeping:
    @pytest.mark.parametrize("tls", [False, True])
    async def test_a_connection_whose_request_is_not_all_sent_is_not_kept(self, *, tls: bool) -> None:
        server, client = contexts()

        async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too much\r\ncontent-length: 2\r\n\r\nNo")
            await asyncio.Event().wait()

        async with listening(early, server if tls else None) as port:
            pool = Pool(Address(tls, "localhost", port), tls=client if tls else None)
            answer = Answer()
            connection = answer.connection = await pool.connect()
            length = 30_000_000
            connection.ask(pool.head("/", {}) + b"content-length: %d\r\n\r\n%b" % (length, b"x" * length), answer)
            async with asyncio.timeout(LIMIT_S):
                await answer.ended.wait()
            assert (answer.status, answer.body, answer.ending) == (413, b"No", "clean")
            assert pool.take() is None
            await closed(answer)

    async def test_an_early_answer_that_ends_with_the_connection_ends(self) -> None:
        async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.0 413 Too much\r\n\r\nNo")
            writer.write_eof()
            await asyncio.Event().wait()

        async with listening(early) as port:
            pool = Pool(Address(False, "127.0.0.1", port))
            answer = Answer()
            (await pool.connect()).ask(pool.head("/", {}) + b"content-length: 9\r\n\r\n" + b"x" * 30_000_000, answer)
            async with asyncio.timeout(LIMIT_S):
                await answer.ended.wait()
            assert (answer.body, answer.ending) == (b"No", "clean")

    async def test_a_bursts_connections_go_by_themselves(self) -> None:
        upstream = Upstream(HEAD + BODY + LAST)
        async with listening(upstream.talk) as port:
            pool = Pool(Address(False, "127.0.0.1", port), keep_idle_s=0.05)
            with Left() as left:
                connections = [await pool.connect() for _ in range(5)]
                answers = [Answer() for _ in connections]
                for connection, answer in zip(connections, answers, strict=True):
                    connection.ask(pool.head("/", {}) + b"content-length: 0\r\n\r\n", answer)
                for answer in answers:
                    await answer.ended.wait()
                    await asyncio.sleep(0.01)
                await left.nothing()
            assert not any(connection.open for connection in connections)
            pool.close()

    async def test_one_that_is_too_old_is_not_given_out_even_if_the_timer_is_late(self) -> None:
        upstream = Upstream(HEAD + BODY + LAST)
        async with listening(upstream.talk) as port:
            pool = Pool(Address(False, "127.0.0.1", port), keep_idle_s=0.05)
            answer = await ask(pool)
            # The loop is held up.
            time.sleep(0.06)  # noqa: ASYNC251
            assert pool.take() is None
            await closed(answer)

    @pytest.mark.parametrize(
        ("says", "kept"),
        [(b"timeout=60", True), (b"max=3", True), (b"timeout=1, max=3", False), (b"Timeout=0", False)],
    )
    async def test_no_longer_than_the_upstream_says(self, says: bytes, *, kept: bool) -> None:
        upstream = Upstream(b"HTTP/1.1 200 OK\r\nKeep-Alive: %b\r\ncontent-length: 0\r\n\r\n" % says)
        async with listening(upstream.talk) as port:
            pool = Pool(Address(False, "127.0.0.1", port))
            await ask(pool)
            assert (pool.take() is not None) == kept
            pool.close()

    async def test_a_closed_pool_takes_nothing_back(self) -> None:
        upstream = Upstream(HEAD + BODY + LAST)
        async with listening(upstream.talk) as port:
            pool = Pool(Address(False, "127.0.0.1", port))
            pool.close()
            answer = await ask(pool)
            assert pool.take() is None
            await closed(answer)
