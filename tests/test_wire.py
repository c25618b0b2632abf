"""Every recorded stream is read the same way, however its bytes arrive (C1-C14, C26)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import sse
from headwater.accumulate import Accumulator
from headwater.dialects import DIALECTS
from headwater.events import (
    Completed,
    Entry,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolArgsDelta,
    ToolCallStarted,
    decode_entry,
    encode_entry,
)
from headwater.turn import KEEP_ALIVES
from tests.fixtures import FIXTURES, WIRE, Fixture

all_fixtures = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)


def test_every_dialect_has_fixtures() -> None:
    assert {fixture.dialect for fixture in FIXTURES} == set(DIALECTS)
    assert len(FIXTURES) == len(list(WIRE.glob("*/*.json")))


@all_fixtures
def test_whole(fixture: Fixture) -> None:
    end = fixture.read([fixture.data])
    assert end.events == fixture.events
    assert end.outcome == fixture.outcome


@all_fixtures
def test_byte_by_byte(fixture: Fixture) -> None:
    end = fixture.read([bytes([byte]) for byte in fixture.data])
    assert end.events == fixture.events
    assert end.outcome == fixture.outcome


@given(data=st.data())
def test_cut_at_random(data: st.DataObject) -> None:
    fixture = data.draw(st.sampled_from(FIXTURES))
    cuts = data.draw(st.lists(st.integers(0, len(fixture.data)), max_size=12).map(sorted))
    pieces = [fixture.data[a:b] for a, b in zip([0, *cuts], [*cuts, len(fixture.data)], strict=True)]
    end = fixture.read(pieces)
    assert end.events == fixture.events
    assert end.outcome == fixture.outcome


def visible(events: list[Event]) -> list[Event]:
    return [
        event for event in events if isinstance(event, TextDelta | ReasoningDelta | ToolCallStarted | ToolArgsDelta)
    ]


@given(data=st.data())
def test_a_stream_cut_anywhere_keeps_what_came_and_is_no_success_before_its_finish(data: st.DataObject) -> None:
    # Those that go on after a finish have one before the cut, too.
    fixture = data.draw(st.sampled_from([fixture for fixture in FIXTURES if "after_finish" not in fixture.name]))
    cut = data.draw(st.integers(0, len(fixture.data)))
    reader = fixture.reader()
    seen = visible(reader.feed(fixture.data[:cut]))
    end = reader.end("broken")
    whole = visible(fixture.read([fixture.data]).events)
    assert seen == whole[: len(seen)]
    if len(seen) + len(visible(end.events)) < len(whole):
        assert not isinstance(end.outcome, Completed)


@all_fixtures
def test_folding_the_log_equals_the_live_accumulator(fixture: Fixture) -> None:
    live = Accumulator()
    end = fixture.read([fixture.data], live)
    folded = Accumulator()
    for seq, event in enumerate(end.events):
        folded.apply(decode_entry(encode_entry(Entry(seq, 1.5, event))).event)
    assert folded.messages() == live.messages()
    assert folded.usage == live.usage
    assert folded.delivered() == live.delivered()


@all_fixtures
def test_each_frame_is_activity_once_and_keep_alives_are_none(fixture: Fixture) -> None:
    """C7."""
    frames = sse.Decoder().feed(fixture.data)
    reader = fixture.reader()
    seen = 0
    for frame in frames:
        reader.feed(b": keep-alive\n\nevent: ping\ndata: {}\n\n")
        assert reader.activity == seen
        if reader.closed or frame.event in KEEP_ALIVES:
            continue
        reader.feed(sse.encode(frame.data, event=frame.event))
        seen += 1
        assert reader.activity == seen
