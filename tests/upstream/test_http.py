"""Model turns over real sockets, against the simulator: attempts and connections as the upstream saw them (C20-C30)."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headwater.clock import SystemClock
from headwater.config.settings import UpstreamSettings
from headwater.conversation import Request, Target, Text, Tool, User
from headwater.events import AttemptEnded, Completed, DialectName, Failed, Incomplete, Notice, Outcome
from headwater.simulate.script import (
    Answer,
    BadChunk,
    BadJson,
    Call,
    Cut,
    Fin,
    Http,
    Pace,
    Reset,
    Stall,
    StreamError,
    Writes,
)
from headwater.testing import Simulator
from headwater.upstream.endpoint import Endpoint, Route
from headwater.upstream.http import HttpOpener
from headwater.upstream.model import Model
from headwater.upstream.sweep import Sweep
from tests.upstream.asking import Heard
from tests.upstream.wire import listening, nobody_answers

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """As the server has it."""
    return "asyncio", {"use_uvloop": True}


PATHS: dict[DialectName, str] = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
HEADERS = {
    "content-type": "application/json",
    "authorization": "Bearer k",
    "x-api-key": "k",
    "anthropic-version": "2023-06-01",
}
TOOL = Tool("write", parameters={"type": "object", "properties": {"path": {"type": "string"}}})
HELLO = Request((User((Text("Hello"),)),), tools=(TOOL,))

each_dialect = pytest.mark.parametrize("dialect", PATHS)


class Asking:
    def __init__(self, simulator: Simulator, dialect: DialectName, **settings: Any) -> None:
        self.simulator = simulator
        self.sweep = Sweep(SystemClock())
        self.heard = Heard()
        base_url = settings.pop("base_url", f"{simulator.url}/v1")
        self._max_connections = settings.get("max_connections", 1000)
        config = UpstreamSettings(base_url=base_url, dialect=dialect, **({"backoff_s": 0.0} | settings))
        self.opener = HttpOpener(
            base_url + PATHS[dialect],
            lambda _: HEADERS,
            connect_s=config.connect_timeout_s,
            max_connections=config.max_connections,
        )
        endpoint = Endpoint("up", config, self.opener, needs_finish_reason=True)
        route = Route(endpoint=endpoint, model="m", target=Target(model="m", origin="up"))
        self.model = Model([route], SystemClock(), self.sweep)

    def start(self, heard: Heard | None = None) -> asyncio.Task[Any]:
        turn = self.model.turn(HELLO, call_id_prefix="call_")
        return asyncio.create_task(turn.run(heard or self.heard))

    async def outcome(self, *answers: Answer) -> Outcome:
        self.simulator.script("m", *answers)
        ended = await asyncio.wait_for(self.start(), 20)
        return ended.outcome  # type: ignore[no-any-return]

    async def failure(self, *answers: Answer) -> Failed:
        outcome = await self.outcome(*answers)
        assert isinstance(outcome, Failed)
        return outcome


@asynccontextmanager
async def asking(dialect: DialectName = "chat", **settings: Any) -> AsyncIterator[Asking]:
    async with Simulator() as simulator:
        asking = Asking(simulator, dialect, **settings)
        try:
            yield asking
        finally:
            await asking.sweep.close()
            asking.opener.close()


GOOD = Answer(text="Hi there")


@each_dialect
@pytest.mark.parametrize(
    "writes", [Writes(), Writes(every_bytes=1), Writes(seed=7), Writes(tokens=100), Writes(framing="close")]
)
async def test_an_answer_however_it_is_cut(dialect: DialectName, writes: Writes) -> None:
    async with asking(dialect) as up:
        assert await up.outcome(Answer(text="Hi there, you.", writes=writes)) == Completed("stop")
        assert up.heard.fold.message().text == "Hi there, you."
        [request] = up.simulator.requests
        assert request.complaints == []


@each_dialect
async def test_connections_are_used_again(dialect: DialectName) -> None:
    async with asking(dialect) as up:
        for _ in range(5):
            assert await up.outcome(GOOD) == Completed("stop")
        assert len(up.simulator.connections) == 1


async def test_a_connection_is_used_again_also_if_the_end_of_the_body_comes_late() -> None:
    async with asking() as up:
        late = Answer(text="Hi there", faults=(Stall(at="after_terminator", seconds=0.1),))
        assert await up.outcome(late) == Completed("stop")
        assert up.simulator.requests[0].ending is None
        await up.simulator.wait_for_end(0)
        assert await up.outcome(late) == Completed("stop")
        assert len(up.simulator.connections) == 1


@pytest.mark.parametrize("at", ["before_head", "after_head"])
async def test_a_request_on_a_kept_connection_is_not_sent_twice_in_secret(at: Any) -> None:
    """C20: it may have been taken, and be paid for. `retries = 0` is one attempt."""
    async with asking(retries=0) as up:
        assert await up.outcome(GOOD) == Completed("stop")
        assert isinstance(await up.outcome(Answer(faults=(Fin(at=at),))), Failed)
        assert len(up.simulator.requests) == 2
        assert len(up.simulator.connections) == 1


async def test_a_body_that_never_ends_does_not_keep_its_connection() -> None:
    async with asking() as up:
        assert await up.outcome(Answer(faults=(Stall(at="after_terminator"),))) == Completed("stop")
        assert (await up.simulator.wait_for_close(0)).closed in ("client_fin", "client_reset")


@each_dialect
@pytest.mark.parametrize(
    "fault",
    [
        Reset(at="before_head"),
        Cut(at="before_head"),
        Reset(at="after_head"),
        Fin(at="after_head"),
        Cut(at="after_head"),
        BadChunk(at="after_head"),
        BadJson(at="after_head"),
        StreamError(at="after_head", message="Connection lost", type="api_connection_error"),
    ],
    ids=lambda fault: f"{fault.__struct_config__.tag} {fault.at}",
)
async def test_a_fault_before_the_first_token_is_tried_again(dialect: DialectName, fault: Any) -> None:
    """C20, C24: each attempt on a connection of its own, none left open."""
    async with asking(dialect) as up:
        assert await up.outcome(Answer(faults=(fault,), times=2), GOOD) == Completed("stop")
        assert len(up.simulator.requests) == 3
        assert up.heard.reasons == ["first", "retry", "retry"]
        assert up.heard.fold.message().text == "Hi there"
        # A body that came to its end is no reason to give up its connection.
        if isinstance(fault, Reset | Fin | BadChunk):
            for n in range(2):
                await up.simulator.wait_for_close(n)


@each_dialect
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_status_that_may_pass_is_tried_again(dialect: DialectName, status: int) -> None:
    """C22."""
    async with asking(dialect) as up:
        busy = Answer(http=Http(status=status, headers={"retry-after": "0"}), times=2)
        assert await up.outcome(busy, GOOD) == Completed("stop")
        assert len(up.simulator.requests) == 3


@each_dialect
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_status_that_will_not_pass_is_told_at_once(dialect: DialectName, status: int) -> None:
    """C21."""
    async with asking(dialect) as up:
        failed = await up.failure(Answer(http=Http(status=status, message="You may not.")), GOOD)
        assert (failed.reason, failed.status) == ("refused", status)
        assert failed.message.startswith("You may not.")
        assert len(up.simulator.requests) == 1


@each_dialect
async def test_an_upstream_that_cannot_stream(dialect: DialectName) -> None:
    """C23."""
    async with asking(dialect, retries=0) as up:
        assert await up.outcome(Answer(text="Hi there", streaming="refused")) == Completed("stop")
        assert up.heard.reasons == ["first", "not_streaming"]
        assert up.heard.fold.message().text == "Hi there"


@each_dialect
@pytest.mark.parametrize(
    "fault",
    [Cut(tokens=3), Fin(tokens=3), Reset(tokens=3), BadChunk(tokens=3), BadJson(tokens=3), StreamError(tokens=3)],
    ids=lambda fault: fault.__struct_config__.tag,
)
async def test_what_was_delivered_before_a_fault_is_kept(dialect: DialectName, fault: Any) -> None:
    """C25, C11."""
    async with asking(dialect) as up:
        paced = Pace(delays_s=(0.02, 0.02, 0.02, 0.02))
        failed = await up.failure(Answer(text="one two three four five", faults=(fault,), pace=paced))
        assert failed.reason in ("upstream_truncated", "upstream_error")
        text = up.heard.fold.message().text
        # A reset may overtake what was sent just before it.
        assert "one two three".startswith(text.strip()) or fault.__struct_config__.tag == "bad_json"
        assert text or isinstance(fault, Reset)
        assert len(up.simulator.requests) == 1 or not text
        if isinstance(fault, Reset | Fin | BadChunk):
            await up.simulator.wait_for_close(0)


@each_dialect
@pytest.mark.parametrize("fault", [Cut(at="in_arguments", tokens=1), Fin(at="in_arguments", tokens=1)])
async def test_a_torn_call_is_dropped_and_named(dialect: DialectName, fault: Any) -> None:
    """C26."""
    async with asking(dialect) as up:
        failed = await up.failure(Answer(calls=(Call(arguments={"path": "a" * 50}),), faults=(fault,)))
        assert "Not called: write" in failed.message
        assert [notice.code for notice in up.heard.of(Notice)] == ["tool_call_dropped"]
        assert len(up.simulator.requests) == 1


@each_dialect
async def test_an_unknown_finish_is_never_success(dialect: DialectName) -> None:
    """C14."""
    async with asking(dialect) as up:
        assert "network_error" in (await up.failure(Answer(finish="network_error"))).message


@each_dialect
async def test_a_length_is_no_failure(dialect: DialectName) -> None:
    async with asking(dialect) as up:
        assert await up.outcome(Answer(finish="length")) == Incomplete("length")


@each_dialect
async def test_a_stall_is_told_and_the_connection_closed(dialect: DialectName) -> None:
    """C28: keep-alives don't put it off."""
    async with asking(dialect, idle_timeout_s=0.3, first_token_timeout_s=5, retries=0) as up:
        stall = Stall(tokens=2, keep_alive_s=0.05)
        failed = await up.failure(Answer(text="one two three", faults=(stall,)))
        assert failed.reason == "stalled"
        await up.simulator.wait_for_close(0)


