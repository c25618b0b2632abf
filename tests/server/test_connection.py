"""One connection, byte by byte: whatever comes on it, each request is one, and gets its own answer or none."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, cast

import pytest
import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from headwater.dialects.base import Whole
from headwater.server.direct import HEAD_BYTES, MOST_WAITING, UNHEARD_BYTES, DirectProtocol, Outlet
from headwater.server.http import ClientGone, headers_in, read_body, send_whole
from tests.server.house import Line, eventually

pytestmark = pytest.mark.anyio

WHOSE: Final = ContextVar("whose", default="nobody's")
CHUNKED: Final = b"POST %b HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"


class Bare:
    """An application, and an `AtOnce`: what it is asked for by the path."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.headers: list[dict[bytes, bytes]] = []
        self.outlets: list[Outlet] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append((scope["path"], WHOSE.get()))
        if scope["path"] == "/deaf":
            await asyncio.Event().wait()
        if scope["path"] == "/early":
            await send_whole(send, Whole(200, b"early"))
            return
        try:
            body = await read_body(headers_in(scope), receive, 10**9)
        except ClientGone:
            return
        self.headers.append(dict(scope["headers"]))
        await send_whole(send, Whole(200, b"task:" + body))

    def at_once(self, scope: MutableMapping[str, Any], body: bytes, outlet: Outlet) -> ASGIApp | None:
        match scope["path"]:
            case "/raise":
                raise ValueError("a mistake of ours")
            case "/hold":
                self.outlets.append(outlet)
            case "/sync":
                self._answer(outlet)
            case "/now":
                asyncio.get_running_loop().call_soon(self._answer, outlet)
            case _:
                return cast(ASGIApp, self)
        return None

    def _answer(self, outlet: Outlet) -> None:
        WHOSE.set("the first one's")
        outlet.whole(200, [], b"now")


@asynccontextmanager
async def bare() -> AsyncIterator[tuple[Bare, ServerState, Line]]:
    app, state = Bare(), ServerState()
    config = uvicorn.Config(
        cast(Any, app), http=DirectProtocol, interface="asgi3", proxy_headers=False, ws="none", log_config=None
    )
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: DirectProtocol(config, state, {}), "127.0.0.1", 0)
    line = await Line.open(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield app, state, line
    finally:
        await line.leave()
        for task in list(state.tasks):
            task.cancel()
        server.close()


def connection_of(state: ServerState) -> DirectProtocol:
    [connection] = cast(set[DirectProtocol], state.connections)
    return connection


async def test_what_begins_behind_an_end_is_not_in_its_context() -> None:
    async with bare() as (app, _, line):
        line.ask("/now", b"")
        line.ask("/later", b"")
        assert (await line.answer()).endswith(b"now")
        assert (await line.answer()).endswith(b"task:")
        assert app.seen == [("/later", "nobody's")]


async def test_a_mistake_of_ours_is_a_500_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with bare() as (_, _, line):
        line.ask("/raise", b"")
        assert b" 500 " in await line.answer()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR and record.exc_info]


# ------------------------------------------------------------------------ pipelines


async def test_a_pipeline_is_answered_as_far_as_it_may_be_long_and_then_closed() -> None:
    """By no deep recursion, and whatever comes in one read: each head is small."""
    async with bare() as (_, state, line):
        line.ask("/now", b"")
        line.writer.write(Line.request("/sync", b"") * 2999)
        answers = [await line.answer() for _ in range(MOST_WAITING + 1)]
        assert state.total_requests == len(answers)
        assert [b"connection: close" in answer for answer in answers] == [False] * MOST_WAITING + [True]
        assert await line.rest() == b""


async def test_a_pipeline_that_is_left_leaves_nothing() -> None:
    async with bare() as (app, state, line):
        line.writer.write(Line.request("/hold", b"") * 20)
        await eventually(lambda: bool(state.connections) and len(connection_of(state).pipeline) == 19)
        connection = connection_of(state)
        line.reset()
        await eventually(lambda: app.outlets[0].gone)
        assert not connection.pipeline


async def test_who_asks_on_is_still_heard_to_leave() -> None:
    async with bare() as (app, state, line):
        line.ask("/hold", b"")
        await eventually(lambda: bool(app.outlets))
        line.ask("/later", b"")
        await eventually(lambda: len(connection_of(state).pipeline) == 1)
        line.writer.close()
        await eventually(lambda: app.outlets[0].gone)


