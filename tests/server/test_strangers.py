"""Clients that mean no good, and pages of other origins, on a server that others use meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headwater.config.secret import Secret
from headwater.config.settings import KeySettings
from headwater.server.direct import HEAD_BYTES
from tests.server.house import DIALECTS, PATHS, House, Line, asking, open_house

pytestmark = pytest.mark.anyio

APP = "https://app.example.com"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, x-stainless-os"}
KEYS = (KeySettings(owner="ann", key=Secret("a" * 20)),)
KEYED = {"authorization": f"Bearer {'a' * 20}"}


@asynccontextmanager
async def in_use(house: House) -> AsyncIterator[None]:
    """Somebody reads a stream all the while, and loses nothing."""
    line = await house.raw("chat", "chat/sim/tokens-200000@200", stream=True)
    await line.until(b"t0 ")
    yield
    await line.until(b"data")
    assert (await house.post("chat", "chat/sim/tokens-1")).status_code == 200
    await line.leave()


async def closed(line: Line) -> bytes:
    """What was still said. A reset may come before anybody has read it."""
    try:
        return await line.rest()
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/chat/completions HTT",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: ",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
    ],
    ids=["nothing", "a line", "a header", "a body", "a chunk"],
)
async def test_whoever_never_finishes_asking_is_not_waited_for(sent: bytes) -> None:
    """Also one that sends a byte every now and then."""
    async with open_house(request_timeout_s=0.2) as house, in_use(house):
        line = await house.line()
        line.writer.write(sent)

        async def drip() -> None:
            while True:
                line.writer.write(b"x" if sent else b"")
                await asyncio.sleep(0.05)

        dripping = asyncio.create_task(drip())
        # What is no HTTP any more may be told so.
        assert (await closed(line))[:12] in (b"", b"HTTP/1.1 400")
        dripping.cancel()
        assert len(house.simulator.requests) == 1


async def test_a_stream_may_take_longer_than_a_request() -> None:
    async with open_house(request_timeout_s=0.2) as house:
        line = await house.raw("chat", "chat/sim/tokens-30@20", stream=True)
        assert b"t29 " in await line.until(b"[DONE]")
        # And the connection is good for more.
        line.ask(PATHS["chat"], asking("chat", "chat/sim/tokens-1"))
        assert b"200 OK" in await line.until(b"t0 ")


@pytest.mark.parametrize("header", [b"x-a: ", b"x-a: b\r\n"], ids=["one without an end", "without number"])
async def test_headers_without_end_are_cut_off(house: House, header: bytes) -> None:
    async with in_use(house):
        line = await house.line()
        line.writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n" + header)
        piece = (header if header.endswith(b"\n") else b"y") * (4096 // len(header))
        sent = 0
        while sent < 50 * HEAD_BYTES and not line.writer.is_closing():
            line.writer.write(piece)
            sent += len(piece)
            await asyncio.sleep(0)
        assert sent < 50 * HEAD_BYTES
        assert (await closed(line))[:12] in (b"", b"HTTP/1.1 431")


@pytest.mark.parametrize("path", [*PATHS.values(), "/api/runs", "/api/sessions/s/messages"])
async def test_a_hundred_megabytes_are_refused_before_they_are_read(path: str) -> None:
    async with open_house() as house, in_use(house):
        announced, chunked = await house.line(), await house.line()
        announced.writer.write(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000000\r\n\r\n".encode())
        assert b" 413 " in await announced.until(b"\r\n")
        chunked.writer.write(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        megabyte = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        for _ in range(100):
            if chunked.writer.is_closing() or chunked.reader._buffer:  # type: ignore[attr-defined]
                break
            chunked.writer.write(megabyte)
            drained = asyncio.create_task(chunked.writer.drain())
            # A reset is no failure of ours; one that nobody looks at is reported as such.
            drained.add_done_callback(lambda task: task.cancelled() or task.exception())
            await asyncio.wait({drained}, timeout=5)
        assert (await closed(chunked))[:12] in (b"", b"HTTP/1.1 413")
        assert house.buffered_bytes() < 1_000_000


HOSTILE = [
    b"[" * 200_000,
    b'{"messages":' * 50_000,
    b'{"model":"m","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"model":"m","messages":[{"role":"user","content":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}]}",
    b'{"model":"m","messages":[],"tools":[{"x":' + b"[" * 600 + b"]" * 600 + b"}]}",
    b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}',
    b'{"model":"m","max_tokens":1e999}',
    b'{"model":"m","max_tokens":' + b"9" * 10_000 + b"}",
    b'{"model":"' + b"m" * 1_000_000 + b'"}',
    b"\x00\xff\xfe" * 1000,
    b"null",
    b"",
]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_bodies_that_mean_no_good_are_400_or_404(house: House, dialect: str) -> None:
    async with in_use(house):
        for body in HOSTILE:
            answer = await house.http.post(PATHS[dialect], content=body)  # type: ignore[index]
            assert answer.status_code in (400, 404, 413), body[:80]
            assert answer.json()["error"]["message"]
            assert len(answer.content) < 10_000


# -------------------------------------------------------------- other origins


async def test_pages_of_other_origins_are_allowed_nothing_unless_they_are_named(house: House) -> None:
    asked = await house.http.options(PATHS["chat"], headers={"origin": APP, **PREFLIGHT})
    assert asked.status_code == 403
    answer = await house.http.post(PATHS["chat"], headers={"origin": APP}, json=asking("chat", "chat/sim/tokens-1"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross_origin")
    for one in (asked, answer):
        assert not [name for name in one.headers if name.startswith("access-control")]


async def test_a_named_origin_may_ask_with_a_key() -> None:
    async with open_house(cors_origins=(APP,), keys=KEYS) as house:
        asked = await house.http.options(PATHS["chat"], headers={"origin": APP, **PREFLIGHT})
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == APP
        assert asked.headers["access-control-allow-headers"] == "authorization, x-stainless-os"
        body = asking("chat", "chat/sim/tokens-1", stream=True)
        for key, status in (({}, 401), (KEYED, 200)):
            answer = await house.http.post(PATHS["chat"], headers={"origin": APP, **key}, json=body)
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == APP
            assert answer.headers["vary"] == "Origin"
            assert "x-run-id" in answer.headers["access-control-expose-headers"]
            # A cookie is never theirs.
            assert "access-control-allow-credentials" not in answer.headers
        cookie = {"origin": APP, "cookie": f"headwater_key={'a' * 20}"}
        refused = await house.http.post(PATHS["chat"], headers=cookie, json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "cross_origin")
        other = await house.http.post(PATHS["chat"], headers={"origin": "https://evil.example", **KEYED}, json=body)
        assert "access-control-allow-origin" not in other.headers


async def test_a_named_origin_may_ask_on_this_machine_where_there_are_no_keys() -> None:
    async with open_house(cors_origins=("http://localhost:5173",)) as house:
        for origin, status in (("http://localhost:5173", 200), ("http://localhost:5174", 403)):
            headers = {"origin": origin, "sec-fetch-site": "same-site"}
            assert (await house.http.get("/v1/models", headers=headers)).status_code == status
