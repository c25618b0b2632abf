"""The real `anthropic` SDK reads every ending that we write: it accepts success, and raises on all else."""

import json
from typing import Any

import anthropic
import pytest

from headwater.accumulate import Accumulator
from headwater.dialects import messages
from headwater.dialects.base import Head
from headwater.dialects.endings import stream_status
from headwater.errors import CallerError
from headwater.events import (
    Completed,
    Event,
    Failed,
    Incomplete,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from tests.outcomes import DELIVERED, OUTCOMES, outcome_id
from tests.serving import serving

HEAD = Head("run_01", 1760000000, "fast")
USAGE = Usage(9, 4, 2, 3, "provider", 1)
STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "turn_limit": "max_tokens",
}

every_outcome = pytest.mark.parametrize("outcome", OUTCOMES, ids=outcome_id)
every_start = pytest.mark.parametrize("delivered", DELIVERED.values(), ids=DELIVERED)


def encoded(events: list[Event], outcome: Outcome) -> bytes:
    encoder = messages.encoder(HEAD, include_usage=False, style="error")
    return b"".join(
        messages.ping() + encoder.encode(event) for event in [*events, UsageReported(USAGE), RunEnded(outcome)]
    )


def whole(events: list[Event], outcome: Outcome) -> tuple[bytes, int]:
    accumulator = Accumulator()
    for event in events:
        accumulator.apply(event)
    answer = messages.whole(HEAD, accumulator.message(), USAGE, outcome)
    return answer.body, answer.status


def client(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)


ASKED: Any = {"model": "fast", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}


def streamed(url: str) -> anthropic.types.Message:
    """By the helper, which puts the message together."""
    with client(url) as sdk, sdk.messages.stream(**ASKED) as stream:
        return stream.get_final_message()


def raw(url: str) -> list[Any]:
    with client(url) as sdk:
        return list(sdk.messages.create(**ASKED, stream=True))


def not_streamed(url: str) -> anthropic.types.Message:
    with client(url) as sdk:
        message: anthropic.types.Message = sdk.messages.create(**ASKED)
        return message


def check(message: anthropic.types.Message, delivered: list[Event], outcome: Completed | Incomplete) -> None:
    assert message.id == "msg_01"
    assert message.model == "fast"
    assert message.role == "assistant"
    assert message.stop_reason == STOP_REASONS[outcome.reason]
    assert message.usage.input_tokens == 6
    assert message.usage.output_tokens == 4
    assert message.usage.cache_read_input_tokens == 2
    assert message.usage.cache_creation_input_tokens == 1
    assert message.usage.output_tokens_details is not None
    assert message.usage.output_tokens_details.thinking_tokens == 3
    text = "".join(block.text for block in message.content if block.type == "text")
    assert text == "".join(event.text for event in delivered if isinstance(event, TextDelta))
    thinking = "".join(block.thinking for block in message.content if block.type == "thinking")
    assert thinking == "".join(event.text for event in delivered if isinstance(event, ReasoningDelta))
    calls = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
    called = [event for event in delivered if isinstance(event, ToolCallStarted)]
    assert calls == [(event.id, event.name, {"at": 1}) for event in called]


@every_outcome
@every_start
def test_streamed(outcome: Outcome, delivered: list[Event]) -> None:
    with serving(encoded(delivered, outcome)) as url:
        if isinstance(outcome, Completed | Incomplete):
            check(streamed(url), delivered, outcome)
            assert raw(url)[-1].type == "message_stop"
            return
        for read in (streamed, raw):
            with pytest.raises(anthropic.APIStatusError) as raised:
                read(url)
            assert raised.value.api_message
            assert raised.value.error_code
            assert raised.value.type


@every_outcome
@every_start
def test_not_streamed(outcome: Outcome, delivered: list[Event]) -> None:
    body, status = whole(delivered, outcome)
    with serving(body, status=status, content_type="application/json") as url:
        if isinstance(outcome, Completed | Incomplete):
            check(not_streamed(url), delivered, outcome)
            return
        with pytest.raises(anthropic.APIStatusError) as raised:
            not_streamed(url)
    assert raised.value.status_code == status
    assert raised.value.api_message
    assert raised.value.error_code
    assert isinstance(raised.value.body, dict)
    assert raised.value.body["headwater"]["outcome"]["reason"] == outcome.reason
    assert raised.value.body["headwater"]["partial"]["role"] == "assistant"


