"""C63: turns that belong to a session."""

import asyncio
from typing import Any

import pytest

from headwater.events import Completed, DialectName, Failed
from tests.server.house import DIALECTS, PATHS, House, asking

pytestmark = pytest.mark.anyio


async def said_in(house: House, session_id: str) -> list[tuple[str, str]]:
    transcript = await house.services.store.transcript("local", session_id)
    assert transcript is not None
    return [
        (type(message.message).__name__, "".join(getattr(part, "text", "") for part in message.message.parts))
        for message in transcript.messages
    ]


def told(house: House, n: int) -> list[Any]:
    """What the upstream was told with request `n`."""
    return [(message["role"], message["content"]) for message in house.simulator.requests[n].body["messages"]]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
async def test_one_message_comes_after_the_stored_history(house: House, dialect: DialectName, stream: bool) -> None:
    for text in ("one", "two"):
        answer = await house.post(dialect, "chat/sim/echo", text=text, session_id="mine", stream=stream)
        assert answer.status_code == 200
    assert told(house, 1) == [("user", "one"), ("assistant", "one"), ("user", "two")]
    assert await said_in(house, "mine") == [
        ("User", "one"),
        ("Assistant", "one"),
        ("User", "two"),
        ("Assistant", "two"),
    ]


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("model", ["sim/tokens-9,cut-after-0", "sim/think-3,tokens-9,cut-after-3"])
async def test_where_nothing_visible_came_no_answer_is_kept(house: House, upstream: str, model: str) -> None:
    """C44: whatever else the upstream has said of itself by then."""
    await house.post("chat", f"{upstream}/{model}", text="Hi", session_id="mine", stream=True)
    assert await said_in(house, "mine") == [("User", "Hi")]


@pytest.mark.parametrize("upstream", ["chat", "responses"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_cut_half_that_a_new_message_goes_on_from_is_partial_and_everybody_is_told(
    house: House, dialect: DialectName, stream: bool, upstream: str
) -> None:
    """C25, C27: these upstreams are known for no prefill."""
    model = f"{upstream}/sim/tokens-7,cut-after-3x1"
    answer = await house.post(dialect, model, session_id="mine", stream=stream, on_cut="continue")
    assert answer.status_code == 200
    assert "was asked to go on in a new message" in answer.text.partition('"headwater":{"notes":')[2]
    assert ("A blank line stands between them." in answer.text) == (dialect == "chat")
    transcript = await house.services.store.transcript("local", "mine")
    assert transcript is not None
    _, half, rest = transcript.messages
    assert (half.status, rest.status) == ("partial", "complete")
    assert isinstance(half.outcome, Failed)
    assert half.outcome.reason == "upstream_truncated"
    assert rest.outcome == Completed("stop")
    assert [(notice.code, notice.after_id, notice.for_model) for notice in transcript.notices] == [
        ("continued", rest.id, False)
    ]


async def test_the_header_says_it_as_well(house: House) -> None:
    body = asking("chat", "chat/sim/echo", "one")
    await house.http.post(PATHS["chat"], json=body, headers={"x-session-id": "mine"})
    assert await said_in(house, "mine") == [("User", "one"), ("Assistant", "one")]


async def test_several_messages_are_the_context_and_only_the_new_ones_are_added(house: House) -> None:
    await house.post("chat", "chat/sim/echo", text="one", session_id="mine")
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "another one"},
        {"role": "assistant", "content": "another answer"},
        {"role": "user", "content": "two"},
    ]
    body = {"model": "chat/sim/echo", "messages": messages, "session_id": "mine"}
    assert (await house.http.post(PATHS["chat"], json=body)).status_code == 200
    assert told(house, 1) == [(message["role"], message["content"]) for message in messages]
    assert await said_in(house, "mine") == [
        ("User", "one"),
        ("Assistant", "one"),
        ("User", "two"),
        ("Assistant", "two"),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_session_that_is_busy_says_by_whom_and_is_not_to_be_asked_again(
    house: House, dialect: DialectName
) -> None:
    line = await house.raw("chat", "chat/sim/stall-after-1", session_id="mine", stream=True)
    await line.until(b"t0 ")
    answer = await house.post(dialect, "chat/sim/echo", session_id="mine")
    assert answer.status_code == 409
    assert answer.headers["x-should-retry"] == "false"
    assert "run_" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "header", "param"),
    [
        ({"session_id": "a"}, "b", "session_id"),
        ({}, "x" * 129, "X-Session-Id"),
        ({"session_id": "x" * 129}, "", "session_id"),
    ],
)
async def test_what_names_no_session_is_refused(house: House, body: dict[str, Any], header: str, param: str) -> None:
    asked = asking("chat", "demo/echo", **body)
    answer = await house.http.post(PATHS["chat"], json=asked, headers={"x-session-id": header} if header else {})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


async def test_a_previous_response_and_a_session_in_the_header_contradict(house: House) -> None:
    asked = asking("responses", "demo/echo", previous_response_id="resp_1")
    answer = await house.http.post(PATHS["responses"], json=asked, headers={"x-session-id": "s"})
    assert answer.status_code == 400


async def test_a_turn_that_failed_leaves_its_partial_for_the_next(house: House) -> None:
    """C45: the partial is told to the model, the notice is not."""
    await house.post("chat", "chat/sim/tokens-5,cut-after-2", text="one", session_id="mine", stream=True)
    await house.post("chat", "chat/sim/echo", text="two", session_id="mine")
    assert told(house, 1) == [("user", "one"), ("assistant", "t0 t1 "), ("user", "two")]
    await asyncio.sleep(0)
