"""What is no model's answer, and the manners of HTTP."""

import asyncio
import contextlib
import re

import pytest

from headwater.events import DialectName
from headwater.simulate.names import PORTAL
from headwater.simulate.script import Answer, Http, Scenario, Script, Writes
from headwater.testing import Simulator
from tests.simulate.wire import DIALECTS, PATHS, ask, body_for, connected, request, send

pytestmark = pytest.mark.anyio
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


# ----------------------------------------------------------------------- answers


@every_dialect
async def test_errors_are_of_the_dialects_shape(simulator: Simulator, dialect: DialectName) -> None:
    for status, openai, anthropic in [
        (429, "rate_limit_error", "rate_limit_error"),
        (500, "server_error", "api_error"),
        (529, "server_error", "overloaded_error"),
    ]:
        received = await ask(simulator, f"sim/status-{status}", dialect)
        assert received.status == status
        assert received.headers["content-type"] == "application/json"
        assert int(received.headers["content-length"]) == len(received.body)
        assert received.json["error"]["type"] == (anthropic if dialect == "messages" else openai)
        assert received.json.get("type") == ("error" if dialect == "messages" else None)


async def test_it_fails_as_often_as_told_and_then_works(simulator: Simulator) -> None:
    statuses = [(await ask(simulator, "sim/status-429x2,tokens-1")).status for _ in range(4)]
    assert statuses == [429, 429, 200, 200]
    simulator.clear()
    assert (await ask(simulator, "sim/status-429x2,tokens-1")).status == 429


async def test_answers_come_one_by_one_and_the_last_one_stays(simulator: Simulator) -> None:
    simulator.script("m", Answer(text="a", times=2), Answer(text="b"), Answer(text="c"))
    answers = [(await ask(simulator, "m", stream=False)).json["choices"][0]["message"]["content"] for _ in range(6)]
    assert answers == ["a", "a", "b", "c", "c", "c"]
    simulator.script("m", Script(answers=(Answer(text="d"),)))
    assert b'"d"' in (await ask(simulator, "m")).body


async def test_a_script_without_a_fitting_answer_says_so(simulator: Simulator) -> None:
    simulator.script("m", Answer(when="tool_result"))
    received = await ask(simulator, "m")
    assert received.status == 500
    assert b"has no answer" in received.body


async def test_any_status_header_and_body(simulator: Simulator) -> None:
    simulator.script(
        "m",
        Answer(http=Http(status=503, headers={"Retry-After": "3", "X-Request-Id": "mine"}, body={"detail": "busy"})),
        Answer(http=Http(status=418, body="short and stout")),
        Answer(http=Http(status=799, message="So.")),
        Answer(headers={"Content-Type": "text/plain"}, id="chatcmpl-mine", model="other"),
    )
    busy = await ask(simulator, "m")
    assert (busy.status, busy.json) == (503, {"detail": "busy"})
    assert (busy.headers["retry-after"], busy.headers["x-request-id"]) == ("3", "mine")
    teapot = await ask(simulator, "m")
    assert (teapot.status, teapot.body) == (418, b"short and stout")
    assert teapot.headers["content-type"].startswith("text/plain")
    odd = await ask(simulator, "m")
    assert odd.status == 799
    assert odd.json["error"]["message"] == "So."
    wrong = await ask(simulator, "m")
    assert wrong.headers["content-type"] == "text/plain"
    assert {(frame["id"], frame["model"]) for frame in wrong.frames[:-1]} == {("chatcmpl-mine", "other")}


async def test_a_captive_portal_and_a_redirect(simulator: Simulator) -> None:
    portal = await ask(simulator, "sim/portal")
    assert (portal.status, portal.body.decode()) == (200, PORTAL)
    assert portal.headers["content-type"].startswith("text/html")
    redirect = await ask(simulator, "sim/redirect")
    assert redirect.status == 307
    assert redirect.headers["location"] == "https://elsewhere.example/v1"


