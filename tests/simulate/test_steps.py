"""Steps without a socket: every answer has one end, whatever goes wrong in it."""

from typing import Any, get_args

import pytest

from headwater.events import DialectName
from headwater.simulate.asked import read_asked
from headwater.simulate.perform import perform
from headwater.simulate.script import POINTS, Answer, Call, Cut, Fault, Point, Raw, Reasoning, Writes
from headwater.simulate.steps import End, Send, Silence, Step
from tests.simulate.wire import DIALECTS, body_for

KINDS: tuple[type[Fault], ...] = get_args(Fault)


def steps_of(answer: Answer, dialect: DialectName, *, stream: bool = True) -> list[Step]:
    asked = read_asked(dialect, body_for(dialect, "m", stream=stream))
    return list(perform(answer, asked, number=0, created=1)[1])


def make(kind: type[Fault], point: Point) -> Fault | None:
    """None: that can't be there."""
    given: dict[str, Any] = {"text": "x"} if kind is Raw else {}
    try:
        return kind(at=point, **given)
    except ValueError:
        return None


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", POINTS)
def test_there_is_one_end_and_nothing_after_it(
    dialect: DialectName, stream: bool, kind: type[Fault], point: Point
) -> None:
    fault = make(kind, point)
    if fault is None:
        assert point in ("before_head", "in_head")
        return
    for writes in (Writes(), Writes(tokens=3), Writes(framing="close")):
        calls = (Call(arguments={"at": 1}),)
        answer = Answer(text="a b c d", calls=calls, reasoning=Reasoning(), writes=writes, faults=(fault,))
        steps = steps_of(answer, dialect, stream=stream)
        assert [step for step in steps if isinstance(step, End | Silence)] == steps[-1:]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_can_be_seen_of_a_fault_is_in_the_bytes_before_the_end(dialect: DialectName) -> None:
    whole = b"".join(step.data for step in steps_of(Answer(tokens=6, id="x"), dialect) if isinstance(step, Send))
    for kind in KINDS:
        for point in POINTS:
            fault = make(kind, point)
            # There are no arguments, and a cut after all is said is none.
            too_late = kind is Cut and point in ("after_finish", "after_terminator")
            if fault is None or too_late or point == "in_arguments":
                continue
            steps = steps_of(Answer(tokens=6, id="x", faults=(fault,)), dialect)
            sent = b"".join(step.data for step in steps if isinstance(step, Send))
            assert sent != whole or steps[-1] != End("answered"), fault
