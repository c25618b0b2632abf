"""Model turns over real sockets that stall, are stopped or held up; TLS and proxies; words that help (C28, C42)."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from headwater.events import AttemptEnded, Completed, DialectName
from headwater.simulate.script import (
    Answer,
    Http,
    Stall,
    Writes,
)
from headwater.testing import Simulator
from tests.upstream.asking import Heard
from tests.upstream.turns import GOOD, HELLO, PATHS, asking, each_dialect
from tests.upstream.wire import listening, nobody_answers

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """As the server has it."""
    return "asyncio", {"use_uvloop": True}


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
        task = asyncio.create_task(up.heard.all_of(turn))
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
