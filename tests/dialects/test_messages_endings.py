"""How a Messages client is told of an answer's end, and of a refusal."""

from typing import Any

import msgspec
import pytest

from headwater.conversation import Assistant, Opaque, Reasoning, Text, ToolCall
from headwater.dialects import messages
from headwater.errors import CallerError
from headwater.events import (
    Completed,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Outcome,
    ProviderState,
    RunEnded,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallStarted,
    Usage,
)
from tests.dialects.messages_encoded import HEAD, check_order, encoded, frames
from tests.outcomes import DELIVERED, OUTCOMES, UNSUCCESSFUL, outcome_id

STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
STOP_REASONS |= {"content_filter": "refusal", "turn_limit": "max_tokens"}


@pytest.mark.parametrize("outcome", OUTCOMES, ids=outcome_id)
@pytest.mark.parametrize("delivered", DELIVERED.values(), ids=DELIVERED)
@pytest.mark.parametrize("style", ["error", "finish_reason"])
def test_every_ending(outcome: Outcome, delivered: list[Event], style: Any) -> None:
    encoder = messages.encoder(HEAD, include_usage=True, style=style)
    before = b"".join(map(encoder.encode, delivered))
    ending = encoder.encode(RunEnded(outcome))
    stream = frames(before + ending)
    check_order(stream)
    if isinstance(outcome, Completed | Incomplete):
        assert stream[-2]["delta"] == {"stop_reason": STOP_REASONS[outcome.reason], "stop_sequence": None}
        assert stream[-1] == {"type": "message_stop"}
        assert b"error" not in ending
        assert b"headwater" not in ending
    else:
        (last,) = frames(ending)
        assert last["type"] == "error"
        assert last["error"]["message"]
        assert b"message_stop" not in before + ending


@pytest.mark.parametrize(
    ("outcome", "type", "code"),
    [
        (Failed("refused", "x", 400), "invalid_request_error", "refused"),
        (Failed("refused", "x", 422), "invalid_request_error", "refused"),
        (Failed("refused", "x", 404), "not_found_error", "refused"),
        (Failed("refused", "x", 413), "request_too_large", "refused"),
        (Failed("refused", "x", 429), "rate_limit_error", "refused"),
        (Failed("upstream_error", "x", 529), "overloaded_error", "upstream_error"),
        (Failed("upstream_error", "x", 503), "overloaded_error", "upstream_error"),
        (Failed("upstream_error", "x", 504), "timeout_error", "upstream_error"),
        (Failed("upstream_error", "x", 500), "api_error", "upstream_error"),
        (Failed("upstream_error", "x"), "api_error", "upstream_error"),
        # Our key at the upstream is no fault of the client's.
        (Failed("refused", "x", 401), "api_error", "refused"),
        (Failed("refused", "x", 403), "api_error", "refused"),
        (Failed("stalled", "x"), "timeout_error", "stalled"),
        (Failed("upstream_truncated", "x"), "api_error", "upstream_truncated"),
        (Stopped("user"), "api_error", "run_stopped"),
        (Interrupted("crash"), "api_error", "run_interrupted"),
    ],
)
def test_error_types_follow_the_kind(outcome: Outcome, type: str, code: str) -> None:
    (event,) = frames(encoded(RunEnded(outcome)))
    assert event["error"]["type"] == type
    assert event["error"]["details"] == {"error_code": code}
    body = msgspec.json.decode(messages.whole(HEAD, Assistant(), Usage(), outcome).body)
    assert body["error"] == event["error"]


@pytest.mark.parametrize("outcome", UNSUCCESSFUL, ids=outcome_id)
def test_what_had_arrived_is_in_an_unsuccessful_answer(outcome: Outcome) -> None:
    message = Assistant((Reasoning("Hm."), Text("Hel"), ToolCall("call_a", "look", '{"x":')))
    answer = messages.whole(HEAD, message, Usage(7, None, source="provider"), outcome)
    body = msgspec.json.decode(answer.body)
    assert answer.status >= 400
    assert body["type"] == "error"
    assert body["headwater"]["outcome"]["reason"] == outcome.reason
    assert body["headwater"]["usage"] == {"input_tokens": 7, "output_tokens": 0}
    assert body["headwater"]["partial"]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        {"type": "text", "text": "Hel"},
        {"type": "tool_use", "id": "call_a", "name": "look", "input": {"INVALID_JSON": '{"x":'}},
    ]


