"""What was written for a Messages client gives the same events when it is read."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.accumulate import Accumulator
from headwater.conversation import Reasoning, Text, ToolCall
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
from tests.dialects.messages_encoded import check_order, decoded, encoded, frames
from tests.fixtures import FIXTURES, Fixture

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
