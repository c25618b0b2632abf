"""What follows a failed attempt, and when silence has lasted too long (C20-C23, C25-C29), as pure decisions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events import (
    Event,
    Failed,
    Notice,
    ProviderState,
    ReasoningDelta,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from headwater.policy import (
    AskWhole,
    Continue,
    Decision,
    FallBack,
    GiveUp,
    Prefill,
    Retry,
    RetryLimits,
    Situation,
    StallLimits,
    StallWatch,
    decide,
    refused,
)

UNREACHABLE = Failed("upstream_unreachable", "Connection refused.", retryable=True)
CUT = Failed("upstream_truncated", "Cut.", retryable=True)


def decided(
    failed: Failed, *, retry_after_s: float | None = None, jitter: float = 1.0, **situation: object
) -> Decision:
    there = Situation(**{"attempt": 1, **situation})  # type: ignore[arg-type]
    return decide(failed, there, RetryLimits(), jitter=jitter, retry_after_s=retry_after_s)


class TestBeforeAnythingWasDelivered:
    @pytest.mark.parametrize(
        "failed",
        [
            UNREACHABLE,
            CUT,
            Failed("stalled", "Silent.", retryable=True),
            Failed("upstream_error", "Network connection lost", retryable=True),
            *[refused(status, "No.") for status in (408, 409, 429, 500, 502, 503, 529)],
        ],
    )
    def test_what_may_pass_is_tried_three_times_in_all(self, failed: Failed) -> None:
        """C20, C22."""
        assert [decided(failed, attempt=n) for n in (1, 2, 3)] == [Retry(0.5), Retry(1.0), GiveUp(failed)]

    @pytest.mark.parametrize("failed", [refused(status, "No.") for status in (400, 401, 403, 404, 413, 422)])
    def test_what_will_not_pass_is_tried_once(self, failed: Failed) -> None:
        """C21."""
        assert decided(failed) == GiveUp(failed)

    @pytest.mark.parametrize("reason", ["empty", "too_large", "agent_error"])
    def test_what_only_a_person_may_ask_for_again_is_tried_once(self, reason: str) -> None:
        failed = Failed(reason, "…", retryable=True)  # type: ignore[arg-type]
        assert decided(failed, has_fallback=True) == GiveUp(failed)

    def test_no_retries_means_one_attempt(self) -> None:
        limits = RetryLimits(retries=0)
        assert decide(UNREACHABLE, Situation(attempt=1), limits, jitter=0) == GiveUp(UNREACHABLE)

    def test_the_upstreams_own_delay_is_obeyed(self) -> None:
        """C22."""
        assert decided(refused(429, "Slow down."), retry_after_s=7) == Retry(7)

    def test_a_delay_past_the_cap_is_not_waited_for(self) -> None:
        busy = refused(429, "Slow down.")
        assert decided(busy, retry_after_s=31) == GiveUp(busy)
        assert decided(busy, retry_after_s=31, has_fallback=True) == FallBack()

    @given(st.integers(1, 30), st.floats(0, 1))
    def test_backoff_grows_to_a_cap_and_is_jittered(self, attempt: int, jitter: float) -> None:
        limits = RetryLimits(retries=30)
        decision = decide(UNREACHABLE, Situation(attempt=attempt), limits, jitter=jitter)
        assert isinstance(decision, Retry)
        whole = min(8.0, 0.5 * 2 ** (attempt - 1))
        assert whole / 2 <= decision.after_s <= whole

    @pytest.mark.parametrize(
        "message",
        [
            "This model does not support streaming.",
            "Streaming is not supported for this model",
            "Unsupported value: 'stream' does not support true with this model. Streaming is not available.",
            "stream=true is unsupported",
            "This model doesn't support streaming.",
            "Streaming isn’t supported here",
            "Streaming is disabled for your account.",
            "Your organization must be verified to stream this model.",
        ],
    )
    def test_an_upstream_that_cannot_stream_is_asked_for_the_whole(self, message: str) -> None:
        """C23: also after all retries, since it is none."""
        assert decided(refused(400, message), attempt=3) == AskWhole()
        assert isinstance(decided(refused(400, message), attempt=3, streamed=False), GiveUp)

    @pytest.mark.parametrize(
        ("status", "message"), [(503, "Upstream is not available"), (400, "Unsupported parameter: 'stream_options'")]
    )
    def test_other_words_with_stream_in_them_are_none_of_it(self, status: int, message: str) -> None:
        assert not isinstance(decided(refused(status, message)), AskWhole)

    def test_a_message_of_our_own_is_not_mistaken_for_that(self) -> None:
        failed = Failed("upstream_truncated", "The stream is not supported by evidence.", retryable=True)
        assert decided(failed) == Retry(0.5)

    @pytest.mark.parametrize("status", [401, 403, 404])
    def test_another_upstream_may_know_better(self, status: int) -> None:
        """C29."""
        assert decided(refused(status, "No."), has_fallback=True) == FallBack()

    def test_retries_come_before_fallbacks(self) -> None:
        """C29."""
        assert [decided(UNREACHABLE, attempt=n, has_fallback=True) for n in (2, 3)] == [Retry(1.0), FallBack()]

    def test_a_bad_request_is_bad_everywhere(self) -> None:
        """C29."""
        bad = refused(400, "Bad.")
        assert decided(bad, has_fallback=True) == GiveUp(bad)


class TestAfterSomethingWasDelivered:
    def test_nothing_is_tried_again(self) -> None:
        """C25: what was shown stands."""
        assert decided(CUT, delivered=True, has_fallback=True) == GiveUp(CUT)

    @pytest.mark.parametrize("prefill", ["none", "assistant", "prefix_flag"])
    def test_a_cut_turn_may_be_continued(self, prefill: Prefill) -> None:
        """C27."""
        assert decided(CUT, delivered=True, may_continue=True, prefill=prefill) == Continue(prefill)

    def test_a_torn_call_is_not_continued(self) -> None:
        """C26, C27."""
        assert decided(CUT, delivered=True, may_continue=True, call_begun=True) == GiveUp(CUT)

    def test_a_continuation_that_was_cut_too_waits_as_a_retry_does(self) -> None:
        again = decided(CUT, delivered=True, may_continue=True, continuations=1)
        assert again == Continue("none", 0.5)
        assert decided(CUT, delivered=True, may_continue=True, continuations=1, retry_after_s=99) == GiveUp(CUT)

    def test_a_turn_is_not_continued_for_ever(self) -> None:
        assert decided(CUT, delivered=True, may_continue=True, continuations=3) == GiveUp(CUT)

    def test_an_error_that_will_not_pass_is_not_continued(self) -> None:
        bad = Failed("upstream_error", "Bad.")
        assert decided(bad, delivered=True, may_continue=True) == GiveUp(bad)


class TestStalls:
    """C28."""

    LIMITS = StallLimits(first_token_s=10, idle_s=5, total_s=100)

    def silence(self, *seen: Event | None) -> float:
        """Seconds of silence that are borne after these reads, a second apart."""
        watch = StallWatch(self.LIMITS, 0)
        for n, last in enumerate(seen, 1):
            watch.saw(last, n)
        return next(s for s in range(200) if watch.tick(len(seen) + s + 0.5))

    def test_the_first_token_is_waited_for_longest(self) -> None:
        assert self.silence() == 10

    def test_frames_without_a_token_do_not_put_it_off(self) -> None:
        assert self.silence(None, None, None) == 7

    @pytest.mark.parametrize(
        "token", [TextDelta("x"), ReasoningDelta("x"), ToolCallStarted(0, "c", "t"), ToolArgsDelta(0, "x")]
    )
    def test_after_a_token_silence_is_idling(self, token: Event) -> None:
        assert self.silence(token) == 5

    def test_any_frame_breaks_the_silence(self) -> None:
        assert self.silence(TextDelta("x"), None, Notice("n", "n")) == 5

    @pytest.mark.parametrize("end", [ToolCallEnded(0), ProviderState("messages", {"signature": "s"}, of="reasoning")])
    def test_between_items_thinking_is_not_idling(self, end: Event) -> None:
        assert self.silence(TextDelta("x"), end) == 10

    def test_the_whole_has_a_limit_however_lively(self) -> None:
        watch = StallWatch(self.LIMITS, 0)
        for now in range(1, 101):
            watch.saw(TextDelta("x"), now)
            assert watch.tick(now) is None
        watch.saw(TextDelta("x"), 101)
        failed = watch.tick(101)
        assert failed is not None
        assert "total_timeout_s" in failed.message

    def test_time_in_which_we_did_not_read_is_no_stall(self) -> None:
        watch = StallWatch(self.LIMITS, 0)
        watch.saw(TextDelta("x"), 1)
        watch.pause(2)
        watch.pause(400)
        assert watch.tick(500) is None
        watch.resume(500)
        watch.resume(600)
        assert watch.tick(503) is None
        assert watch.tick(505) is not None

    def test_the_failure_may_be_tried_again_and_names_the_setting(self) -> None:
        watch = StallWatch(self.LIMITS, 0)
        failed = watch.tick(11)
        assert failed == Failed(
            "stalled", "The upstream sent no token for 10 s (first_token_timeout_s).", retryable=True
        )