def test_a_whole_answer_has_every_block() -> None:
    message = Assistant(
        (
            Reasoning("Hm.", "messages", {"signature": "c2ln"}),
            Reasoning("", "messages", {"data": "c2VhbGVk"}),
            Reasoning("Aha.", "chat", {"reasoning_details": []}),
            Text("I can't.", refusal=True),
            Opaque("messages", {"type": "headwater.citations", "citations": [{"cited_text": "x"}]}),
            Opaque("messages", {"type": "web_search_tool_result", "content": []}),
            Opaque("messages", {"type": "headwater.citations", "citations": [{"cited_text": "lost"}]}),
            Opaque("responses", {"type": "web_search_call"}),
            ToolCall("call_a", "look", '{"n":1}', {"extra_content": 1}),
            ToolCall("call_b", "look", ""),
            Opaque("messages", {"type": "headwater.stop", "stop_sequence": "X", "stop_details": {"type": "refusal"}}),
        )
    )
    answer = messages.whole(HEAD, message, Usage(), Completed())
    assert answer.status == 200
    body = msgspec.json.decode(answer.body)
    assert body == {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "fast",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "c2VhbGVk"},
            {"type": "thinking", "thinking": "Aha.", "signature": ""},
            {"type": "text", "text": "I can't.", "citations": [{"cited_text": "x"}]},
            {"type": "web_search_tool_result", "content": []},
            {"extra_content": 1, "type": "tool_use", "id": "call_a", "name": "look", "input": {"n": 1}},
            {"type": "tool_use", "id": "call_b", "name": "look", "input": {}},
        ],
        "stop_reason": "stop_sequence",
        "stop_sequence": "X",
        "stop_details": {"type": "refusal"},
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def test_arguments_are_passed_on_as_the_model_wrote_them() -> None:
    arguments = '{"n":12345678901234567890123, "n":1.10}'
    message = Assistant((ToolCall("call_a", "look", arguments),))
    assert arguments.encode() in messages.whole(HEAD, message, Usage(), Completed("tool_calls")).body


def test_the_stop_sequence_is_told_only_where_it_was_the_stop() -> None:
    stop = ProviderState("messages", {"type": "headwater.stop", "stop_sequence": "X"})
    stream = frames(encoded(TextDelta("x"), stop, RunEnded(Incomplete("length"))))
    assert stream[-2]["delta"] == {"stop_reason": "max_tokens", "stop_sequence": None}


@pytest.mark.parametrize(
    ("status", "type"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "overloaded_error"),
    ],
)
def test_our_own_refusals_have_the_dialects_shape(status: int, type: str) -> None:
    answer = messages.error(CallerError("No.", status=status, code="some_code"))
    assert answer.status == status
    error = {"type": type, "message": "No.", "details": {"error_code": "some_code"}}
    assert msgspec.json.decode(answer.body) == {"type": "error", "error": error}


def test_a_refusal_names_the_parameter() -> None:
    answer = messages.error(CallerError("No.", param="top_k"))
    assert msgspec.json.decode(answer.body)["error"]["details"] == {"error_code": "invalid_value", "param": "top_k"}


@pytest.mark.parametrize(("rest", "noted"), [(" ", False), ("}", True)])
@pytest.mark.parametrize("between", [[TextDelta("So")], [TextDelta("So"), ToolCallStarted(1, "call_b", "look")]])
def test_arguments_that_go_on_after_a_whole_object_are_noted(rest: str, noted: bool, between: list[Event]) -> None:
    call: list[Event] = [ToolCallStarted(0, "call_a", "look"), ToolArgsDelta(0, "{}")]
    events = [*call, *between, ToolArgsDelta(0, rest), RunEnded(Completed("tool_calls"))]
    encoder = messages.encoder(HEAD, include_usage=True, style="error")
    data = b"".join(encoder.encode(event) for event in events)
    assert (b"more of a call's arguments" in data) == noted
