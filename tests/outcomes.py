"""Every outcome there is, and what may have been delivered before it: the rows of the endings' tables."""

from typing import get_args

from headwater.events import (
    Completed,
    Event,
    Failed,
    FailureReason,
    Incomplete,
    Interrupted,
    Outcome,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
)

SUCCESSES: list[Outcome] = [Completed("stop"), Completed("tool_calls")]
INCOMPLETE: list[Outcome] = [Incomplete("length"), Incomplete("content_filter"), Incomplete("turn_limit")]
UNSUCCESSFUL: list[Outcome] = [
    Stopped("user"),
    Stopped("disconnect"),
    Stopped("replaced"),
    *[Failed(reason, f"It was {reason}.") for reason in get_args(FailureReason)],
    *[Failed("refused", f"The upstream said {status}.", status) for status in (400, 401, 404, 413, 422, 429)],
    Interrupted("crash"),
    Interrupted("shutdown"),
    Interrupted("store"),
]
OUTCOMES = SUCCESSES + INCOMPLETE + UNSUCCESSFUL

DELIVERED: dict[str, list[Event]] = {
    "nothing": [],
    "text": [TextDelta("Hel"), TextDelta("lo")],
    "reasoning": [ReasoningDelta("Let me think.")],
    "tool_call": [
        ToolCallStarted(0, "call_a", "look"),
        ToolArgsDelta(0, '{"at":'),
        ToolArgsDelta(0, "1}"),
        ToolCallEnded(0),
    ],
}


def outcome_id(outcome: Outcome) -> str:
    status = f"-{outcome.status}" if isinstance(outcome, Failed) and outcome.status else ""
    return f"{type(outcome).__name__.lower()}-{outcome.reason}{status}"
