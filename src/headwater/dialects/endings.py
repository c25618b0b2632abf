"""What all dialects say alike of an ending that is no success: its code, its words, its status."""

from typing import Any, Final, assert_never

import msgspec

from headwater.dialects.base import Whole
from headwater.errors import CallerError
from headwater.events import Completed, Failed, Incomplete, Interrupted, Outcome, Stopped

Unsuccessful = Stopped | Failed | Interrupted

# The upstream's word on the request itself: as true for our client as it was for us.
_KEPT_STATUS: Final = frozenset({400, 404, 413, 422, 429})

# What became of it, and no more: whether anything is kept, only the run knows, and whoever asked for that can look.
_WORDS: Final = {
    "user": "The run was stopped by its user.",
    "disconnect": "The run was stopped because its client went away.",
    "replaced": "The run was stopped because a newer message took its place.",
    "crash": "The server died during the run.",
    "shutdown": "The server shut down during the run.",
    "store": "The server could not store the run any further.",
}


def code(outcome: Unsuccessful) -> str:
    match outcome:
        case Stopped():
            return "run_stopped"
        case Failed(reason=reason):
            return reason
        case Interrupted():
            return "run_interrupted"
        case unreachable:
            assert_never(unreachable)


def blame(outcome: Unsuccessful) -> str:
    """Whose doing it was."""
    match outcome:
        case Stopped():
            return "run_stopped"
        case Failed(reason="agent_error"):
            return "agent_error"
        case Failed():
            return "upstream_error"
        case Interrupted():
            return "server_error"
        case unreachable:
            assert_never(unreachable)


def words(outcome: Unsuccessful) -> str:
    return outcome.message if isinstance(outcome, Failed) else _WORDS[outcome.reason]


def status(outcome: Outcome) -> int:
    """Of an answer in one piece."""
    match outcome:
        case Completed() | Incomplete():
            return 200
        case Stopped():
            return 409
        case Interrupted():
            return 502
        case Failed(status=int(kept)) if kept in _KEPT_STATUS:
            return kept
        case Failed(reason="agent_error"):
            return 500
        case Failed(reason="stalled"):
            return 504
        case Failed():
            return 502
        case unreachable:
            assert_never(unreachable)


def stream_status(outcome: Outcome) -> int:
    """Of a stream that ended before its first byte was sent: SDKs retry a 5xx, and each retry is billed."""
    kept = status(outcome)
    return kept if isinstance(outcome, Failed) and kept in _KEPT_STATUS else 200


def error_object(outcome: Unsuccessful) -> dict[str, Any]:
    """As OpenAI's dialects have it."""
    return {"message": words(outcome), "type": blame(outcome), "param": None, "code": code(outcome)}


def refusal(error: CallerError) -> Whole:
    """A refusal of ours, as OpenAI's dialects have it."""
    type = "invalid_request_error" if error.status < 500 else "server_error"
    body = {"message": error.message, "type": type, "param": error.param, "code": error.code}
    return Whole(error.status, msgspec.json.encode({"error": body}))
