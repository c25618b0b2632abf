"""What a Responses client reads: a legal stream whatever the events, and the ending that the outcome has."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Opaque, Reasoning, Text, ToolCall
from headwater.dialects import endings, responses
from headwater.dialects.base import Head
from headwater.dialects.responses.encode import ResponsesEncoder
from headwater.errors import CallerError
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Notice,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from headwater.turn import TurnReader
from tests.fixtures import FIXTURES, Fixture
from tests.outcomes import DELIVERED, OUTCOMES, outcome_id
from tests.responses_stream import Stream, check, read, validate_response

HEAD = Head("run_01", 1760000000, "fast")
USAGE = Usage(7, 2, 1, 0, "provider", 0)

every_outcome = pytest.mark.parametrize("outcome", OUTCOMES, ids=outcome_id)
every_start = pytest.mark.parametrize("delivered", DELIVERED.values(), ids=DELIVERED)


def encoded(*events: Event, head: Head = HEAD) -> bytes:
    encoder = responses.encoder(head, include_usage=False, style="error")
    return b"".join(encoder.encode(event) for event in events)


def streamed(*events: Event, outcome: Outcome = Completed(), head: Head = HEAD) -> Stream:
    return check(encoded(*events, UsageReported(USAGE), RunEnded(outcome), head=head))


def output(*events: Event, outcome: Outcome = Completed()) -> list[dict[str, Any]]:
    response = streamed(*events, outcome=outcome).response
    assert response is not None
    return list(response["output"])


def message(*events: Event) -> Assistant:
    accumulator = Accumulator()
    for event in events:
        accumulator.apply(event)
    return accumulator.message()


# -------------------------------------------------------------------- endings

STATUS = {
    Completed: "completed",
    Incomplete: "incomplete",
    Stopped: "cancelled",
    Failed: "failed",
    Interrupted: "failed",
}
REASON = {"length": "max_output_tokens", "content_filter": "content_filter", "turn_limit": "max_turns"}


@every_outcome
@every_start
def test_a_stream_ends_as_its_outcome_says(outcome: Outcome, delivered: list[Event]) -> None:
    data = encoded(*delivered, UsageReported(USAGE), RunEnded(outcome))
    stream = check(data)
    response = stream.response
    assert response is not None
    types = [event["type"] for event in read(data)[0]]
    assert response["status"] == STATUS[type(outcome)]
    match outcome:
        case Completed():
            assert types[-1] == "response.completed"
            assert response["incomplete_details"] is None
        case Incomplete(reason=reason):
            assert types[-1] == "response.incomplete"
            assert response["incomplete_details"] == {"reason": REASON[reason]}
        case Stopped():
            assert types[-1] == "response.incomplete"
            assert response["incomplete_details"] == {"reason": "cancelled"}
        case Failed() | Interrupted():
            said = {"message": endings.words(outcome), "code": endings.code(outcome)}
            assert types[-2:] == ["error", "response.failed"]
            assert stream.error is not None
            assert {name: stream.error[name] for name in said} == said
            assert stream.error["error"] == {**said, "type": endings.blame(outcome), "param": None}
            assert response["error"] == said
    assert (response["error"] is not None) == isinstance(outcome, Failed | Interrupted)
    assert response["usage"]["total_tokens"] == 9


@every_outcome
@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_an_item_that_is_open_at_the_end_is_complete_only_if_the_answer_is(outcome: Outcome, kind: str) -> None:
    [item] = output(*DELIVERED[kind], outcome=outcome)
    assert item["status"] == ("completed" if isinstance(outcome, Completed) else "incomplete")


@every_outcome
def test_a_call_that_was_not_said_to_be_whole_is_complete_only_if_the_answer_is(outcome: Outcome) -> None:
    [item] = output(ToolCallStarted(0, "call_a", "look"), ToolArgsDelta(0, '{"at":'), outcome=outcome)
    assert item["arguments"] == '{"at":'
    assert item["status"] == ("completed" if isinstance(outcome, Completed) else "incomplete")


@every_outcome
@every_start
def test_an_answer_in_one_piece_has_its_outcomes_status(outcome: Outcome, delivered: list[Event]) -> None:
    whole = responses.whole(HEAD, message(*delivered), USAGE, outcome)
    assert whole.status == endings.status(outcome)
    body = msgspec.json.decode(whole.body)
    if isinstance(outcome, Completed | Incomplete):
        assert body.get("error") is None
        assert "headwater" not in body
        response = body
    else:
        assert body["error"] == {
            "message": endings.words(outcome),
            "type": endings.blame(outcome),
            "param": None,
            "code": endings.code(outcome),
        }
        assert body["headwater"]["outcome"] == msgspec.to_builtins(outcome)
        assert body["headwater"]["usage"]["input_tokens"] == 7
        response = body["headwater"]["partial"]
    validate_response(response)
    last = streamed(*delivered, outcome=outcome).response
    assert last is not None
    if isinstance(outcome, Completed) or delivered is not DELIVERED["tool_call"]:
        assert response == last
    else:
        # Whole or torn, it can't be told any more, and none is run (C26).
        [call] = response["output"]
        assert call["status"] == "incomplete"
        assert response == {**last, "output": [call]}


@every_start
def test_an_answer_that_goes_on_is_shown_as_far_as_it_has_come(delivered: list[Event]) -> None:
    encoder = ResponsesEncoder(HEAD)
    for event in delivered:
        encoder.encode(event)
    response = msgspec.json.decode(encoder.so_far())
    validate_response(response)
    assert response["status"] == "in_progress"
    assert len(response["output"]) == (1 if delivered else 0)


def test_a_refusal_of_ours_has_the_dialects_shape() -> None:
    whole = responses.error(CallerError("No.", status=404, code="model_not_found", param="model"))
    assert whole.status == 404
    assert msgspec.json.decode(whole.body) == {
        "error": {"message": "No.", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}
    }


# --------------------------------------------------------------------- frames


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


# ----------------------------------------------------------------- properties

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
extras = st.none() | st.dictionaries(
    st.sampled_from(["namespace", "extra_content", "x"]), words, min_size=1, max_size=2
)
texts = st.lists(words.map(TextDelta), min_size=1, max_size=3)
refusals = st.lists(words.map(lambda text: TextDelta(text, refusal=True)), min_size=1, max_size=2)
thoughts = st.lists(words.map(ReasoningDelta), min_size=1, max_size=3)
seals = words.map(lambda text: ProviderState("responses", {"encrypted_content": text}, of="reasoning"))
notes = st.sampled_from(["commentary", "final_answer"]).map(
    lambda phase: ProviderState("responses", {"type": "message", "phase": phase})
)
items = words.map(lambda text: ProviderState("responses", {"type": "web_search_call", "query": text}))
foreign = st.sampled_from(
    [
        ProviderState("messages", {"signature": "c2ln"}, of="reasoning"),
        ProviderState("messages", {"type": "server_tool_use"}),
        ProviderState("chat", {"reasoning_details": []}, of="reasoning"),
        Notice("n", "A notice."),
    ]
)
START = "start"
ARGUMENTS = "arguments"
END = "end"


@st.composite
def turns(draw: st.DrawFn) -> list[Event]:
    """Any turn that a decoder of any dialect may give: all calls have ended."""
    groups: st.SearchStrategy[list[Any]] = st.one_of(
        texts,
        refusals,
        thoughts,
        seals.map(lambda seal: [seal]),
        st.tuples(texts, notes).map(lambda pair: [*pair[0], pair[1]]),
        items.map(lambda item: [item]),
        foreign.map(lambda event: [event]),
        st.sampled_from([START, ARGUMENTS, END]).map(lambda step: [step]),
    )
    events: list[Event] = []
    started, live = 0, list[int]()
    for step in [step for group in draw(st.lists(groups, max_size=12)) for step in group]:
        if step == START:
            events.append(ToolCallStarted(started, f"call_{started}", draw(words), draw(extras)))
            live.append(started)
            started += 1
        elif step in (ARGUMENTS, END):
            if live and step == ARGUMENTS:
                events.append(ToolArgsDelta(draw(st.sampled_from(live)), draw(words)))
            elif live:
                events.append(ToolCallEnded(live.pop(draw(st.integers(0, len(live) - 1))), draw(extras)))
        else:
            events.append(step)
    return [*events, *map(ToolCallEnded, live)]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_every_recorded_stream_of_any_dialect_becomes_a_legal_one(fixture: Fixture) -> None:
    check(encoded(*fixture.events, RunEnded(fixture.outcome)))


@given(turns(), st.sampled_from(OUTCOMES))
def test_whatever_the_events_the_stream_is_legal_and_its_replay_the_same(events: list[Event], outcome: Outcome) -> None:
    all_events = [*events, UsageReported(USAGE), RunEnded(outcome)]
    data = encoded(*all_events)
    check(data)
    assert encoded(*all_events) == data


@given(turns(), st.integers(0, 40), st.sampled_from(OUTCOMES))
def test_a_stream_may_end_anywhere(events: list[Event], cut: int, outcome: Outcome) -> None:
    check(encoded(*events[:cut], RunEnded(outcome)))


@given(turns())
def test_an_answer_in_one_piece_is_what_its_stream_adds_up_to(events: list[Event]) -> None:
    response = streamed(*events).response
    assert response is not None
    whole = responses.whole(HEAD, message(*events), USAGE, Completed())
    assert msgspec.json.decode(whole.body) == response


def carried(events: list[Event]) -> list[Event]:
    """What this dialect can carry: nothing of other dialects, nothing for native followers."""
    kept = [event for event in events if not isinstance(event, Notice)]
    return [event for event in kept if not (isinstance(event, ProviderState) and event.dialect != "responses")]


def without_seams(events: list[Event]) -> list[Event]:
    """What only tells items apart, and the tier that the object names when nobody has named one."""
    seams: tuple[dict[str, Any], ...] = (
        {},
        {"type": "message"},
        {"type": "headwater.stop", "service_tier": "default"},
    )
    return [event for event in events if not (isinstance(event, ProviderState) and event.data in seams)]


def sealed(events: list[Event]) -> list[Event]:
    """A seal's item has the id that the stream gave it, and is kept in the form that suits its text."""
    return [
        ProviderState(event.dialect, {"encrypted_content": event.data["encrypted_content"]}, event.of)
        if isinstance(event, ProviderState) and event.of == "reasoning"
        else event
        for event in events
    ]


