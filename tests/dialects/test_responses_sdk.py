"""The real `openai` SDK reads every ending that we write: it accepts success, and raises on or reports all else."""

from typing import Any

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from headwater.accumulate import Accumulator
from headwater.dialects import responses
from headwater.dialects.base import Head
from headwater.dialects.endings import code, words
from headwater.events import (
    Completed,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from tests.outcomes import DELIVERED, OUTCOMES, outcome_id
from tests.responses_stream import read as read_frames
from tests.serving import serving

HEAD = Head("run_01", 1760000000, "fast")
USAGE = Usage(7, 2, 1, 0, "provider")

every_outcome = pytest.mark.parametrize("outcome", OUTCOMES, ids=outcome_id)
every_start = pytest.mark.parametrize("delivered", DELIVERED.values(), ids=DELIVERED)

EVERYTHING: list[Event] = [
    ReasoningDelta("hm"),
    ProviderState("responses", {"encrypted_content": "gAAA"}, of="reasoning"),
    TextDelta("Let me "),
    TextDelta("look."),
    ProviderState("responses", {"type": "message", "phase": "commentary"}),
    ToolCallStarted(0, "call_a", "look", {"namespace": "maps"}),
    ToolCallStarted(1, "call_b", "look"),
    ToolArgsDelta(1, '{"at":'),
    TextDelta("Well, "),
    ToolArgsDelta(0, "{}"),
    TextDelta("no.", refusal=True),
    ToolArgsDelta(1, "2}"),
    ToolCallEnded(1),
    ToolCallEnded(0),
    ProviderState(
        "responses",
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "oslo"}},
    ),
]


def encoded(events: list[Event], outcome: Outcome, usage: Usage = USAGE) -> bytes:
    encoder = responses.encoder(HEAD, include_usage=False, style="error")
    return b"".join(encoder.encode(event) for event in [*events, UsageReported(usage), RunEnded(outcome)])


def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)


def read(url: str) -> list[ResponseStreamEvent]:
    with client(url) as sdk:
        return list(sdk.responses.create(model="fast", input="Hi", stream=True))


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@every_outcome
@every_start
def test_streamed(outcome: Outcome, delivered: list[Event]) -> None:
    with serving(encoded(delivered, outcome)) as url:
        if isinstance(outcome, Failed | Interrupted):
            with pytest.raises(openai.APIError) as raised:
                read(url)
            assert raised.value.message == words(outcome)
            assert raised.value.code == code(outcome)
            return
        events = read(url)
    last: Any = events[-1]
    assert isinstance(last.response, Response)
    assert last.response.output_text == text_of(delivered)
    assert (
        (last.type == "response.completed") == (last.response.status == "completed") == isinstance(outcome, Completed)
    )
    if isinstance(outcome, Stopped):
        assert last.response.status == "cancelled"
        assert last.response.to_dict()["incomplete_details"] == {"reason": "cancelled"}


@every_outcome
@every_start
def test_the_streaming_helper(outcome: Outcome, delivered: list[Event]) -> None:
    """It keeps a snapshot by its own strict rules, and has a final response of a completed one only."""
    with (
        serving(encoded(delivered, outcome)) as url,
        client(url) as sdk,
        sdk.responses.stream(model="fast", input="Hi") as stream,
    ):
        match outcome:
            case Completed():
                response = stream.get_final_response()
                assert response.output_text == text_of(delivered)
                assert [item.type for item in response.output if item.type == "function_call"] == [
                    "function_call" for event in delivered if isinstance(event, ToolCallStarted)
                ]
            case Incomplete() | Stopped():
                with pytest.raises(RuntimeError, match=r"response\.completed"):
                    stream.get_final_response()
            case Failed() | Interrupted():
                with pytest.raises(openai.APIError, match=r".+"):
                    stream.get_final_response()


def test_the_streaming_helper_follows_items_of_every_kind() -> None:
    with (
        serving(encoded(EVERYTHING, Completed("tool_calls"))) as url,
        client(url) as sdk,
        sdk.responses.stream(model="fast", input="Hi") as stream,
    ):
        response = stream.get_final_response()
    assert [item.type for item in response.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "message",
        "web_search_call",
    ]
    assert response.output_text == "Let me look.Well, "
    assert [item.arguments for item in response.output if item.type == "function_call"] == ["{}", '{"at":2}']


@every_outcome
@every_start
def test_not_streamed(outcome: Outcome, delivered: list[Event]) -> None:
    accumulator = Accumulator()
    for event in delivered:
        accumulator.apply(event)
    whole = responses.whole(HEAD, accumulator.message(), USAGE, outcome)
    with serving(whole.body, status=whole.status, content_type="application/json") as url, client(url) as sdk:
        if isinstance(outcome, Completed | Incomplete):
            response = sdk.responses.create(model="fast", input="Hi")
            assert response.output_text == text_of(delivered)
            assert (response.status == "completed") == isinstance(outcome, Completed)
            assert response.usage is not None
            assert response.usage.total_tokens == 9
        else:
            with pytest.raises(openai.APIStatusError) as raised:
                sdk.responses.create(model="fast", input="Hi")
            assert raised.value.status_code == whole.status
            assert raised.value.code == code(outcome)


@pytest.mark.parametrize("outcome", [Completed("tool_calls"), Incomplete("length"), Incomplete("content_filter")])
def test_every_event_is_one_of_the_sdks_types(outcome: Outcome) -> None:
    """The SDK itself does not check. Not here: our reasons and codes, which its lists don't have, since what
    ended is to be told by its name.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    for event in read_frames(encoded(EVERYTHING, outcome))[0]:
        assert adapter.validate_python(event).type == event["type"]
