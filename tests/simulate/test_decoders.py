"""Headwater's own readers, which share no code with the simulator's writers, read the same out of its streams."""

import pytest

from headwater.accumulate import Accumulator
from headwater.dialects import DIALECTS as READERS
from headwater.events import Completed, DialectName, Failed, Incomplete, Outcome
from headwater.judge import Transport
from headwater.simulate import Answer, Call, Reasoning, Writes
from headwater.testing import Simulator
from headwater.turn import TurnReader
from tests.simulate.wire import DIALECTS, Received, ask

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("dialect", DIALECTS)]


def read(dialect: DialectName, received: Received, transport: Transport = "clean") -> tuple[Accumulator, Outcome]:
    accumulator = Accumulator()
    reader = TurnReader(READERS[dialect].decoder("call_x"), accumulator)
    for chunk in received.chunks:
        reader.feed(chunk)
    return accumulator, reader.end(transport).outcome


async def test_a_whole_answer(simulator: Simulator, dialect: DialectName) -> None:
    calls = (Call(name="look", arguments={"at": "Tromsø"}, id="call_a"), Call(name="wait", arguments={}, id="call_b"))
    for writes in (Writes(), Writes(every_bytes=1), Writes(seed=1)):
        answer = Answer(text="Grüße, «you».", reasoning=Reasoning(text="Hm. Well."), calls=calls, writes=writes)
        simulator.script("m", answer)
        accumulator, outcome = read(dialect, await ask(simulator, "m", dialect))
        assert outcome == Completed("tool_calls")
        assert accumulator.text() == "Grüße, «you»."
        assert accumulator.reasoning() == "Hm. Well."
        assert [(call.id, call.name, call.arguments) for call in accumulator.turn_calls] == [
            ("call_a", "look", '{"at":"Tromsø"}'),
            ("call_b", "wait", "{}"),
        ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tokens-3", Completed("stop")),
        ("finish-length", Incomplete("length")),
        ("cut-after-3", "upstream_truncated"),
        ("cut-at-before_finish", "upstream_truncated"),
        ("omit-finish", "upstream_truncated"),
        ("error-after-3", "upstream_error"),
        ("finish-network_error", "upstream_error"),
        ("badjson-after-2", "upstream_error"),
        ("tokens-0", "empty"),
    ],
)
async def test_an_ending(simulator: Simulator, dialect: DialectName, words: str, expected: Outcome | str) -> None:
    """C10, C11, C12, C14."""
    _, outcome = read(dialect, await ask(simulator, f"sim/{words}", dialect))
    if isinstance(expected, str):
        assert isinstance(outcome, Failed)
        assert outcome.reason == expected
    else:
        assert outcome == expected
