"""Decides what follows a failed attempt, and when silence has lasted too long.

Pure: no clock, no sleeping, no logging. The caller passes seconds and a jitter
value, and acts on the decision.
"""

import re
from typing import Final, Literal

from msgspec import Struct

from headwater.events import (
    Event,
    Failed,
    ProviderState,
    ReasoningDelta,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from headwater.judge import passing_status

Prefill = Literal["none", "assistant", "prefix_flag"]


# ------------------------------------------------------------------ decisions


class Retry(Struct, frozen=True):
    """The same request to the same upstream."""

    after_s: float


class AskWhole(Struct, frozen=True):
    """The same request, not streamed: the upstream can't. No retry is used up."""


class FallBack(Struct, frozen=True):
    """The same request to the next upstream."""


class Continue(Struct, frozen=True):
    """A request that goes on where the text was cut."""

    prefill: Prefill
    """`none`: a new turn with an instruction, since this model can't be made to go on."""
    after_s: float = 0.0


class GiveUp(Struct, frozen=True):
    outcome: Failed


Decision = Retry | AskWhole | FallBack | Continue | GiveUp


class RetryLimits(Struct, frozen=True):
    retries: int = 2
    """On top of the first attempt."""
    backoff_s: float = 0.5
    backoff_cap_s: float = 8.0
    retry_after_cap_s: float = 30.0
    continuations: int = 3


class Situation(Struct, frozen=True, kw_only=True):
    """Where the turn stands when an attempt has failed."""

    attempt: int
    """Attempts made at this upstream, this one included."""
    delivered: bool = False
    call_begun: bool = False
    streamed: bool = True
    has_fallback: bool = False
    may_continue: bool = False
    continuations: int = 0
    prefill: Prefill = "none"


# `empty`, `too_large` and `agent_error` may be asked for again by a person, never by us.
_TRIED_AGAIN: Final = frozenset({"upstream_error", "upstream_truncated", "upstream_unreachable", "stalled", "refused"})
_ANOTHER_MAY_KNOW: Final = frozenset({401, 403, 404})
# "upstream" and our own "stream_options" are no word on streaming.
_STREAM: Final = r"\bstream(?!_options)\w*"
_NO_STREAMING: Final = re.compile(
    rf"{_STREAM}.{{0,40}}?(not |n['’]t |un|in)(be )?(support|available|allow|compat|enabled)"
    rf"|(not |n['’]t )support\w*.{{0,30}}?{_STREAM}|unsupported.{{0,30}}?{_STREAM}"
    rf"|{_STREAM} (is|are) disabled|verified to stream",
    re.IGNORECASE | re.DOTALL,
)


def decide(
    failed: Failed,
    situation: Situation,
    limits: RetryLimits,
    *,
    jitter: float,
    retry_after_s: float | None = None,
) -> Decision:
    """`jitter` is a random number from 0 to 1."""
    again = failed.retryable and failed.reason in _TRIED_AGAIN
    if situation.delivered:
        # What was shown stands: the only way on is after it. A torn call can't be gone on with (C26).
        spent = situation.continuations >= limits.continuations
        if not again or not situation.may_continue or situation.call_begun or spent:
            return GiveUp(failed)
        # The first one at once; one that follows another waits as a retry does.
        again_after_s = (
            _delay(situation.continuations, limits, jitter, retry_after_s) if situation.continuations else 0.0
        )
        return GiveUp(failed) if again_after_s is None else Continue(situation.prefill, again_after_s)
    if situation.streamed and failed.reason == "refused" and _NO_STREAMING.search(failed.message):
        return AskWhole()
    if again and situation.attempt <= limits.retries:
        after_s = _delay(situation.attempt, limits, jitter, retry_after_s)
        if after_s is not None:
            return Retry(after_s)
    if situation.has_fallback and (again or failed.status in _ANOTHER_MAY_KNOW):
        return FallBack()
    return GiveUp(failed)


def _delay(attempt: int, limits: RetryLimits, jitter: float, retry_after_s: float | None) -> float | None:
    """None: the upstream asks for more patience than a waiting person has, and asking earlier would only be refused."""
    if retry_after_s is not None:
        return retry_after_s if retry_after_s <= limits.retry_after_cap_s else None
    return backoff(attempt, limits.backoff_s, limits.backoff_cap_s, jitter)


def backoff(attempt: int, first_s: float, cap_s: float, jitter: float) -> float:
    """Seconds to wait after so many attempts that failed: doubled with each, and none of two at the same moment."""
    return float(min(cap_s, first_s * 2 ** (attempt - 1)) * (0.5 + jitter / 2))


def refused(status: int, message: str) -> Failed:
    """An answer with an error status, before any stream."""
    reason: Literal["refused", "upstream_error"] = "refused" if 400 <= status < 500 else "upstream_error"
    return Failed(reason, message, status, passing_status(status))


# --------------------------------------------------------------------- stalls


class StallLimits(Struct, frozen=True):
    first_token_s: float = 120.0
    """Also between two items of the output: thinking in silence is not idling."""
    idle_s: float = 60.0
    total_s: float = 3600.0


_TOKENS: Final = (TextDelta, ReasoningDelta, ToolCallStarted, ToolArgsDelta)
_ITEM_ENDS: Final = (ToolCallEnded, ProviderState)


class StallWatch:
    """One attempt's patience. Tell it what was seen; ask it by `tick` as often as you like."""

    def __init__(self, limits: StallLimits, now_s: float) -> None:
        self._limits = limits
        self._started_s = now_s
        self._since_s = now_s
        self._between_items = True
        self._paused_at_s: float | None = None

    def saw(self, last: Event | None, now_s: float) -> None:
        """At least one frame came, and this event as the last of those that it brought; usage does not count."""
        if isinstance(last, _TOKENS):
            self._between_items = False
        elif isinstance(last, _ITEM_ENDS):
            self._between_items = True
        elif self._between_items:
            # A frame without a token: alive, but the first token is still due.
            return
        self._since_s = now_s

    def pause(self, now_s: float) -> None:
        """We have stopped reading: the silence is ours."""
        if self._paused_at_s is None:
            self._paused_at_s = now_s

    def resume(self, now_s: float) -> None:
        if self._paused_at_s is not None:
            self._since_s += now_s - self._paused_at_s
            self._started_s += now_s - self._paused_at_s
            self._paused_at_s = None

    def tick(self, now_s: float) -> Failed | None:
        """The failure, once a limit has passed."""
        if self._paused_at_s is not None:
            return None
        if now_s - self._started_s > self._limits.total_s:
            return _stalled(f"The upstream was not done after {self._limits.total_s:g} s (total_timeout_s).")
        silent_s = now_s - self._since_s
        if self._between_items and silent_s > self._limits.first_token_s:
            limit_s = self._limits.first_token_s
            return _stalled(f"The upstream sent no token for {limit_s:g} s (first_token_timeout_s).")
        if not self._between_items and silent_s > self._limits.idle_s:
            return _stalled(f"The upstream went silent for {self._limits.idle_s:g} s (idle_timeout_s).")
        return None


def _stalled(message: str) -> Failed:
    return Failed("stalled", message, retryable=True)
