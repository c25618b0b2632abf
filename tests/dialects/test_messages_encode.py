"""Events as a client of the messages dialect reads them: legal whatever order they come in, and true to the end."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from headwater.conversation import Assistant, Opaque, Text, ToolCall
from headwater.dialects import messages
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    Incomplete,
    Notice,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolResult,
    Usage,
    UsageReported,
)
from tests.dialects.messages_encoded import HEAD, check_order, encoded, frames
from tests.outcomes import UNSUCCESSFUL, outcome_id


def test_text() -> None:
    assert encoded(TextDelta("Hel"), TextDelta('l"o'), RunEnded(Completed())) == (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_01","type":"message",'
        b'"role":"assistant","model":"fast","content":[],"stop_reason":null,"stop_sequence":null,'
        b'"usage":{"input_tokens":0,"output_tokens":0}}}\n\n'
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
        b'"content_block":{"type":"text","text":""}}\n\n'
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":"Hel"}}\n\n'
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":"l\\"o"}}\n\n'
        b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},'
        b'"usage":{"input_tokens":0,"output_tokens":0}}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )


def test_the_input_is_counted_from_the_start_as_far_as_it_is_known() -> None:
    early, late = Usage(12, None, 5, source="provider"), Usage(12, 3, 5, 1, "provider")
    stream = frames(encoded(UsageReported(early), TextDelta("x"), UsageReported(late), RunEnded(Completed())))
    assert stream[0]["message"]["usage"] == {"input_tokens": 7, "output_tokens": 0, "cache_read_input_tokens": 5}
    assert stream[-2]["usage"] == {
        "input_tokens": 7,
        "output_tokens": 3,
        "cache_read_input_tokens": 5,
        "output_tokens_details": {"thinking_tokens": 1},
    }


def arguments(stream: list[dict[str, Any]]) -> list[tuple[int, str]]:
    deltas = [event for event in stream if event["type"] == "content_block_delta"]
    return [(event["index"], event["delta"]["partial_json"]) for event in deltas if "partial_json" in event["delta"]]


def block_types(stream: list[dict[str, Any]]) -> list[str]:
    return [event["content_block"]["type"] for event in stream if event["type"] == "content_block_start"]


def test_calls_that_another_dialect_interleaves_are_written_one_after_the_other() -> None:
    stream = frames(
        encoded(
            ToolCallStarted(0, "call_a", "a"),
            ToolArgsDelta(0, '{"x":'),
            ToolCallStarted(1, "call_b", "b"),
            ToolArgsDelta(1, '{"y":'),
            ToolArgsDelta(0, "1}"),
            ToolArgsDelta(1, "2}"),
            ToolCallEnded(0),
            ToolCallEnded(1),
            RunEnded(Completed("tool_calls")),
        )
    )
    check_order(stream)
    assert arguments(stream) == [(0, '{"x":'), (0, "1}"), (1, '{"y":'), (1, "2}")]


def test_text_after_a_whole_call_is_live_although_nobody_ended_the_call() -> None:
    """C4: chat ends its calls only with the finish."""
    encoder = messages.encoder(HEAD, include_usage=False, style="error")
    for event in (ToolCallStarted(0, "call_a", "a"), ToolArgsDelta(0, '{"x":1}')):
        encoder.encode(event)
    written = frames(encoder.encode(TextDelta("One moment.")))
    assert [event["type"] for event in written] == ["content_block_stop", "content_block_start", "content_block_delta"]
    # White space is all that may still come of it.
    assert encoder.encode(ToolArgsDelta(0, " ")) == b""
    assert encoder.encode(ToolCallEnded(0)) == b""


def test_text_amid_a_call_waits_for_it() -> None:
    events: list[Event] = [
        ToolCallStarted(0, "call_a", "a"),
        ToolArgsDelta(0, '{"x":"}'),
        TextDelta("One "),
        TextDelta("moment."),
        ToolArgsDelta(0, '"}'),
        ToolCallEnded(0),
        TextDelta(" There."),
    ]
    stream = frames(encoded(*events, RunEnded(Completed("tool_calls"))))
    check_order(stream)
    assert block_types(stream) == ["tool_use", "text"]
    assert arguments(stream) == [(0, '{"x":"}'), (0, '"}')]
    assert [event["delta"]["text"] for event in stream if event.get("delta", {}).get("type") == "text_delta"] == [
        "One ",
        "moment.",
        " There.",
    ]


def test_a_call_cut_by_the_limit_is_closed_and_what_waited_is_said() -> None:
    events: list[Event] = [
        ToolCallStarted(0, "call_a", "a"),
        ToolArgsDelta(0, '{"x":'),
        TextDelta("Hm."),
        ToolCallStarted(1, "call_b", "b"),
        ToolArgsDelta(1, '{"y":'),
        TextDelta("So."),
    ]
    stream = frames(encoded(*events, RunEnded(Incomplete("length"))))
    check_order(stream)
    assert block_types(stream) == ["tool_use", "text", "tool_use", "text"]
    assert stream[-2]["delta"]["stop_reason"] == "max_tokens"


def test_a_torn_call_is_never_closed_by_a_failure() -> None:
    """C26: a block that ends says that the call is whole."""
    torn: list[Event] = [ToolCallStarted(0, "call_a", "a"), ToolArgsDelta(0, '{"x":')]
    for outcome in UNSUCCESSFUL:
        stream = frames(encoded(*torn, RunEnded(outcome)))
        assert [event["type"] for event in stream] == [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "error",
        ]


@pytest.mark.parametrize("outcome", UNSUCCESSFUL, ids=outcome_id)
def test_what_waited_for_a_torn_call_is_said_before_the_failure(outcome: Outcome) -> None:
    """C43: what arrived is shown. The call stays open beside it."""
    waiting: list[Event] = [TextDelta("Hm"), TextDelta("."), ToolCallStarted(1, "call_b", "b"), ReasoningDelta("So?")]
    stream = frames(encoded(ToolCallStarted(0, "call_a", "a"), ToolArgsDelta(0, '{"x":'), *waiting, RunEnded(outcome)))
    deltas = [(event["index"], event["delta"]) for event in stream if event["type"] == "content_block_delta"]
    assert deltas[1:] == [
        (1, {"type": "text_delta", "text": "Hm"}),
        (1, {"type": "text_delta", "text": "."}),
        (2, {"type": "thinking_delta", "thinking": "So?"}),
    ]
    closed = [event["index"] for event in stream if event["type"] == "content_block_stop"]
    assert closed == [1]
    assert stream[-1]["type"] == "error"


def test_the_turns_of_an_agent_are_told_apart() -> None:
    first: list[Event] = [TextDelta("Let me see."), ToolCallStarted(0, "call_a", "a"), ToolArgsDelta(0, '{"x":')]
    second: list[Event] = [
        ToolCallStarted(0, "call_b", "b"),
        ToolArgsDelta(0, "{}"),
        ToolCallEnded(0),
        TextDelta("So."),
    ]
    attempt = AttemptStarted("up", "m", turn=1)
    stream = frames(encoded(*first, ToolResult("call_a", "7"), attempt, *second, RunEnded(Completed())))
    check_order(stream)
    assert block_types(stream) == ["text", "tool_use", "tool_use", "text"]
    assert arguments(stream) == [(1, '{"x":'), (2, "{}")]


def test_a_continued_text_stays_one_block() -> None:
    """C27."""
    seam = AttemptStarted("up", "m", reason="continue", stands="everything")
    stream = frames(encoded(TextDelta("Once "), seam, TextDelta("upon"), RunEnded(Completed())))
    assert block_types(stream) == ["text"]


def test_native_events_and_other_dialects_state_leave_no_trace() -> None:
    others: list[Event] = [
        RunStarted("run_01", "fast", datetime(2026, 1, 1, tzinfo=UTC)),
        AttemptStarted("up", "m"),
        Notice("x", "y"),
        ProviderState("chat", {"reasoning_details": [{"data": "secret"}]}, of="reasoning"),
        ProviderState("responses", {"type": "web_search_call"}),
    ]
    assert encoded(*others) == b""


def test_extras_of_a_call_are_given_to_the_client() -> None:
    """C3."""
    stream = frames(encoded(ToolCallStarted(0, "call_a", "a", {"extra_content": {"google": 1}})))
    assert stream[-1]["content_block"] == {
        "extra_content": {"google": 1},
        "type": "tool_use",
        "id": "call_a",
        "name": "a",
        "input": {},
    }


def test_citations_without_their_text_are_not_told() -> None:
    assert encoded(ProviderState("messages", {"type": "headwater.citations", "citations": [{}]})) == b""


def test_another_dialects_second_message_is_a_block_of_its_own() -> None:
    end = ProviderState("responses", {"type": "message", "phase": "commentary"})
    stream = frames(encoded(end, TextDelta("Let me see."), end, TextDelta("So."), RunEnded(Completed())))
    check_order(stream)
    assert block_types(stream) == ["text", "text"]


def test_a_note_is_told_once() -> None:
    note = Notice("not_carried", "No seed there.")
    stream = frames(encoded(TextDelta("Hi"), note, note, RunEnded(Completed())))
    assert stream[-2]["headwater"] == {"notes": ["No seed there."]}


def test_details_of_the_usage_that_only_this_dialect_has_are_told() -> None:
    details = {"service_tier": "priority", "server_tool_use": {"web_search_requests": 1}}
    told = {"type": "headwater.stop", "usage": details}
    stream = frames(
        encoded(TextDelta("Hi"), ProviderState("messages", told), UsageReported(Usage(3, 4)), RunEnded(Completed()))
    )
    assert stream[-2]["usage"] == {"input_tokens": 3, "output_tokens": 4, **details}
    message = Assistant((Text("Hi"), Opaque("messages", told)))
    body = msgspec.json.decode(messages.whole(HEAD, message, Usage(3, 4), Completed()).body)
    assert body["usage"] == stream[-2]["usage"]
    assert body["content"] == [{"type": "text", "text": "Hi"}]


def test_arguments_that_are_no_object_are_noted_in_an_answer_in_one_piece() -> None:
    message = Assistant((ToolCall("call_a", "a", "[1]"), ToolCall("call_b", "b", ""), ToolCall("call_c", "c", "{}")))
    body = msgspec.json.decode(messages.whole(HEAD, message, Usage(), Completed("tool_calls"), ["x"]).body)
    assert [block["input"] for block in body["content"]] == [{"INVALID_JSON": "[1]"}, {}, {}]
    assert body["headwater"]["notes"] == [
        "x",
        "The arguments for 'a' are no JSON object: they stand in one, as INVALID_JSON.",
    ]


def test_a_ping_is_what_the_dialect_keeps_alive_with() -> None:
    assert frames(messages.ping()) == [{"type": "ping"}]
