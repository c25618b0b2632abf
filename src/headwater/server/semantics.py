"""What metrics and traces both say of a run, in OpenTelemetry's words for generative AI: once, so that they agree."""

from typing import Literal, assert_never

from headwater.events import Completed, Failed, Incomplete, Interrupted, Outcome, Stopped
from headwater.records import Run

Operation = Literal["chat", "invoke_agent"]


def operation(run: Run) -> Operation:
    return "chat" if run.agent is None else "invoke_agent"


def error_type(outcome: Outcome) -> str | None:
    """One of a few words of ours. None: it is no error, which somebody's stop is not, either."""
    match outcome:
        case Failed(reason=reason) | Interrupted(reason=reason):
            return reason
        case Completed() | Incomplete() | Stopped():
            return None
        case unreachable:
            assert_never(unreachable)