@every_dialect
async def test_the_answer_in_another_dialect(simulator: Simulator, dialect: DialectName) -> None:
    for spoken, mark in (("chat", b"chat.completion"), ("responses", b"resp_"), ("messages", b"msg_")):
        assert mark in (await ask(simulator, f"sim/speaks-{spoken}", dialect)).body


@every_dialect
async def test_a_json_body_to_a_request_for_a_stream(simulator: Simulator, dialect: DialectName) -> None:
    received = await ask(simulator, "sim/whole", dialect)
    assert received.headers["content-type"] == "application/json"
    assert "t7 " in str(received.json)


@every_dialect
async def test_streaming_that_is_not_supported(simulator: Simulator, dialect: DialectName) -> None:
    refused = await ask(simulator, "sim/nostream", dialect)
    assert refused.status == 400
    assert "not supported" in refused.json["error"]["message"]
    assert (await ask(simulator, "sim/nostream", dialect, stream=False)).status == 200


# ------------------------------------------------------------------------- writes


@every_dialect
async def test_bytes_are_cut_anywhere_and_stay_the_same(simulator: Simulator, dialect: DialectName) -> None:
    simulator.script("m", Answer(id="x", text="«Grüße»"))
    whole = await ask(simulator, "m", dialect)
    for writes in (
        Writes(every_bytes=1),
        Writes(every_bytes=7),
        Writes(seed=3, gap_s=0.0001),
        Writes(tokens=3, seed=4, up_to_bytes=500),
        Writes(framing="close"),
        Writes(framing="close", every_bytes=10),
    ):
        simulator.script("m", Answer(id="x", text="«Grüße»", writes=writes))
        received = await ask(simulator, "m", dialect)
        assert timeless(received.body) == timeless(whole.body)
        if writes.framing == "close":
            assert "transfer-encoding" not in received.headers
        else:
            largest = writes.every_bytes or writes.up_to_bytes
            assert max(map(len, received.chunks)) <= largest
    simulator.script("m", Answer(id="x", text="«Grüße»", writes=Writes(seed=3)))
    first, second = [(await ask(simulator, "m", dialect)).chunks for _ in range(2)]
    assert [len(chunk) for chunk in first] == [len(chunk) for chunk in second]


def timeless(body: bytes) -> bytes:
    """A second may pass between two answers, and answers tell when they were made."""
    return re.sub(rb'"created(_at)?":\d+', b'"created":0', body)


async def test_several_tokens_in_one_write(simulator: Simulator) -> None:
    received = await ask(simulator, "sim/tokens-5,writes-2")
    with_tokens = [chunk for chunk in received.chunks if b'"content":"t' in chunk]
    assert [chunk.count(b'"content"') for chunk in with_tokens] == [2, 2, 1]
    assert simulator.requests[0].sent_tokens == 5


# ------------------------------------------------------------------------- manners


async def test_a_connection_is_used_again(simulator: Simulator) -> None:
    async with connected(simulator) as (reader, writer):
        for _ in range(2):
            writer.write(request(PATHS["chat"], body_for("chat", "sim/cut-after-1"), close=False))
            await reader.readuntil(b"\r\n0\r\n\r\n")
        # Two at once, answered in their order.
        writer.write(request(PATHS["chat"], body_for("chat", "sim/tokens-3@100"), close=False))
        writer.write(request("/v1/models", method="GET"))
        rest = await reader.read(-1)
    assert rest.index(b"[DONE]") < rest.index(b'"has_more"')
    assert [exchange.connection for exchange in simulator.requests] == [0, 0, 0, 0]
    assert simulator.connections[0].requests == 4


async def test_a_body_that_waits_for_leave_gets_it(simulator: Simulator) -> None:
    whole = request(PATHS["chat"], body_for("chat", "sim/echo"), headers={"expect": "100-continue"})
    head, _, body = whole.partition(b"\r\n\r\n")
    async with connected(simulator) as (reader, writer):
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert b"[DONE]" in await reader.read(-1)


