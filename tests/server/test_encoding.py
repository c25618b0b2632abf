"""What a dialect's client is told besides the dialect's own words."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.dialects import DIALECTS
from headwater.dialects.base import Head
from headwater.dialects.carry import unsaid
from headwater.events import (
    AttemptStarted,
    Completed,
    DialectName,
    Event,
    Failed,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    TextDelta,
)
from headwater.server.encoding import After, Gathered, Streamed
from tests.server.house import frames

HEAD = Head("run_1", 1, "m")
SEARCH = ProviderState("responses", {"type": "web_search_call", "id": "ws_1", "status": "completed"})


def begun(*events: Event) -> list[Event]:
    return [AttemptStarted("up", "m"), *events]


def streamed(dialect: DialectName) -> Streamed:
    spoken = DIALECTS[dialect]
    return Streamed(spoken, HEAD, spoken.encoder(HEAD, include_usage=False, style="error"))


def notes_in(body: bytes) -> list[str]:
    found: list[Any] = [frame.data for frame in frames(body)]
    noted = [data["headwater"] for data in found if isinstance(data, dict) and "headwater" in data]
    return noted[0]["notes"] if noted else []


@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_an_item_that_the_dialect_has_no_words_for_is_noted_once(dialect: DialectName) -> None:
    events = begun(SEARCH, TextDelta("Hi"), SEARCH, RunEnded(Completed("stop")))
    why = unsaid(SEARCH, dialect)
    assert why is not None
    assert notes_in(streamed(dialect).encode(events)) == [why]
    whole = msgspec.json.decode(Gathered(DIALECTS[dialect], HEAD).encode(events))
    assert whole["headwater"]["notes"] == [why]


def test_a_refusal_is_noted_where_it_looks_like_any_text() -> None:
    events = begun(TextDelta("No", refusal=True), TextDelta(", no.", refusal=True), RunEnded(Completed("stop")))
    assert len(notes_in(streamed("messages").encode(events))) == 1
    assert notes_in(streamed("chat").encode(events)) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_keeps_its_status_only_before_the_first_byte(dialect: DialectName) -> None:
    refused = RunEnded(Failed("refused", "Slow down.", 429))
    early, late, beaten = streamed(dialect), streamed(dialect), streamed(dialect)
    early.encode(begun(refused))
    assert early.begin() == 429
    late.encode(begun(TextDelta("Hi")))
    late.encode(begun(refused))
    assert late.begin() == 200
    assert beaten.begin() == 200
    beaten.encode(begun(refused))
    assert beaten.begin() == 200


def test_the_rest_of_a_stream_is_the_stream_without_its_beginning() -> None:
    events: list[Event] = [TextDelta("a"), TextDelta("b"), TextDelta("c"), RunEnded(Failed("stalled", "Silence."))]

    def whole(had: int) -> bytes:
        encoder = After(DIALECTS["responses"].encoder(HEAD, include_usage=True, style="error"), had)
        return b"".join(map(encoder.encode, events))

    everything = frames(whole(0))
    for had in range(len(everything) + 2):
        assert frames(whole(had)) == everything[had:]


TEXTS = st.text(st.sampled_from([*'a,"\\ []{}\n\t', "é", "河", "🙂", "\x7f", "\u2028"]), max_size=6)
EVENTS = st.one_of(
    st.builds(TextDelta, TEXTS),
    st.builds(TextDelta, TEXTS),
    st.builds(TextDelta, TEXTS.filter(bool), st.just(True)),
    st.builds(ReasoningDelta, TEXTS),
    st.just(SEARCH),
)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(st.lists(EVENTS, max_size=12))
@example([TextDelta("a"), TextDelta('",'), TextDelta("b")])
def test_what_comes_at_once_is_told_as_if_it_had_come_one_by_one(dialect: DialectName, came: list[Event]) -> None:
    events = begun(*came, RunEnded(Completed("stop")))
    one_by_one = streamed(dialect)
    assert streamed(dialect).encode(events) == b"".join(one_by_one.encode([event]) for event in events)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_number_of_texts_may_come_at_once(dialect: DialectName) -> None:
    body = streamed(dialect).encode(begun(*[TextDelta("no, ")] * 5000, RunEnded(Completed("stop"))))
    assert body.count(b"no, ") >= 5000
