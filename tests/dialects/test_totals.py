"""The usage of an answer of several turns and attempts, as clients are told: the same as the log adds up to."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Opaque, Text
from headwater.dialects import DIALECTS, chat, messages
from headwater.dialects.base import STOP, Head
from headwater.dialects.details import added
from headwater.dialects.totals import Totals
from headwater.events import (
    AttemptStarted,
    Completed,
    DialectName,
    Event,
    ProviderState,
    RunEnded,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    UsageReported,
)

HEAD = Head("run_1", 1760000000, "m")


def attempt(turn: int = 0, stands: str = "nothing") -> AttemptStarted:
    return AttemptStarted("up", "m", turn, stands=stands)  # type: ignore[arg-type]


def reported(read: int, written: int) -> UsageReported:
    return UsageReported(Usage(read, written, source="provider"))


CASES: dict[str, tuple[list[Event], Usage]] = {
    "two turns": ([attempt(), TextDelta("a"), reported(100, 10), attempt(1), TextDelta("b"), reported(200, 5)],
                  Usage(300, 15, source="provider")),
    "given up": ([attempt(), reported(100, 10), attempt(), TextDelta("b")], Usage()),
    "gone on": ([attempt(), TextDelta("a"), reported(100, 10), attempt(0, "everything"), TextDelta("b"), reported(110, 5)],
                Usage(210, 15, source="provider")),
    "reported twice": ([attempt(), TextDelta("a"), reported(100, 1), reported(100, 10)], Usage(100, 10, source="provider")),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_clients_are_told_what_the_log_adds_up_to(case: str) -> None:
    events, usage = CASES[case]
    accumulator, totals = Accumulator(), Totals()
    for event in events:
        accumulator.apply(event)
        if isinstance(event, AttemptStarted):
            totals.attempt(event)
        elif isinstance(event, UsageReported):
            totals.report(event.usage)
    assert accumulator.usage == totals.total() == usage


def test_chat_streams_the_sum() -> None:
    events, _ = CASES["two turns"]
    encoder = chat.encoder(HEAD, include_usage=True, style="error")
    data = b"".join(encoder.encode(event) for event in [*events, RunEnded(Completed())])
    assert json.loads(data.split(b"\n\n")[-3][6:])["usage"]["total_tokens"] == 315


def test_messages_streams_the_sum() -> None:
    events, _ = CASES["two turns"]
    encoder = messages.encoder(HEAD, include_usage=True, style="error")
    data = b"".join(encoder.encode(event) for event in [*events, RunEnded(Completed())])
    assert b'"output_tokens":15' in data


def ended(dialect: DialectName, usage: Usage, **details: Any) -> list[Event]:
    return [ProviderState(dialect, {"type": STOP, "usage": details}), UsageReported(usage)]


DETAILS: dict[DialectName, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "chat": ({"cost": 0.5, "plan": "a"}, {"cost": 0.25, "plan": "b"}, {"cost": 0.75, "plan": "b"}),
    "responses": ({"cost": 0.5, "input_tokens_details": {"audio_tokens": 2}}, {"cost": 0.25}, {"cost": 0.75}),
    "messages": (
        {"server_tool_use": {"web_search_requests": 3}},
        {"server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 1}},
        {"server_tool_use": {"web_search_requests": 4, "web_fetch_requests": 1}},
    ),
}
AGAIN = {"turn": attempt(1), "cut": attempt(0, "everything")}


@pytest.mark.parametrize("dialect", DETAILS)
@pytest.mark.parametrize("again", AGAIN)
def test_details_are_added_up_with_the_tokens(dialect: DialectName, again: str) -> None:
    one, other, both = DETAILS[dialect]
    usage = Usage(100, 10, source="provider")
    events = [attempt(), TextDelta("a"), *ended(dialect, usage, **one), AGAIN[again], TextDelta("b")]
    events += [*ended(dialect, usage, **other), RunEnded(Completed())]
    encoder = DIALECTS[dialect].encoder(HEAD, include_usage=True, style="error")
    frames = b"".join(encoder.encode(event) for event in events).split(b"\n\n")
    found = [json.loads(frame[frame.index(b"{") :]) for frame in frames if b"{" in frame]
    streamed = next(used for frame in reversed(found) if (used := (frame.get("response") or frame).get("usage")))
    parts = (Opaque(dialect, {"type": STOP, "usage": details}) for details in (one, other))
    message = Assistant((Text("a"), *parts))
    whole = json.loads(DIALECTS[dialect].whole(HEAD, message, usage + usage, Completed()).body)["usage"]
    assert both.items() <= streamed.items()
    assert streamed == whole


def test_details_of_what_was_given_up_are_not_told() -> None:
    totals = Totals()
    totals.attempt(attempt())
    totals.tell({"cost": 1})
    totals.attempt(attempt())
    assert totals.details == {}


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [(1, 2, 3), (1, 0.5, 1.5), (True, 1, 1), (1, True, True), ("a", 1, 1), ({"a": 1}, None, {"a": 1}), (None, 2, 2)],
)
def test_what_is_no_number_is_not_added_up(one: Any, other: Any, both: Any) -> None:
    assert added(one, other) == both


def test_chat_counts_the_calls_of_all_turns() -> None:
    """A client's own accumulator would else run two calls together."""
    encoder = chat.encoder(HEAD, include_usage=False, style="error")
    call: list[Event] = [ToolCallStarted(0, "c", "t"), ToolArgsDelta(0, "{}"), ToolCallEnded(0, {"late": 1})]
    data = [encoder.encode(event) for event in [attempt(), *call, attempt(1), *call]]
    indexes = [json.loads(frame[6:])["choices"][0]["delta"]["tool_calls"][0]["index"] for frame in data if frame]
    assert indexes == [0, 0, 0, 1, 1, 1]


@given(st.lists(st.sampled_from([attempt(), attempt(1), attempt(2), reported(3, 1), TextDelta("x")])))
def test_never_more_than_was_reported(events: list[Event]) -> None:
    totals = Totals()
    for event in events:
        if isinstance(event, AttemptStarted):
            totals.attempt(event)
        elif isinstance(event, UsageReported):
            totals.report(event.usage)
    assert (totals.total().input_tokens or 0) <= 3 * sum(isinstance(event, UsageReported) for event in events)
