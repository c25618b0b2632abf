"""Each fault, in each dialect, as the socket sees it."""

import json

import pytest

from headwater.events import DialectName
from headwater.testing import Simulator
from tests.simulate.wire import DIALECTS, Received, ask

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("dialect", DIALECTS)]

ENDINGS: dict[DialectName, bytes] = {
    "chat": b"data: [DONE]",
    "responses": b"event: response.completed",
    "messages": b"event: message_stop",
}
FINISHES: dict[DialectName, bytes] = ENDINGS | {
    "chat": b'"finish_reason":"stop"',
    "messages": b'"stop_reason":"end_turn"',
}


def tokens(received: Received) -> int:
    """How many made-up tokens are in there."""
    return sum(received.data.count(f'"t{n} "'.encode()) for n in range(20))


async def test_an_answer_that_has_none_is_whole(simulator: Simulator, dialect: DialectName) -> None:
    received = await ask(simulator, "sim/tokens-4", dialect)
    assert received.status == 200
    assert received.headers["content-type"].startswith("text/event-stream")
    assert tokens(received) == 4
    assert FINISHES[dialect] in received.body
    assert ENDINGS[dialect] in received.body
    assert received.chunks[-1] == b""
    assert simulator.requests[0].ending == "answered"
    assert simulator.requests[0].sent_tokens == 4


async def test_a_cut_ends_the_body_as_if_it_were_whole(simulator: Simulator, dialect: DialectName) -> None:
    received = await ask(simulator, "sim/cut-after-3", dialect)
    assert tokens(received) == 3
    assert received.chunks[-1] == b""
    assert ENDINGS[dialect] not in received.body
    assert received.end == "fin"


async def test_a_fin_comes_inside_a_chunk(simulator: Simulator, dialect: DialectName) -> None:
    received = await ask(simulator, "sim/fin-after-3", dialect)
    assert tokens(received) == 3
    assert received.end == "fin"
    with pytest.raises(ValueError, match="torn"):
        assert received.chunks
    assert simulator.requests[0].ending == "simulator_fin"


async def test_a_reset_comes_after_the_bytes_before_it(simulator: Simulator, dialect: DialectName) -> None:
    received = await ask(simulator, "sim/reset-after-3", dialect)
    assert tokens(received) == 3
    assert received.end == "reset"
    assert simulator.requests[0].ending == "simulator_reset"
    assert simulator.connections[0].closed == "simulator_reset"


async def test_an_error_in_the_stream_is_the_dialects_own(simulator: Simulator, dialect: DialectName) -> None:
    received = await ask(simulator, "sim/error-after-3", dialect)
    assert tokens(received) == 3
    assert received.chunks[-1] == b""
    error = next(frame for frame in received.frames if "error" in frame)["error"]
    assert error["message"].startswith("The server had an error")
    assert error["type"] == ("api_error" if dialect == "messages" else "server_error")
    if dialect == "responses":
        assert received.frames[-1]["type"] == "response.failed"
        assert received.frames[-2]["message"] == error["message"]


async def test_a_chunk_whose_size_is_no_number(simulator: Simulator, dialect: DialectName) -> None:
    received = await ask(simulator, "sim/badchunk-after-1", dialect)
    assert tokens(received) == 1
    with pytest.raises(ValueError, match="zz"):
        assert received.chunks


async def test_json_that_breaks_off_is_followed_by_the_rest(simulator: Simulator, dialect: DialectName) -> None:
    received = await ask(simulator, "sim/badjson-after-1", dialect)
    assert tokens(received) == 8
    assert ENDINGS[dialect] in received.body
    with pytest.raises(json.JSONDecodeError):
        assert received.frames


async def test_bytes_that_are_no_utf8_are_followed_by_the_rest(simulator: Simulator, dialect: DialectName) -> None:
    received = await ask(simulator, "sim/badutf8-after-1", dialect)
    assert tokens(received) == 8
    with pytest.raises(UnicodeDecodeError):
        received.body.decode()
    assert len(Received(received.data.replace(b"\xff\xfe", b"~~"), "fin").frames) > 8


async def test_a_huge_frame_is_a_token_like_any_other(simulator: Simulator, dialect: DialectName) -> None:
    received = await ask(simulator, "sim/huge-after-1", dialect)
    assert tokens(received) == 8
    assert b"x" * 1024 * 1024 in received.body
    assert received.frames
