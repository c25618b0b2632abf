"""Answers as a Responses client would get them."""

from typing import Any

import pytest

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant
from headwater.dialects import responses
from headwater.dialects.base import Head
from headwater.events import (
    Completed,
    Event,
    Outcome,
    RunEnded,
    Usage,
    UsageReported,
)
from tests.outcomes import DELIVERED, OUTCOMES, outcome_id
from tests.responses_stream import Stream, check

HEAD = Head("run_01", 1760000000, "fast")
USAGE = Usage(7, 2, 1, 0, "provider", 0)

every_outcome = pytest.mark.parametrize("outcome", OUTCOMES, ids=outcome_id)
every_start = pytest.mark.parametrize("delivered", DELIVERED.values(), ids=DELIVERED)


def encoded(*events: Event, head: Head = HEAD) -> bytes:
    encoder = responses.encoder(head, include_usage=False, style="error")
    return b"".join(encoder.encode(event) for event in events)


def streamed(*events: Event, outcome: Outcome = Completed(), head: Head = HEAD) -> Stream:
    return check(encoded(*events, UsageReported(USAGE), RunEnded(outcome), head=head))


def output(*events: Event, outcome: Outcome = Completed()) -> list[dict[str, Any]]:
    response = streamed(*events, outcome=outcome).response
    assert response is not None
    return list(response["output"])


def message(*events: Event) -> Assistant:
    accumulator = Accumulator()
    for event in events:
        accumulator.apply(event)
    return accumulator.message()