# -------------------------------------------------------------- what can't be taken


@pytest.mark.parametrize("more", [b"GET / HTTP/1.1\r\nx: " + b"a" * (HEAD_BYTES + 300_000), b"what?\r\n\r\n"])
async def test_nonsense_behind_a_request_is_no_part_of_its_answer(more: bytes) -> None:
    async with bare() as (app, state, line):
        line.ask("/hold", b"")
        await eventually(lambda: bool(app.outlets))
        app.outlets[0].begin(200, [], b"one")
        line.writer.write(more)
        await eventually(lambda: connection_of(state)._deaf)
        app.outlets[0].end(b"two")
        assert (await line.rest()).endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"what?\r\n\r\n", b"400"),
        (b"\0" * (HEAD_BYTES + 300_000), b"400"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * (HEAD_BYTES + 300_000), b"431"),
        (CHUNKED % b"/body" + b"zz\r\n", b"400"),
        (CHUNKED % b"/body" + b"0\r\nx: " + b"a" * (HEAD_BYTES + 300_000), b"431"),
        (CHUNKED % b"/body" + b"0\r\n" + b"x: a\r\n" * (HEAD_BYTES // 6 + 50_000), b"431"),
        (CHUNKED % b"/body" + b"1;x=" + b"a" * (HEAD_BYTES + 300_000), b"431"),
        (b"\r\n" * (HEAD_BYTES // 2 + 150_000), b"431"),
        (b"CONNECT a:443 HTTP/1.1\r\nhost: a\r\n\r\n", b"400"),
    ],
)
async def test_what_can_not_be_taken_is_answered_once_and_closed(said: bytes, status: bytes) -> None:
    async with bare() as (_, state, line):
        line.writer.write(said)
        answer = await line.rest()
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert answer.endswith(b"connection: close\r\ncontent-length: 0\r\n\r\n")
        connection_of(state).tick(asyncio.get_running_loop().time(), 10)
        await eventually(lambda: not state.connections)


async def test_what_was_asked_before_a_connect_is_answered() -> None:
    async with bare() as (_, _, line):
        line.writer.write(Line.request("/sync", b"{}") + b"CONNECT /x HTTP/1.1\r\nhost: a\r\n\r\n")
        assert (await line.answer()).endswith(b"now")
        # The path is one that could be a request's: what is asked of it is told, and then the connection ends.
        assert b"connection: close" in await line.rest()


@pytest.mark.parametrize("path", [b"/early", b"/body"])
async def test_whoever_is_told_that_their_body_is_wrong_gets_no_other_answer(
    path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with bare() as (_, state, line):
        line.writer.write(CHUNKED % path + b"zz\r\n")
        answer = await line.rest()
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1 ") == 1
        await eventually(lambda: not state.tasks)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_who_was_answered_before_their_body_is_told_nothing_more() -> None:
    async with bare() as (_, state, line):
        line.writer.write(CHUNKED % b"/early" + b"0\r\n")
        assert (await line.answer()).endswith(b"early")
        line.writer.write(b"x: " + b"a" * (HEAD_BYTES + 300_000))
        await eventually(lambda: not state.connections)
        with contextlib.suppress(ConnectionError):
            assert await line.rest() == b""


async def test_nonsense_behind_a_body_that_came_late_is_told_so() -> None:
    async with bare() as (_, _, line):
        line.writer.write(CHUNKED % b"/early")
        assert (await line.answer()).endswith(b"early")
        line.writer.write(b"2\r\nhi\r\n0\r\n\r\nwhat?\r\n\r\n")
        assert (await line.rest()).startswith(b"HTTP/1.1 400")


async def test_who_goes_on_and_on_all_the_same_is_cut() -> None:
    async with bare() as (app, _, line):
        line.ask("/hold", b"")
        await eventually(lambda: bool(app.outlets))
        line.writer.write(b"what?\r\n\r\n" + b"x" * (UNHEARD_BYTES + HEAD_BYTES))
        await eventually(lambda: app.outlets[0].gone)


async def test_two_that_can_not_be_told_apart_are_cut() -> None:
    """The first is being answered, and the body of the second is broken: nothing that is said now would be true."""
    async with bare() as (app, _, line):
        line.ask("/hold", b"")
        await eventually(lambda: bool(app.outlets))
        line.writer.write(CHUNKED % b"/body" + b"zz\r\n")
        await eventually(lambda: app.outlets[0].gone)


async def test_what_comes_behind_a_body_is_no_header() -> None:
    async with bare() as (app, _, line):
        line.writer.write(CHUNKED % b"/body" + b"2\r\nhi\r\n0\r\nauthorization: Bearer key\r\n\r\n")
        assert (await line.answer()).endswith(b"task:hi")
        line.ask("/body", b"again")
        assert (await line.answer()).endswith(b"task:again")
        assert [b"authorization" in headers for headers in app.headers] == [False, False]


# -------------------------------------------------------------------------- upgrades


@pytest.mark.parametrize("framing", ["content-length: 21", "transfer-encoding: chunked"])
@pytest.mark.parametrize("pause", [False, True], ids=["together", "apart"])
async def test_a_wish_for_another_protocol_changes_nothing(framing: str, pause: bool) -> None:
    """As Java's client has it with each first request. The body is no second request."""
    wish = (
        "connection: Upgrade, HTTP2-Settings",
        "upgrade: h2c",
        "http2-settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    )
    body = b"GET /now HTTP/1.1\r\n\r\n"
    head = "\r\n".join(["POST /body HTTP/1.1", "host: a", framing, *wish, "", ""]).encode()
    async with bare() as (app, state, line):
        line.writer.write(head)
        if pause:
            await eventually(lambda: bool(app.seen or (state.connections and connection_of(state)._open)))
        line.writer.write(b"15\r\n%b\r\n0\r\n\r\n" % body if "chunked" in framing else body)
        assert (await line.answer()).endswith(b"task:" + body)
        line.ask("/now", b"")
        assert (await line.answer()).endswith(b"now")
        assert b"upgrade" not in app.headers[0]


# ------------------------------------------------------------------------------ time


async def test_an_idle_connection_is_closed_in_time_and_no_other() -> None:
    async with bare() as (_, state, line):
        line.ask("/now", b"")
        await line.answer()
        connection = connection_of(state)
        now_s, keep_s = asyncio.get_running_loop().time(), connection.timeout_keep_alive
        connection.tick(now_s + keep_s - 1, 1.0)
        line.ask("/now", b"")
        await line.answer()
        line.writer.write(b"POST /now HTTP/1.1\r\n")
        await asyncio.sleep(0.05)
        # A request is on its way, which has a limit of its own.
        connection.tick(now_s + keep_s + 1, keep_s * 10)
        line.writer.write(b"host: a\r\ncontent-length: 0\r\n\r\n")
        assert (await line.answer()).endswith(b"now")
        connection.tick(asyncio.get_running_loop().time() + keep_s + 1, 1.0)
        assert await line.rest() == b""


async def test_who_began_to_ask_behind_another_answer_is_not_idle() -> None:
    async with bare() as (app, state, line):
        line.ask("/hold", b"")
        await eventually(lambda: bool(app.outlets))
        line.writer.write(b"POST /hold HTTP/1.1\r\n")
        await asyncio.sleep(0.05)
        app.outlets[0].whole(200, [], b"one")
        await line.answer()
        line.writer.write(b"host: a\r\ncontent-length: 0\r\n\r\n")
        await eventually(lambda: len(app.outlets) == 2)
        connection = connection_of(state)
        connection.tick(asyncio.get_running_loop().time() + connection.timeout_keep_alive + 1, 10)
        assert not connection.transport.is_closing()


async def test_who_is_kept_waiting_is_not_slow() -> None:
    async with bare() as (_, state, line):
        line.writer.write(b"POST /deaf HTTP/1.1\r\nhost: a\r\ncontent-length: 9000000\r\n\r\n" + b"x" * 1_000_000)
        await eventually(lambda: bool(state.connections) and connection_of(state).flow.read_paused)
        connection = connection_of(state)
        now_s = asyncio.get_running_loop().time()
        connection.tick(now_s + 1000, 10)
        connection.tick(now_s + 2000, 10)
        assert not connection.transport.is_closing()


async def test_a_length_may_have_any_number_of_zeros() -> None:
    async with bare() as (_, _, line):
        for path in ("/body", "/now"):
            line.writer.write(f"POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {'0' * 5000}2\r\n\r\nhi".encode())
            assert (await line.answer()).startswith(b"HTTP/1.1 200")
        line.writer.write(f"PUT /body HTTP/1.1\r\nhost: a\r\ncontent-length: {'0' * 5000}2\r\n\r\nhi".encode())
        assert (await line.answer()).endswith(b"task:hi")
