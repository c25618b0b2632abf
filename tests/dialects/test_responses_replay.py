"""Whatever the events, the stream of a Responses client is legal, and its replay and its decoding give the same."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.accumulate import Accumulator
from headwater.dialects import responses
from headwater.events import (
    Completed,
    Event,
    Notice,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    UsageReported,
)
from headwater.turn import TurnReader
from tests.dialects.responses_encoded import HEAD, USAGE, encoded, message, streamed
from tests.fixtures import FIXTURES, Fixture
from tests.outcomes import OUTCOMES
from tests.responses_stream import check

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
