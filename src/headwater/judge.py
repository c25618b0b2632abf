"""Decides how an upstream's stream ended: the one place that does.

Pure. The dialect's decoder gathers the evidence on the way, the accumulator
knows what was delivered, the caller says how the transport ended. Success needs
positive proof; whatever is missing, unknown or contradictory is a failure.
"""

import re
from typing import Any, Final, Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from headwater.errors import FrameTooLarge, FrameUnreadable
from headwater.events import Completed, Failed, FailureReason, Incomplete, Outcome

Finish = Literal["stop", "tool_calls", "length", "content_filter", "turn_limit"]

Transport = Literal["clean", "broken"]
"""`clean`: the body ended as HTTP says that it should. `broken`: a reset, or an end in its midst."""


class ErrorObject(Struct, frozen=True):
    """An error that the upstream put into its stream."""

    message: str
    code: str | None = None
    status: int | None = None


class Evidence(Struct):
    """What a decoder has seen that speaks of the end."""

    finish: Finish | None = None
    unknown_finish: str | None = None
    """A finish reason that we have no meaning for."""
    delivered_after_finish: bool = False
    terminated: bool = False
    """The dialect's own last frame came: `[DONE]` and its like."""
    contradiction: str | None = None
    """What the upstream did that does not go with success: an item that it began and never ended."""
    error: ErrorObject | None = None
    unreadable: FrameTooLarge | FrameUnreadable | None = None
    """Why reading had to be given up."""

    def finished(self, word: str, meanings: dict[str, Finish]) -> None:
        """A finish reason came. One that is no success is not taken back by a later one."""
        meaning = meanings.get(word.lower())
        if meaning is None:
            self.unknown_finish = self.unknown_finish or word
        elif self.finish in (None, "stop", "tool_calls"):
            self.finish = meaning
        self.delivered_after_finish = False

    @property
    def closed(self) -> bool:
        """Nothing that comes now can matter."""
        return self.terminated or self.error is not None or self.unreadable is not None


class Delivered(Struct, frozen=True):
    """What of the turn reached the log."""

    text: bool = False
    calls: tuple[str, ...] = ()
    """Names of all tool calls."""
    torn: tuple[str, ...] = ()
    """Names of those that end inside their arguments."""


class Rules(Struct, frozen=True):
    needs_finish_reason: bool = True
    allow_empty: bool = False


def judge(
    evidence: Evidence, delivered: Delivered, transport: Transport, rules: Rules, fault: Failed | None = None
) -> Outcome:
    """`fault` is why the caller read no further; it stands where the evidence proves no other end."""
    outcome = _verdict(evidence, delivered, transport, rules, fault)
    return naming_calls(outcome, delivered) if type(outcome) is Failed else outcome


def naming_calls(failed: Failed, delivered: Delivered) -> Failed:
    """A client of a dialect has no other place to learn which tools were not called (C26)."""
    if not delivered.calls:
        return failed
    end = "" if failed.message.endswith((".", "!", "?")) else "."
    return replace(failed, message=f"{failed.message}{end} Not called: {', '.join(delivered.calls)}.")


def _verdict(
    evidence: Evidence, delivered: Delivered, transport: Transport, rules: Rules, fault: Failed | None
) -> Outcome:
    if evidence.error is not None:
        return _failed_by(evidence.error)
    if evidence.unreadable is not None:
        if isinstance(evidence.unreadable, FrameTooLarge):
            return Failed("too_large", f"The upstream sent {evidence.unreadable}.")
        return _failed("upstream_error", f"The upstream sent what can't be read: {evidence.unreadable}.")
    if evidence.unknown_finish is not None:
        word = evidence.unknown_finish
        return _failed(
            "upstream_error", f"The upstream ended with the finish reason {word!r}, which says nothing of success."
        )
    finish = evidence.finish
    if finish is None and evidence.terminated and not rules.needs_finish_reason:
        finish = "tool_calls" if delivered.calls else "stop"
    if finish is None or (evidence.delivered_after_finish and not evidence.terminated):
        return fault or _failed("upstream_truncated", _truncation(evidence, transport))
    match finish:
        case "stop" | "tool_calls":
            return _completed(finish, evidence, delivered, rules)
        case "length" | "content_filter" | "turn_limit":
            return Incomplete(finish)
        case unreachable:
            assert_never(unreachable)


def _completed(
    finish: Literal["stop", "tool_calls"], evidence: Evidence, delivered: Delivered, rules: Rules
) -> Outcome:
    """The upstream says that it is done: is that so?"""
    if delivered.torn:
        message = "The upstream says that it is done, but a tool call ends inside its arguments."
        return _failed("upstream_truncated", message)
    if evidence.contradiction is not None:
        message = f"The upstream says that it is done, but {evidence.contradiction}."
        return _failed("upstream_error", message)
    if delivered.calls:
        return Completed("tool_calls")
    if finish == "tool_calls":
        return _failed("upstream_error", "The upstream ended for tool calls, and sent none.")
    if not delivered.text and not rules.allow_empty:
        return _failed("empty", "The upstream finished without an answer.")
    return Completed("stop")


def _truncation(evidence: Evidence, transport: Transport) -> str:
    if evidence.terminated:
        return "The upstream ended its stream without a finish reason."
    if transport == "broken":
        return "The connection to the upstream broke before the answer was complete."
    return "The upstream closed the connection before the answer was complete."


def _failed(reason: FailureReason, message: str) -> Failed:
    return Failed(reason, message, retryable=True)


# Words for an error that another try may not meet; and those of one that it will.
_PASSING: Final = re.compile(
    r"overload|rate.?limit|too many requests|timed?.?out|unavailable|server.?error|internal.?error|api.?error"
    r"|truncated|stalled|unreachable"
    r"|\b(connection|network|socket|stream)\b.{0,20}(lost|reset|closed|error|abort|refused|interrupt|disconnect|terminated)",
    re.IGNORECASE,
)


_LASTING: Final = re.compile(r"invalid|authenti|permission|not.?found|forbidden", re.IGNORECASE)


def passing_status(status: int) -> bool:
    """A status that may be another one next time (C22)."""
    return status in (408, 409, 429) or status >= 500


def _failed_by(error: ErrorObject) -> Failed:
    if error.status is not None:
        passing = passing_status(error.status)
    else:
        lasting = bool(_LASTING.search(error.code or ""))
        passing = not lasting and bool(_PASSING.search(f"{error.code or ''} {error.message}"))
    return Failed("upstream_error", error.message, error.status, passing)


def read_error(error: Any) -> ErrorObject:
    """An error object in any of the shapes that servers give it."""
    while isinstance(error, dict) and isinstance(error.get("error"), dict | str):
        error = error["error"]
    if isinstance(error, str) and error:
        return ErrorObject(error)
    if not isinstance(error, dict):
        return ErrorObject(_NO_MESSAGE)
    message = error.get("message") or error.get("detail") or error.get("code") or error.get("type")
    words = [word for key in ("type", "code") if isinstance(word := error.get(key), str)]
    numbers = [_status(error.get(key)) for key in ("status", "status_code", "code")]
    return ErrorObject(
        message if isinstance(message, str) else _NO_MESSAGE,
        " ".join(words) or None,
        next((number for number in numbers if number is not None), None),
    )


_NO_MESSAGE: Final = "The upstream reported an error and gave no message."


def _status(value: Any) -> int | None:
    # As text, too: tests/wire/chat/error_code_text.sse
    number = int(value) if isinstance(value, str) and value.isdecimal() and len(value) == 3 else value
    return number if isinstance(number, int) and 400 <= number < 600 else None