async def test_no_head_is_a_stall() -> None:
    async with asking(first_token_timeout_s=0.3, retries=0) as up:
        assert (await up.failure(Answer(faults=(Stall(at="before_head"),)))).reason == "stalled"
        await up.simulator.wait_for_close(0)


@each_dialect
@pytest.mark.parametrize(
    "fault", [Stall(at="before_head"), Stall(at="in_head"), Stall(at="after_head"), Stall(tokens=2)], ids=lambda f: f.at
)
async def test_a_stop_closes_the_connection(dialect: DialectName, fault: Stall) -> None:
    """C42."""
    async with asking(dialect) as up:
        up.simulator.script("m", Answer(faults=(fault,)))
        task = up.start()
        await up.simulator.wait_for_requests(1)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(up.simulator.wait_for_close(0), 5)
        assert len(up.simulator.requests) == 1


async def test_a_stop_while_connecting_leaves_nothing_behind() -> None:
    with nobody_answers() as port:
        async with asking(base_url=f"http://127.0.0.1:{port}/v1") as up:
            task = up.start()
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


class TestWordsThatHelp:
    async def test_nobody_listens(self) -> None:
        async with asking(base_url="http://127.0.0.1:9/v1", retries=0) as up:
            failed = await up.failure(GOOD)
            assert failed.reason == "upstream_unreachable"
            assert failed.retryable
            assert "127.0.0.1:9" in failed.message
            assert "Check the base_url" in failed.message

    async def test_a_name_that_is_none(self) -> None:
        async with asking(base_url="http://nowhere.invalid/v1", retries=0) as up:
            failed = await up.failure(GOOD)
            assert "'nowhere.invalid' can't be resolved" in failed.message

    async def test_tls_where_there_is_none(self) -> None:
        async with asking() as up:
            url = up.simulator.url.replace("http", "https")
            async with asking(base_url=f"{url}/v1") as tls:
                failed = await tls.failure(GOOD)
                assert "http://" in failed.message
                assert not failed.retryable

    async def test_what_is_not_http(self) -> None:
        async def mail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 mail.example ESMTP\r\n")
            await reader.read(10)
            writer.close()

        server = await asyncio.start_server(mail, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with asking(base_url=f"http://127.0.0.1:{port}/v1", retries=0) as up:
            failed = await up.failure(GOOD)
            assert "is not HTTP" in failed.message
        server.close()
        await server.wait_closed()

    async def test_a_page(self) -> None:
        """A captive portal's."""
        async with asking() as up:
            page = "<html><title>Hotel login</title></html>"
            failed = await up.failure(Answer(http=Http(status=200, headers={"content-type": "text/html"}, body=page)))
            assert "a web page ('Hotel login')" in failed.message
            assert len(up.simulator.requests) == 1

    @each_dialect
    async def test_an_answer_in_another_dialect(self, dialect: DialectName) -> None:
        for other in PATHS:
            if other != dialect:
                async with asking(dialect) as up:
                    failed = await up.failure(Answer(dialect=other))
                    assert f'dialect = "{other}"' in failed.message

    async def test_a_redirect_is_not_followed(self) -> None:
        async with asking() as up:
            moved = Answer(http=Http(status=307, headers={"location": f"{up.simulator.url}/elsewhere"}, body=""))
            failed = await up.failure(moved)
            assert f"redirects to {up.simulator.url}/elsewhere" in failed.message
            assert len(up.simulator.requests) == 1

    async def test_too_many_at_a_time(self) -> None:
        async with asking(max_connections=1, connect_timeout_s=0.2, retries=0) as up:
            up.simulator.script("m", Answer(faults=(Stall(tokens=1),)))
            first = up.start()
            await up.simulator.wait_for_requests(1)
            second = (await up.start(Heard())).outcome
            assert "All 1 connections" in second.message
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            # The slot is free again.
            assert await up.outcome(GOOD) == Completed("stop")


async def test_what_the_head_told_is_kept_with_the_attempt() -> None:
    async with asking() as up:
        headers = {"x-request-id": "req_7", "x-ratelimit-remaining-requests": "59"}
        await up.outcome(Answer(headers=headers))
        [ended] = up.heard.of(AttemptEnded)
        assert ended.request_id == "req_7"
        assert ended.limits["x-ratelimit-remaining-requests"] == "59"


async def test_a_reader_that_is_behind_holds_the_upstream_up() -> None:
    async with asking() as up:
        up.simulator.script("m", Answer(tokens=100_000, writes=Writes(tokens=50)))
        turn = up.model.turn(HELLO, call_id_prefix="call_")
        task = asyncio.create_task(turn.run(up.heard))
        await asyncio.wait_for(up.heard.first.wait(), 10)
        turn.pause()
        seen = len(up.heard.words)
        sent = -1
        while sent != up.simulator.requests[0].sent_bytes:
            sent = up.simulator.requests[0].sent_bytes
            await asyncio.sleep(0.2)
        assert len(up.heard.words) == seen
        turn.resume()
        assert (await task).outcome == Completed("stop")
        assert len(up.heard.words) == 100_000
        assert sent < up.simulator.requests[0].sent_bytes / 2


class TestTlsAndProxies:
    """What stands between us and an upstream, and what is said when it does not let us through."""

    async def test_a_certificate_that_nobody_vouches_for(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(__file__).parent / "localhost.pem")

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with listening(silent, context) as port, asking(base_url=f"https://localhost:{port}/v1") as up:
            failed = await up.failure(GOOD)
            assert "is not trusted" in failed.message
            assert f"localhost:{port}" in failed.message
            assert not failed.retryable

    async def test_a_proxy_that_refuses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            await reader.read()

        async with listening(refuse) as port:
            monkeypatch.setenv("HTTPS_PROXY", f"http://someone:secret@127.0.0.1:{port}")
            async with asking(base_url="https://models.example/v1", retries=0) as up:
                failed = await up.failure(GOOD)
                assert f"The proxy 127.0.0.1:{port} (from the environment) refused" in failed.message
                assert "407" in failed.message
                assert "secret" not in failed.message

    async def test_a_proxy_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        async with asking(base_url="http://models.example/v1", retries=0) as up:
            failed = await up.failure(GOOD)
            assert "The proxy 127.0.0.1:9 (from the environment) can't be reached" in failed.message

    async def test_a_proxy_that_cannot_be_used_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", "socks5://127.0.0.1:9")
        async with asking(base_url="http://models.example/v1", retries=0) as up:
            failed = await up.failure(GOOD)
            assert "HTTP_PROXY" in failed.message

    async def test_a_proxy_hands_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with Simulator() as proxy:
            # It takes the whole address as the path's beginning, as proxies do.
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.setenv("NO_PROXY", "")
            async with asking(base_url="http://models.example/v1", retries=0) as up:
                await up.failure(GOOD)
                assert proxy.requests[0].path.startswith("http://models.example/v1/chat/completions")

    async def test_no_connection_in_time(self) -> None:
        with nobody_answers() as port:
            async with asking(base_url=f"http://127.0.0.1:{port}/v1", connect_timeout_s=0.1, retries=0) as up:
                failed = await up.failure(GOOD)
                assert "within 0.1 s (connect_timeout_s)" in failed.message
