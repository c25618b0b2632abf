"""The usage of an answer of several turns and attempts, as clients are told: the same as the log adds up to."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.accumulate import Accumulator
from headwater.dialects import chat, messages
from headwater.dialects.base import Head
from headwater.dialects.totals import Totals
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
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
