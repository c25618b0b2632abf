"""Requests that no client of good will sends: a clear 4xx, or a closed connection, and everybody else is served."""

import asyncio
import contextlib
import logging
from pathlib import Path

import pytest

from headwater.errors import StoreError
from headwater.server.native.serving import NoPath, PathApp
from tests.server_native.serving import Served, served, settings_of, store_url

pytestmark = pytest.mark.anyio


async def is_well(server: Served) -> bool:
    return (await server.get("/api/me")).status == 200


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "invalid_value"),
        (b"{", "invalid_json"),
        (b"nonsense", "invalid_json"),
        (b"[]", "invalid_value"),
        (b"null", "invalid_value"),
        (b'{"input": "\xff\xfe"}', "invalid_json"),
        (b'{"input": "\\ud800"}', "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b'{"parameters": ' * 50_000, "invalid_json"),
        (b'{"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "invalid_json"),
        (b'{"input": "a", "parameters": {"max_tokens": 1e400}}', "invalid_value"),
        (b'{"input": "a", "parameters": {"seed": 99999999999999999999999}}', "invalid_value"),
    ],
)
async def test_a_body_that_is_wrong_is_400(server: Served, raw: bytes, code: str) -> None:
    answer = await server.ask("POST", "/api/runs", raw=raw)
    assert answer.status == 400
    assert answer.code in (code, "invalid_json", "invalid_value", "unknown_parameter")
    assert await is_well(server)


async def test_a_null_character_harms_nobody(server: Served) -> None:
    session_id = await server.session(title="a\x00b")
    said = await server.say(session_id, "x\x00y")
    await server.ended(said["run"]["id"])
    items = (await server.get(f"/api/sessions/{session_id}/messages")).json["items"]
    assert items[0]["content"] == "x\x00y"
    assert (await server.get("/api/sessions/search?q=%00")).status == 200


async def test_a_body_that_is_too_large_is_413_before_it_is_read(tmp_path: Path) -> None:
    async with served(settings_of(store_url("memory", tmp_path), max_body_bytes=1000)) as server:
        answer = await server.ask("POST", "/api/runs", raw=b"x" * 1001)
        assert (answer.status, answer.code) == (413, "body_too_large")
        assert (await server.ask("POST", "/api/runs", raw=b" " * 1000)).status == 400
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST /api/runs HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head.encode())
        # Nobody has said how much it will be, and it does not end.
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                writer.write(b"64\r\n" + b"x" * 100 + b"\r\n")
                await writer.drain()
        assert b"413" in await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        announced = f"POST /api/runs HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100000000\r\n\r\n"
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(announced.encode())
        assert b"413" in await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        assert await is_well(server)


async def test_a_client_that_leaves_in_the_midst_of_its_body_leaves_nothing(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    for _ in range(5):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"POST /api/runs HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\n{{".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    assert await is_well(server)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_what_is_not_there_is_404(server: Served) -> None:
    answer = await server.get("/api/nothing/at/all")
    assert (answer.status, answer.code) == (404, "not_found")


async def test_other_methods_and_media_types_are_refused(server: Served) -> None:
    for method in ("DELETE", "HEAD", "OPTIONS", "PUT"):
        answer = await server.ask(method, "/api/runs")
        assert answer.status == 405
        assert answer.headers["allow"] == "POST, GET"
        assert "access-control-allow-origin" not in answer.headers
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = await server.ask("POST", "/api/runs", raw=b"a=b", headers=form)
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    charset = {"content-type": "application/json; charset=utf-8"}
    assert (await server.post("/api/runs", {"model": "fast", "input": "x"}, headers=charset)).status == 201


@pytest.mark.parametrize(
    "query", ["after=x", "after=-5", "after=99999999999999999999999999", "nothing=1", "&".join("abcdef"[n % 6] * n + "=1" for n in range(1, 150))]
)  # fmt: skip
async def test_a_query_that_is_wrong_is_400(server: Served, query: str) -> None:
    run_id = (await server.run(model="fast"))["id"]
    answer = await server.get(f"/api/runs/{run_id}/events?{query}")
    assert answer.status == 400
    assert answer.json["error"]["message"]


async def test_what_was_said_is_in_no_log_and_no_error(keyed: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="headwater")
    said = {"model": "cut", "input": "my secret prompt"}
    run_id = (await keyed.post("/api/runs", said, key="ann")).json["id"]
    await keyed.services.runs.wait("ann", run_id)
    wrong = await keyed.post("/api/runs", said | {"inputs": "my secret prompt"}, key="ann")
    refused = await keyed.get("/api/me", key="wrong key of mine")
    for text in (wrong.body.decode(), refused.body.decode(), caplog.text):
        assert "secret prompt" not in text
        assert "key of mine" not in text
        assert "a" * 20 not in text


class Away:
    """A guard whose store is away."""

    async def caller(self, *_: object) -> object:
        raise StoreError("/home/me/h.db: disk I/O error", trouble="unreachable")

    visitor = caller


async def test_a_store_that_is_away_is_503_and_says_no_more(server: Served) -> None:
    sent: list[dict[str, object]] = []

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "path": "/api/me", "headers": [], "query_string": b""}
    [me] = [one for one in server.native.endpoints if one.path == "/api/me"]
    await PathApp(server.services, Away(), [me])(scope, receive, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 503
    assert b"store_unavailable" in bytes(sent[1]["body"])  # type: ignore[call-overload]
    assert b"/home" not in bytes(sent[1]["body"])  # type: ignore[call-overload]
    await NoPath(Away())(scope, receive, send)  # type: ignore[arg-type]
    assert sent[2]["status"] == 404
