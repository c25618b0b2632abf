"""What a chat client is sent, to the letter (C60-C66)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Reasoning, Text, ToolCall
from headwater.dialects import chat, endings
from headwater.dialects.base import Head
from headwater.errors import CallerError
from headwater.events import (
    ApprovalAsked,
    AttemptStarted,
    Completed,
    Event,
    Failed,
    FailureStyle,
    Incomplete,
    Interrupted,
    Notice,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolResult,
    ToolRunStarted,
    Usage,
    UsageReported,
)
from headwater.turn import TurnReader
from tests.outcomes import DELIVERED, OUTCOMES, SUCCESSES, UNSUCCESSFUL, outcome_id

HEAD = Head("run_01", 1760000000, "fast")
FRAME = {"id": "chatcmpl-01", "object": "chat.completion.chunk", "created": 1760000000, "model": "fast"}
DONE = "[DONE]"

every_outcome = pytest.mark.parametrize("outcome", OUTCOMES, ids=outcome_id)
every_start = pytest.mark.parametrize("delivered", DELIVERED.values(), ids=DELIVERED)
every_style = pytest.mark.parametrize("style", ["error", "finish_reason"])


def encode(*events: Event, style: FailureStyle = "error", include_usage: bool = False) -> bytes:
    encoder = chat.encoder(HEAD, include_usage=include_usage, style=style)
    return b"".join(map(encoder.encode, events))


def frames(data: bytes) -> list[Any]:
    """Every frame is one `data` line: no named events, no ids, nothing that a common client trips over."""
    blocks = data.decode().split("\n\n")
    assert blocks.pop() == ""
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    return [block[6:] if block[6:] == DONE else json.loads(block[6:]) for block in blocks]


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return FRAME | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | more


def test_a_stream() -> None:
    """C60: the role rides on the first delta, the last chunk has only the reason, then [DONE]."""
    assert frames(encode(TextDelta("Hel"), TextDelta("lo"), RunEnded(Completed()))) == [
        chunk({"role": "assistant", "content": "Hel"}),
        chunk({"content": "lo"}),
        chunk({}, "stop"),
        DONE,
    ]


def test_all_that_a_delta_can_be() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": ""}}
    assert frames(
        encode(
            ReasoningDelta("hm"),
            ProviderState("chat", {"reasoning_details": [{"type": "reasoning.text"}]}, of="reasoning"),
            TextDelta("No.", refusal=True),
            ToolCallStarted(0, "c", "t", {"extra_content": {"google": 1}}),
            ToolArgsDelta(0, '{"é":1}'),
            ToolCallEnded(0, {"late": True}),
            RunEnded(Completed("tool_calls")),
        )
    ) == [
        chunk({"role": "assistant", "reasoning_content": "hm"}),
        chunk({"reasoning_details": [{"type": "reasoning.text"}]}),
        chunk({"refusal": "No."}),
        chunk({"tool_calls": [{"index": 0, "extra_content": {"google": 1}, **call}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"é":1}'}}]}),
        chunk({"tool_calls": [{"index": 0, "late": True, "function": {"arguments": ""}}]}),
        chunk({}, "tool_calls"),
        DONE,
    ]


def test_what_has_no_place_here_is_not_leaked() -> None:
    assert not encode(
        AttemptStarted("openai", "gpt"),
        Notice("tool_call_dropped", "secret"),
        ProviderState("messages", {"signature": "s"}, of="reasoning"),
        ProviderState("chat", {"other": 1}),
        ToolCallEnded(0),
        ToolRunStarted("c"),
        ToolResult("c", "secret"),
        ApprovalAsked("c", "t", "{}", "d"),
        UsageReported(Usage(1, 1, source="provider")),
    )


def test_a_provider_cannot_overwrite_a_calls_own_fields() -> None:
    (frame,) = frames(encode(ToolCallStarted(0, "c", "t", {"id": "evil", "function": {}})))
    assert frame["choices"][0]["delta"]["tool_calls"][0]["id"] == "c"
    assert frame["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "t"


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        (Usage(7, 2, 5, 1, "provider"), {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9,
         "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 1}}),
        (Usage(7, 2, source="estimated"), {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}),
        (Usage(None, 2, source="provider"), {"completion_tokens": 2}),
        (Usage(), None),
    ],
)  # fmt: skip
def test_usage_comes_before_done_and_only_if_asked_for(usage: Usage, written: Any) -> None:
    """C62. What is not known is left out: it is not 0."""
    events = (TextDelta("Hi"), UsageReported(usage), RunEnded(Completed()))
    asked, not_asked = frames(encode(*events, include_usage=True)), frames(encode(*events))
    assert asked[-2:] == [FRAME | {"choices": [], "usage": written}, DONE]
    assert [*asked[:-2], DONE] == not_asked


@every_outcome
@every_start
@every_style
def test_exactly_one_ending_and_nothing_after_it(outcome: Outcome, delivered: list[Event], style: FailureStyle) -> None:
    """C60, C64, C65, C66, for every outcome, with nothing, text, reasoning or a call before it."""
    start = frames(encode(*delivered))
    whole = frames(encode(*delivered, RunEnded(outcome), style=style))
    ending = whole[len(start) :]
    assert whole[: len(start)] == start
    assert all(frame["choices"][0]["finish_reason"] is None for frame in start)
    match outcome, style:
        case (Completed() | Incomplete(), _):
            word = {"turn_limit": "length"}.get(outcome.reason, outcome.reason)
            truncated = style == "finish_reason" and outcome.reason in ("length", "turn_limit")
            note = {
                "headwater": {"outcome": {"type": "incomplete", "reason": outcome.reason}, "code": "output_truncated"}
            }
            assert ending == [chunk({}, word, **(note if truncated else {})), DONE]
        case (_, "error"):
            (frame,) = ending
            assert list(frame) == ["error"]
            assert list(frame["error"]) == ["message", "type", "param", "code"]
            assert frame["error"]["message"]
        case _:
            last, done = ending
            assert done == DONE
            assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "error"}]
            assert last["error"]["code"] == last["headwater"]["code"]
            assert last["headwater"]["outcome"]["type"] == type(outcome).__name__.lower()
    if outcome in SUCCESSES:
        assert b"error" not in encode(*delivered, RunEnded(outcome), style=style)
        assert b"headwater" not in encode(*delivered, RunEnded(outcome), style=style)


@pytest.mark.parametrize(
    ("outcome", "blame", "code"),
    [
        (Stopped("user"), "run_stopped", "run_stopped"),
        (Failed("stalled", "…"), "upstream_error", "stalled"),
        (Failed("agent_error", "…"), "agent_error", "agent_error"),
        (Interrupted("crash"), "server_error", "run_interrupted"),
    ],
)
def test_an_error_says_whose_it_is(outcome: Outcome, blame: str, code: str) -> None:
    (frame,) = frames(encode(RunEnded(outcome)))
    assert (frame["error"]["type"], frame["error"]["code"]) == (blame, code)


@pytest.mark.parametrize(
    "outcome", [outcome for outcome in UNSUCCESSFUL if not isinstance(outcome, Failed)], ids=outcome_id
)
def test_an_error_promises_nothing_of_a_run_that_nobody_records(outcome: Outcome) -> None:
    (frame,) = frames(encode(RunEnded(outcome)))
    assert frame["error"]["message"].count(".") == 1
    assert "kept" not in frame["error"]["message"]


# ------------------------------------------------------------------- whole


MESSAGE = Assistant(
    (
        Reasoning("hm", "chat", {"reasoning_details": [{"type": "reasoning.text"}]}),
        Reasoning("sealed elsewhere", "messages", {"signature": "s"}),
        Text("Hello"),
        Text("No.", refusal=True),
        ToolCall("c", "t", "{}", {"extra_content": 1}),
    )
)
WRITTEN = {
    "role": "assistant",
    "content": "Hello",
    "refusal": "No.",
    "reasoning_content": "hmsealed elsewhere",
    "reasoning_details": [{"type": "reasoning.text"}],
    "tool_calls": [{"extra_content": 1, "id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}],
}


@every_outcome
def test_an_answer_in_one_piece(outcome: Outcome) -> None:
    """C61, and what had arrived is in the error of an unsuccessful one."""
    whole = chat.whole(HEAD, MESSAGE, Usage(7, 2, source="provider"), outcome)
    body = json.loads(whole.body)
    assert whole.status == endings.status(outcome)
    if outcome in UNSUCCESSFUL:
        assert "choices" not in body
        assert body["error"]["message"]
        assert body["headwater"]["partial"] == WRITTEN
        assert body["headwater"]["outcome"]["reason"] == outcome.reason
    else:
        word = {"turn_limit": "length"}.get(outcome.reason, outcome.reason)
        assert body["choices"] == [{"index": 0, "message": WRITTEN, "finish_reason": word, "logprobs": None}]
        assert body["object"] == "chat.completion"
        assert body["usage"]["total_tokens"] == 9
        assert "headwater" not in body


def test_nothing_said_is_null() -> None:
    body = json.loads(chat.whole(HEAD, Assistant(), Usage(), Completed()).body)
    assert body["choices"][0]["message"] == {"role": "assistant", "content": None, "refusal": None}
    assert body["usage"] is None


@pytest.mark.parametrize(
    ("outcome", "status", "stream_status"),
    [
        (Completed(), 200, 200),
        (Incomplete("length"), 200, 200),
        (Stopped("user"), 409, 200),
        (Interrupted("crash"), 502, 200),
        *[(Failed("refused", "…", kept), kept, kept) for kept in (400, 404, 413, 422, 429)],
        (Failed("refused", "…", 401), 502, 200),
        (Failed("upstream_error", "…", 503), 502, 200),
        (Failed("upstream_truncated", "…"), 502, 200),
        (Failed("agent_error", "…"), 500, 200),
        (Failed("stalled", "…"), 504, 200),
    ],
)
def test_the_status_of_an_outcome(outcome: Outcome, status: int, stream_status: int) -> None:
    """C64: before anything was sent, an upstream's word on the request keeps its status."""
    assert endings.status(outcome) == status
    assert endings.stream_status(outcome) == stream_status


