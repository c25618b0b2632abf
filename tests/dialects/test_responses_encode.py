"""What a Responses client reads: a legal stream whatever the events, and the ending that the outcome has."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from headwater.conversation import Assistant, Opaque, Reasoning, Text, ToolCall
from headwater.dialects import responses
from headwater.dialects.base import Head
from headwater.dialects.responses.encode import ResponsesEncoder
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    Failed,
    Notice,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from tests.dialects.responses_encoded import HEAD, USAGE, encoded, output, streamed
from tests.responses_stream import check, read


def test_the_frames_of_a_text_are_these() -> None:
    events, _ = read(encoded(TextDelta("Hel"), TextDelta("lo"), RunEnded(Completed())))
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert events[4] == {
        "type": "response.output_text.delta",
        "item_id": "msg_01_0",
        "output_index": 0,
        "content_index": 0,
        "logprobs": [],
        "sequence_number": 4,
        "delta": "Hel",
    }
    assert events[-1]["response"]["id"] == "resp_01"


def test_frames_are_counted_by_their_numbers() -> None:
    encoder = ResponsesEncoder(HEAD)
    said: list[Event] = [TextDelta("Hel"), TextDelta("lo"), RunEnded(Failed("stalled", "…"))]
    events, _ = read(b"".join(map(encoder.encode, said)))
    assert encoder.frames == events[-1]["sequence_number"] + 1 == len(events)


def test_ids_derive_from_the_run() -> None:
    items = output(
        ReasoningDelta("hm"), TextDelta("Hi"), ToolCallStarted(0, "call_a", "look"), ToolCallEnded(0), TextDelta("!")
    )
    assert [item["id"] for item in items] == ["rs_01_0", "msg_01_1", "fc_01_2", "msg_01_3"]


def test_nothing_is_sent_before_the_first_token() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    attempt = AttemptStarted("up", "m")
    assert encoded(RunStarted("run_01", "fast", at), attempt, UsageReported(USAGE), Notice("n", "A notice.")) == b""


def test_a_client_in_the_background_gets_its_id_at_once() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    started = RunStarted("run_01", "fast", at)
    head = Head("run_01", 1760000000, "fast", {"background": True})
    events, _ = read(encoded(started, head=head))
    assert [event["type"] for event in events] == ["response.created", "response.in_progress"]
    # And that early start changes nothing of what follows.
    rest: list[Event] = [TextDelta("Hi"), RunEnded(Completed())]
    assert encoded(started, *rest, head=head) == encoded(*rest, head=head)


def test_the_answer_repeats_its_request() -> None:
    echo = {"temperature": 0.5, "metadata": {"a": "b"}, "store": False, "instructions": "Be brief."}
    response = streamed(TextDelta("Hi"), head=Head("run_01", 1760000000, "fast", echo)).response
    assert response is not None
    assert {name: response[name] for name in echo} == echo
    assert response["top_p"] == 1.0


@pytest.mark.parametrize(
    "request_fields",
    [
        {},
        {"tools": [{"type": "function", "name": "look"}], "tool_choice": {"type": "function", "name": "look"}},
        {"tools": [{"type": "function", "name": "look", "parameters": {}, "strict": True}], "tool_choice": "required"},
        {"reasoning": {"effort": "low", "summary": "auto"}, "text": {"verbosity": "low"}, "max_output_tokens": 16},
        {"reasoning": {"effort": "max"}, "text": {"format": {"type": "json_schema", "name": "a", "schema": {}}}},
        {"text": {"format": {"type": "json_object"}}, "truncation": "auto", "service_tier": "flex", "user": "u"},
        {"background": True, "stream": True, "metadata": {"a": "b"}, "previous_response_id": "resp_0"},
        {"store": False, "instructions": "Be brief.", "temperature": 0, "top_p": 0.5, "parallel_tool_calls": False},
        {"max_tool_calls": 1, "prompt_cache_key": "k", "safety_identifier": "s", "presence_penalty": 1},
    ],
)
def test_what_is_repeated_of_a_request_is_legal_in_an_answer(request_fields: dict[str, Any]) -> None:
    ask = responses.parse(msgspec.json.encode({"input": "Hi", **request_fields}))
    response = streamed(TextDelta("Hi"), head=Head("run_01", 1760000000, "fast", ask.echo)).response
    assert response is not None
    for name in request_fields.keys() & {"background", "metadata", "store", "temperature", "tool_choice", "truncation"}:
        assert response[name] == request_fields[name]
    assert len(response["tools"]) == len(request_fields.get("tools", ()))


def test_an_answer_whose_request_left_all_open_says_what_openai_would() -> None:
    response = streamed(TextDelta("Hi")).response
    assert response is not None
    assert {
        name: response[name] for name in ("store", "background", "parallel_tool_calls", "tool_choice", "tools")
    } == {
        "store": True,
        "background": False,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def test_a_refusal_is_a_part_of_its_own() -> None:
    [item] = output(TextDelta("Well, "), TextDelta("no", refusal=True), TextDelta(".", refusal=True))
    assert [part["type"] for part in item["content"]] == ["output_text", "refusal"]
    assert item["content"][1]["refusal"] == "no."


def test_text_after_a_call_is_a_new_message() -> None:
    items = output(
        TextDelta("Let me look."),
        ToolCallStarted(0, "call_a", "a"),
        TextDelta("One moment."),
        ToolArgsDelta(0, "{}"),
        TextDelta(" Done."),
        ToolCallEnded(0),
    )
    assert [item["type"] for item in items] == ["message", "function_call", "message"]
    assert items[1]["arguments"] == "{}"
    assert items[2]["content"][0]["text"] == "One moment. Done."


def test_parallel_calls_may_interleave() -> None:
    items = output(
        ToolCallStarted(0, "call_a", "a"),
        ToolCallStarted(1, "call_b", "b"),
        ToolArgsDelta(1, '{"y":'),
        ToolArgsDelta(0, "{}"),
        ToolArgsDelta(1, "2}"),
        ToolCallEnded(1),
        ToolCallEnded(0),
        outcome=Completed("tool_calls"),
    )
    assert [(item["call_id"], item["arguments"]) for item in items] == [("call_a", "{}"), ("call_b", '{"y":2}')]


def test_a_calls_extras_are_given_to_clients_and_cant_pass_for_its_own_fields() -> None:
    signature = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    events: list[Event] = [
        ToolCallStarted(0, "call_a", "a", {**signature, "call_id": "forged"}),
        ToolArgsDelta(0, "{}"),
        ToolCallEnded(0, {"late": 1, "status": "forged"}),
    ]
    [item] = output(*events)
    assert item["extra_content"] == signature["extra_content"]
    assert item["late"] == 1
    assert (item["call_id"], item["status"]) == ("call_a", "completed")


def test_a_call_that_has_ended_grows_no_more() -> None:
    [item] = output(ToolCallStarted(0, "call_a", "a"), ToolArgsDelta(0, "{}"), ToolCallEnded(0), ToolArgsDelta(0, " "))
    assert item["arguments"] == "{}"


def test_a_seal_goes_to_its_own_dialect_only() -> None:
    sealed, foreign = {"id": "rs_up", "encrypted_content": "gAAA"}, {"signature": "c2ln"}
    items = output(
        ReasoningDelta("One."),
        ProviderState("responses", sealed, of="reasoning"),
        ReasoningDelta("Two."),
        ProviderState("messages", foreign, of="reasoning"),
        TextDelta("Hi"),
    )
    assert [item.get("encrypted_content") for item in items] == ["gAAA", None, None]
    assert items[0]["summary"] == [{"type": "summary_text", "text": "One."}]
    assert "c2ln" not in str(items)


def test_a_seal_without_text_is_an_item_of_its_own() -> None:
    items = output(
        TextDelta("Hi"),
        ProviderState("messages", {"data": "x"}, of="reasoning"),
        TextDelta("!"),
        ProviderState("responses", {"encrypted_content": "gAAA"}, of="reasoning"),
        TextDelta("Bye"),
    )
    assert [item["type"] for item in items] == ["message", "reasoning", "message"]
    assert items[0]["content"][0]["text"] == "Hi!"
    assert items[1] == {
        "id": "rs_01_1",
        "type": "reasoning",
        "status": "completed",
        "summary": [],
        "encrypted_content": "gAAA",
    }


def test_an_opaque_item_goes_to_its_own_dialect_only() -> None:
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    items = output(
        TextDelta("Hi"), ProviderState("responses", search), ProviderState("messages", {"type": "server_tool_use"})
    )
    assert [item["type"] for item in items] == ["message", "web_search_call"]
    assert items[1] == search


def test_a_note_belongs_to_the_message_before_it() -> None:
    cite = {"type": "url_citation", "url": "https://example.org", "title": "E", "start_index": 0, "end_index": 1}
    items = output(
        ProviderState("responses", {"type": "message", "phase": "lost"}),
        TextDelta("Looking."),
        ProviderState("responses", {"type": "message", "phase": "commentary"}),
        TextDelta("Found."),
        ProviderState("responses", {"type": "message", "phase": "final_answer", "annotations": [cite]}),
    )
    assert [item["phase"] for item in items] == ["commentary", "final_answer"]
    assert items[1]["content"][0]["annotations"] == [cite]


def test_a_new_turn_begins_with_new_items_and_adds_its_usage() -> None:
    data = encoded(
        AttemptStarted("up", "m"),
        ToolCallStarted(0, "call_a", "look"),
        ToolCallEnded(0),
        UsageReported(Usage(7, 2, 1, 0, "provider")),
        AttemptStarted("up", "m", turn=1),
        ToolCallStarted(0, "call_b", "look"),
        ToolCallEnded(0),
        TextDelta("So"),
        UsageReported(Usage(9, 3, 7, 1, "provider")),
        AttemptStarted("up", "m", turn=2),
        TextDelta("there."),
        UsageReported(Usage(1, 1, 0, 0, "provider")),
        RunEnded(Completed()),
    )
    response = check(data).response
    assert response is not None
    assert [item["type"] for item in response["output"]] == ["function_call", "function_call", "message", "message"]
    assert {item["status"] for item in response["output"]} == {"completed"}
    assert response["usage"]["input_tokens"] == 17
    assert response["usage"]["input_tokens_details"] == {"cached_tokens": 8, "cache_write_tokens": 0}
    assert response["usage"]["output_tokens_details"] == {"reasoning_tokens": 1}


def test_an_answer_that_is_continued_goes_on_in_the_same_message_and_both_attempts_are_paid_for() -> None:
    response = streamed(
        AttemptStarted("up", "m"),
        TextDelta("Once "),
        UsageReported(USAGE),
        AttemptStarted("up", "m", reason="continue", stands="everything"),
        TextDelta("upon."),
    ).response
    assert response is not None
    [item] = response["output"]
    assert item["content"][0]["text"] == "Once upon."
    assert response["usage"]["total_tokens"] == 18


def test_usage_of_an_attempt_that_was_given_up_is_not_the_answers() -> None:
    events: list[Event] = [
        AttemptStarted("up", "m"),
        UsageReported(USAGE),
        AttemptStarted("up", "m", reason="retry"),
        TextDelta("Hi"),
    ]
    response = check(encoded(*events, RunEnded(Completed()))).response
    assert response is not None
    assert response["usage"] is None


def test_what_was_sent_for_an_attempt_that_was_given_up_is_said_to_be_incomplete() -> None:
    items = output(
        AttemptStarted("up", "m"), TextDelta("Onc"), AttemptStarted("up", "m", reason="retry"), TextDelta("Once.")
    )
    assert [item["status"] for item in items] == ["incomplete", "completed"]


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        (Usage(), None),
        (Usage(input_tokens=7, source="provider"), None),
        (Usage(output_tokens=7, source="provider"), None),
    ],
)
def test_usage_that_is_not_known_is_null(usage: Usage, written: Any) -> None:
    response = check(encoded(TextDelta("Hi"), UsageReported(usage), RunEnded(Completed()))).response
    assert response is not None
    assert response["usage"] == written


def test_a_whole_message_of_every_part() -> None:
    parts = (
        Reasoning("hm", "responses", {"encrypted_content": "gAAA"}),
        Reasoning("ho", "messages", {"signature": "c2ln"}),
        Reasoning("", "messages", {"data": "x"}),
        Reasoning("ha"),
        Text("Hi"),
        Opaque("messages", {"type": "x"}),
        Opaque("responses", {"type": "web_search_call"}),
        ToolCall("call_a", "look", "{}", {"namespace": "crm"}),
    )
    body = msgspec.json.decode(responses.whole(HEAD, Assistant(parts), USAGE, Completed("tool_calls")).body)
    assert [item["type"] for item in body["output"]] == [
        "reasoning",
        "reasoning",
        "reasoning",
        "message",
        "web_search_call",
        "function_call",
    ]
    assert "c2ln" not in str(body)