def late(events: list[Event]) -> list[Event]:
    """An extra that says again what the call began with is no news."""
    begun = {event.index: event.extra or {} for event in events if isinstance(event, ToolCallStarted)}
    return [
        ToolCallEnded(
            event.index,
            {name: value for name, value in (event.extra or {}).items() if begun[event.index].get(name) != value}
            or None,
        )
        if isinstance(event, ToolCallEnded)
        else event
        for event in events
    ]


@given(turns())
def test_decoding_what_was_encoded_gives_the_events_back(events: list[Event]) -> None:
    data = encoded(*events, UsageReported(USAGE), RunEnded(Completed()))
    decoder = responses.decoder("call_x")
    reader = TurnReader(decoder, Accumulator(), think_tags=False)
    decoded = reader.feed(data) + reader.end("clean").events
    assert sealed(without_seams(carried(decoded))) == [*late(carried(events)), UsageReported(USAGE)]
    assert decoder.evidence.finish in ("stop", "tool_calls")


@every_outcome
@every_start
def test_an_outcome_is_no_better_for_having_passed_through_another_headwater(
    outcome: Outcome, delivered: list[Event]
) -> None:
    reader = TurnReader(responses.decoder("call_x"), Accumulator())
    events = reader.feed(encoded(*delivered, UsageReported(USAGE), RunEnded(outcome)))
    end = reader.end("clean")
    assert [
        event for event in events + end.events if isinstance(event, TextDelta | ReasoningDelta | ToolCallStarted)
    ] == [event for event in delivered if isinstance(event, TextDelta | ReasoningDelta | ToolCallStarted)]
    match outcome:
        case Completed():
            assert isinstance(end.outcome, Completed) == (delivered in (DELIVERED["text"], DELIVERED["tool_call"]))
        case Incomplete():
            assert end.outcome == outcome
        case Stopped():
            assert isinstance(end.outcome, Failed)
            assert "'cancelled'" in end.outcome.message
        case Failed() | Interrupted():
            assert isinstance(end.outcome, Failed)
            assert end.outcome.message.startswith(endings.words(outcome))


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