def test_a_refusal_of_ours_has_the_dialects_shape() -> None:
    whole = chat.error(CallerError("No such model: 'x'.", status=404, code="model_not_found", param="model"))
    assert whole.status == 404
    assert json.loads(whole.body) == {
        "error": {
            "message": "No such model: 'x'.",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
    }


# -------------------------------------------------------------- there and back


some_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
extras = st.none() | st.just({"extra_content": {"google": {"thought_signature": "c2ln"}}})


@st.composite
def turns(draw: st.DrawFn) -> list[Event]:
    """Events of a turn, as far as this dialect can carry them."""
    events: list[Event] = []
    calls = 0
    for kind in draw(st.lists(st.sampled_from(["text", "reasoning", "refusal", "call", "args"]), max_size=12)):
        match kind:
            case "text":
                events.append(TextDelta(draw(some_text)))
            case "refusal":
                events.append(TextDelta(draw(some_text), refusal=True))
            case "reasoning":
                events.append(ReasoningDelta(draw(some_text)))
            case "call":
                events.append(ToolCallStarted(calls, f"call_{calls}", draw(st.sampled_from(["a", "b"])), draw(extras)))
                calls += 1
            case _:
                events += [ToolArgsDelta(draw(st.integers(0, calls - 1)), draw(some_text))] if calls else []
    return [*events, *(ToolCallEnded(index, draw(extras)) for index in range(calls))]


@given(turns(), st.none() | st.builds(Usage, *[st.none() | st.integers(0, 99)] * 4, source=st.just("provider")))
def test_what_was_encoded_is_decoded(events: list[Event], usage: Usage | None) -> None:
    if usage is not None and (usage.input_tokens is not None or usage.output_tokens is not None):
        events = [*events, UsageReported(usage)]
    outcome = Completed("tool_calls" if any(isinstance(event, ToolCallStarted) for event in events) else "stop")
    data = encode(*events, RunEnded(outcome), include_usage=True)
    reader = TurnReader(chat.decoder("x"), Accumulator(), think_tags=False)
    read = reader.feed(data)
    end = reader.end("clean")
    # Arguments that were made up may well be torn: then there is a notice more.
    assert [event for event in read + end.events if not isinstance(event, Notice)] == events


@pytest.mark.parametrize("seal", [{"signature": "s"}, {}])
def test_what_is_several_to_another_dialect_is_told_apart_by_a_blank_line(seal: dict[str, str]) -> None:
    """The same in a stream and in one piece."""
    events: list[Event] = [
        ProviderState("responses", seal, of="reasoning"),
        ReasoningDelta("One"),
        ReasoningDelta("."),
        ProviderState("responses", seal, of="reasoning"),
        ReasoningDelta("Two."),
        ProviderState("responses", {"type": "message"}),
        TextDelta("A"),
        TextDelta("."),
        ProviderState("responses", {"type": "message", "phase": "commentary"}),
        ProviderState("messages", {"type": "headwater.citations", "citations": []}),
        TextDelta("B"),
        TextDelta("."),
        ProviderState("responses", {"type": "message"}),
    ]
    accumulator = Accumulator()
    for event in events:
        accumulator.apply(event)
    deltas = [chunk["choices"][0]["delta"] for chunk in frames(encode(*events))]
    assert "".join(delta.get("content", "") for delta in deltas) == "A.\n\nB."
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "One.\n\nTwo."
    message = json.loads(chat.whole(HEAD, accumulator.message(), Usage(), Completed()).body)
    assert message["choices"][0]["message"]["content"] == "A.\n\nB."
    assert message["choices"][0]["message"]["reasoning_content"] == "One.\n\nTwo."