async def test_a_request_may_come_in_pieces(simulator: Simulator) -> None:
    async with connected(simulator) as (reader, writer):
        for byte in request(PATHS["chat"], body_for("chat", "sim/echo")):
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert b"[DONE]" in await reader.read(-1)


async def test_what_is_no_http_is_refused(simulator: Simulator) -> None:
    received = await send(simulator, b"HELO\r\n\r\nand more\r\n\r\n")
    assert received.status == 400
    assert received.headers["connection"] == "close"
    assert simulator.requests == []


async def test_a_request_that_is_too_large_is_refused(simulator: Simulator) -> None:
    async with connected(simulator) as (_, writer):
        writer.write(request(PATHS["chat"], b"", headers={"content-length": str(2**30)}))
        # It is gone before the last byte: whether it is still heard why depends on the kernel.
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                writer.write(b"x" * 2**20)
                await writer.drain()
    await simulator.wait_for_connections(0)
    assert simulator.connections[0].closed == "simulator_fin"
    assert simulator.requests == []


async def test_unknown_paths_are_told_the_known_ones(simulator: Simulator) -> None:
    received = await send(simulator, request("/v1/embeddings", {}))
    assert received.status == 404
    assert b"POST /v1/chat/completions" in received.body
    assert (await send(simulator, request("/v1/chat/completions", method="GET"))).status == 404
    assert (await send(simulator, request("/chat/completions?x=1", body_for("chat", "sim/echo")))).status == 200


@every_dialect
async def test_a_body_that_is_no_object_is_refused(simulator: Simulator, dialect: DialectName) -> None:
    for body in (b"", b"{", b"[]", b"\xff"):
        assert (await send(simulator, request(PATHS[dialect], body))).status == 400


# ------------------------------------------------------------------ keys and checks


async def test_a_wrong_key_is_refused() -> None:
    async with Simulator(Scenario(key="right")) as simulator:
        body = body_for("messages", "sim/echo")
        for headers, status in [
            ({"x-api-key": "right"}, 200),
            ({"authorization": "Bearer right"}, 200),
            ({"authorization": "Bearer wrong"}, 401),
            ({}, 401),
        ]:
            assert (await send(simulator, request("/v1/messages", body, headers=headers))).status == status
            listed = await send(simulator, request("/v1/models", method="GET", headers=headers))
            assert listed.status == status


@every_dialect
async def test_strict_refuses_what_the_provider_would(simulator: Simulator, dialect: DialectName) -> None:
    headers = {"content-type": "text/plain"}
    body = body_for(dialect, "sim/echo", temperature=7)
    received = await send(simulator, request(PATHS[dialect], body, headers=headers))
    assert received.status == 400
    assert "temperature" in received.json["error"]["message"]
    assert [complaint.partition(":")[0] for complaint in simulator.requests[0].complaints] == [
        "temperature",
        "content-type",
    ]


async def test_messages_must_name_their_version(simulator: Simulator) -> None:
    data = request("/v1/messages", body_for("messages", "sim/echo")).replace(b"anthropic-version", b"x-version")
    assert b"anthropic-version" in (await send(simulator, data)).body


async def test_lenient_only_notes_what_the_provider_would_refuse() -> None:
    async with Simulator(Scenario(strict=False)) as simulator:
        assert (await ask(simulator, "sim/echo", temperature=7)).status == 200
        assert simulator.requests[0].complaints == ["temperature: must be a number from 0 to 2"]


async def test_any_other_model_may_have_a_script() -> None:
    scenario = Scenario(models={"*": Script(like="sim/tokens-2"), "mine": Script(answers=(Answer(text="mine"),))})
    async with Simulator(scenario) as simulator:
        assert b'"t1 "' in (await ask(simulator, "gpt-5")).body
        assert b'"mine"' in (await ask(simulator, "mine")).body
        assert b'"Hello "' in (await ask(simulator, "sim/echo")).body
        assert (await ask(simulator, "sim/nonsense")).status == 404
        assert b'"*"' not in (await send(simulator, request("/v1/models", method="GET"))).body