@pytest.mark.parametrize(
    ("status", "raises"),
    [(404, anthropic.NotFoundError), (429, anthropic.RateLimitError), (400, anthropic.BadRequestError)],
)
def test_a_stream_refused_before_its_first_byte_keeps_the_upstreams_status(
    status: int, raises: type[anthropic.APIStatusError]
) -> None:
    outcome = Failed("refused", "No.", status)
    body, _ = whole([], outcome)
    with (
        serving(body, status=stream_status(outcome), content_type="application/json") as url,
        pytest.raises(raises) as raised,
    ):
        raw(url)
    assert raised.value.api_message == "No."


def test_a_refusal_of_ours_raises_with_its_code() -> None:
    refusal = messages.error(CallerError("Too hot.", param="temperature"))
    with (
        serving(refusal.body, status=refusal.status, content_type="application/json") as url,
        pytest.raises(anthropic.BadRequestError) as raised,
    ):
        not_streamed(url)
    assert raised.value.api_message == "Too hot."
    assert raised.value.type == "invalid_request_error"
    assert raised.value.error_code == "invalid_value"


SIGNED: list[Event] = [
    ReasoningDelta("Hm."),
    ProviderState("messages", {"signature": "c2ln"}, of="reasoning"),
    ProviderState("messages", {"data": "c2VhbGVk"}, of="reasoning"),
    TextDelta("Let me "),
    TextDelta("see."),
    ProviderState(
        "messages", {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    ),
    ToolCallStarted(0, "call_a", "look"),
    ToolArgsDelta(0, '{"at":'),
    ToolCallStarted(1, "call_b", "look"),
    ToolArgsDelta(1, '{"at":2}'),
    ToolArgsDelta(0, "1}"),
    ToolCallEnded(0),
    ToolCallEnded(1),
]


def test_what_the_sdk_has_read_it_can_send_back() -> None:
    with serving(encoded(SIGNED, Completed("tool_calls"))) as url:
        message = streamed(url)
    content = [block.model_dump(exclude_none=True) for block in message.content]
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": content}]}
    (_, sent) = messages.parse(json.dumps(body).encode()).request.messages
    accumulator = Accumulator()
    for event in SIGNED:
        accumulator.apply(event)
    expected = accumulator.message()
    assert sent == expected


def test_reasoning_that_nobody_signed_is_shown_as_thinking() -> None:
    with serving(encoded([ReasoningDelta("Hm."), TextDelta("Hi.")], Completed())) as url:
        message = streamed(url)
    thought = message.content[0]
    assert thought.type == "thinking"
    assert (thought.thinking, thought.signature) == ("Hm.", "")


def test_the_matched_stop_sequence_is_told() -> None:
    stop = ProviderState("messages", {"type": "headwater.stop", "stop_sequence": "X"})
    with serving(encoded([TextDelta("Hi"), stop], Completed())) as url:
        message = streamed(url)
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "X")


def test_citations_are_told_with_their_text() -> None:
    cited = {"type": "char_location", "cited_text": "g", "document_index": 0, "document_title": None}
    cited |= {"start_char_index": 0, "end_char_index": 1}
    events: list[Event] = [
        TextDelta("So: "),
        ProviderState("messages", {"type": "headwater.citations", "citations": []}),
        TextDelta("green"),
        ProviderState("messages", {"type": "headwater.citations", "citations": [cited]}),
    ]
    with serving(encoded(events, Completed())) as url:
        message = streamed(url)
    blocks = [block for block in message.content if block.type == "text"]
    assert [block.text for block in blocks] == ["So: ", "green"]
    assert blocks[0].citations is None
    assert blocks[1].citations is not None
    assert blocks[1].citations[0].cited_text == "g"
