"""Events as a client of the messages dialect reads them: legal whatever order they come in, and true to the end."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import sse
from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Opaque, Reasoning, Text, ToolCall
from headwater.dialects import messages
from headwater.dialects.base import Head
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
    ToolResult,
    Usage,
    UsageReported,
)
from headwater.judge import Rules
from headwater.turn import TurnReader
from tests.fixtures import FIXTURES, Fixture
from tests.outcomes import DELIVERED, OUTCOMES, UNSUCCESSFUL, outcome_id

HEAD = Head("run_01", 1760000000, "fast")


def encoded(*events: Event) -> bytes:
    encoder = messages.encoder(HEAD, include_usage=False, style="error")
    return b"".join(map(encoder.encode, events))


def frames(data: bytes) -> list[dict[str, Any]]:
    """The stream's events, each named as it is typed."""
    found = []
    for frame in sse.Decoder().feed(data):
        found.append(msgspec.json.decode(frame.data))
        assert found[-1]["type"] == frame.event
    return found


def check_order(stream: list[dict[str, Any]]) -> None:
    """message_start, then blocks one after the other with dense indexes, then the ending, and nothing after it."""
    if stream[0]["type"] != "error":
        assert stream[0]["type"] == "message_start"
    open_block: str | None = None
    blocks = 0
    fields = {"text": {"text_delta", "citations_delta"}, "thinking": {"thinking_delta", "signature_delta"}}
    fields["tool_use"] = {"input_json_delta"}
    for n, event in enumerate(stream[1:], 1):
        match event["type"]:
            case "content_block_start":
                assert open_block is None
                assert event["index"] == blocks
                open_block = event["content_block"]["type"]
            case "content_block_delta":
                assert open_block is not None
                assert event["index"] == blocks
                assert event["delta"]["type"] in fields[open_block]
            case "content_block_stop":
                assert open_block is not None
                assert event["index"] == blocks
                open_block = None
                blocks += 1
            case "message_delta":
                assert open_block is None
                assert [after["type"] for after in stream[n + 1 :]] == ["message_stop"]
            case "message_stop":
                assert stream[n - 1]["type"] == "message_delta"
                assert n == len(stream) - 1
            case "error":
                assert n == len(stream) - 1
            case other:
                raise AssertionError(other)


def decoded(data: bytes) -> tuple[Accumulator, list[Event], Outcome]:
    accumulator = Accumulator()
    reader = TurnReader(messages.decoder("call_x"), accumulator, rules=Rules(allow_empty=True), think_tags=False)
    events = reader.feed(data)
    end = reader.end("clean")
    return accumulator, events + end.events, end.outcome


# ------------------------------------------------------------------ the order


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


# ------------------------------------------------------------- there and back

texts = st.sampled_from(["Hi", " ", "\n", "Grüße 🌍", "</think>", "a b"])
signatures = st.sampled_from(
    [
        ProviderState("messages", {"signature": "c2ln"}, of="reasoning"),
        ProviderState("messages", {"data": "c2VhbGVk"}, of="reasoning"),
    ]
)
opaque = st.just(ProviderState("messages", {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}))


@st.composite
def turns(draw: st.DrawFn) -> list[Event]:
    """What a decoder of any dialect may bring in one turn."""
    events: list[Event] = []
    pending: dict[int, list[Event]] = {}
    calls = 0
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["text", "reasoning", "signed", "opaque", "call", "args", "args"]))
        if kind == "text":
            events.append(TextDelta(draw(texts), refusal=draw(st.booleans())))
        elif kind == "reasoning":
            events.append(ReasoningDelta(draw(texts)))
        elif kind == "signed":
            events += [ReasoningDelta(draw(texts)), draw(signatures)]
        elif kind == "opaque":
            events.append(draw(opaque))
        elif kind == "call":
            events.append(ToolCallStarted(calls, f"call_{calls}", "look"))
            pieces = draw(st.sampled_from([["{}"], ["{", '"x":', '"}"', "}"], ['{"x":{"y":[1,', "2]}", "}"], []]))
            pending[calls] = [*(ToolArgsDelta(calls, piece) for piece in pieces), ToolCallEnded(calls)]
            calls += 1
        elif pending:
            index = draw(st.sampled_from(sorted(pending)))
            events.append(pending[index].pop(0))
            if not pending[index]:
                del pending[index]
    return events + [event for rest in pending.values() for event in rest]


def told(events: list[Event], *, empty: str) -> list[Any]:
    """What a client can tell from them: the blocks in their order, whatever the pieces."""
    accumulator = Accumulator()
    for event in events:
        accumulator.apply(event)
    parts: list[Any] = []
    for part in accumulator.message().parts:
        match part:
            case Text(text=text):
                if parts and isinstance(parts[-1], Text):
                    text = parts.pop().text + text
                parts.append(Text(text))
            case ToolCall(arguments=arguments):
                parts.append(msgspec.structs.replace(part, arguments=arguments or empty))
            case Reasoning(text=str(text), state={"data": _} as state) if text:
                # Two blocks, where it was unsigned text before a sealed one.
                parts += [Reasoning(text), Reasoning("", "messages", state)]
            case Reasoning(text=text, state={"signature": ""}):
                parts.append(Reasoning(text))
            case _:
                parts.append(part)
    return parts


@given(turns(), st.sampled_from([Completed(), Completed("tool_calls"), Incomplete("length")]))
def test_decoding_what_was_encoded_gives_the_same_events(events: list[Event], outcome: Outcome) -> None:
    usage = Usage(9, 4, 2, 1, "provider", 3)
    data = encoded(*events, UsageReported(usage), RunEnded(outcome))
    check_order(frames(data))
    accumulator, back, ending = decoded(data)
    assert told(back, empty="{}") == told(events, empty="{}")
    assert accumulator.usage == usage
    assert type(ending) is type(outcome) or isinstance(ending, Failed)
    if isinstance(outcome, Incomplete) or (outcome.reason == "tool_calls") == bool(accumulator.calls):
        assert ending == outcome


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_every_recorded_stream_can_be_passed_on(fixture: Fixture) -> None:
    """A client of this dialect reads what any upstream of any dialect sent, and how it ended."""
    accumulator = Accumulator()
    end = fixture.read([fixture.data], accumulator)
    data = encoded(*end.events, RunEnded(end.outcome))
    check_order(frames(data))
    back, _, outcome = decoded(data)
    if isinstance(end.outcome, Completed | Incomplete):
        assert back.text() == accumulator.text()
        assert back.reasoning() == accumulator.reasoning()
        blank = [(call.id, call.name, call.arguments.strip() or "{}") for call in accumulator.calls]
        assert [(call.id, call.name, call.arguments.strip()) for call in back.calls] == blank
        assert type(outcome) is type(end.outcome)
    else:
        assert isinstance(outcome, Failed)
        assert accumulator.text().startswith(back.text())


# ---------------------------------------------------------------- the endings

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
