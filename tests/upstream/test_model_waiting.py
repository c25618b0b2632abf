"""A model's turn whose upstream keeps it waiting, gives way to another, or is stopped (C28-C30, C42)."""

import asyncio

import pytest

from headwater.events import AttemptEnded, AttemptStarted, Completed, Failed
from headwater.testing.upstream import Answer, refusal
from headwater.upstream.demo.steps import Hang, Pause, Send
from tests.upstream.asking import DONE, GOOD, SILENT, Stage, chunk, text

pytestmark = pytest.mark.anyio


class TestStalls:
    """C28."""

    async def test_no_first_token(self) -> None:
        stage = Stage([SILENT, GOOD], first_token_timeout_s=20, backoff_s=0)
        task = stage.start()
        await stage.clock.advance(19.5)
        assert stage.asked == [1]
        await stage.clock.advance(1)
        assert stage.asked == [2]
        assert (await task).outcome == Completed("stop")
        assert stage.heard.failures == ["stalled", None]
        exchange = stage.upstreams[0].asked[0].exchange
        assert exchange is not None
        assert exchange.closed

    async def test_no_head(self) -> None:
        stage = Stage([Answer([], head_after_s=1000)], first_token_timeout_s=20, retries=0)
        outcome = await stage.outcome(within_s=21)
        assert isinstance(outcome, Failed)
        assert outcome.reason == "stalled"
        assert stage.upstreams[0].asked[0].gave_up

    async def test_silence_after_a_token(self) -> None:
        stage = Stage([Answer([*text("Hi"), Hang()])], idle_timeout_s=5)
        outcome = await stage.outcome(within_s=6)
        assert isinstance(outcome, Failed)
        assert outcome.reason == "stalled"
        assert "idle_timeout_s" in outcome.message
        assert stage.heard.words == ["Hi"]

    async def test_a_slow_answer_is_no_stall(self) -> None:
        slow = [step for word in "abcdefgh" for step in (Pause(4), *text(word))]
        stage = Stage([Answer([*slow, *DONE])], idle_timeout_s=5)
        assert await stage.outcome() == Completed("stop")

    async def test_a_whole_answer_may_end_in_silence(self) -> None:
        """The finish has proven it; what a server keeps open after that is its own affair."""
        stage = Stage([Answer([*text("Hi"), chunk({}, "stop"), Hang()])], idle_timeout_s=5)
        assert await stage.outcome() == Completed("stop")

    async def test_time_in_which_we_do_not_read_is_no_stall(self) -> None:
        stage = Stage([Answer([Pause(1), *text("Hi"), *DONE])], first_token_timeout_s=5, retries=0)
        turn = stage.turn()
        turn.pause()
        task = asyncio.create_task(stage.heard.all_of(turn))
        await stage.clock.advance(100)
        assert stage.heard.words == []
        turn.resume()
        await stage.clock.advance(0.1)
        assert (await task).outcome == Completed("stop")

    async def test_a_pause_in_mid_stream_holds_everything_back(self) -> None:
        stage = Stage([Answer([*text("Hi"), Pause(1), *text(" there"), *DONE])], idle_timeout_s=5)
        turn = stage.turn()
        turn.resume()
        task = asyncio.create_task(stage.heard.all_of(turn))
        await stage.clock.advance(0.5)
        turn.pause()
        await stage.clock.advance(50)
        assert stage.heard.words == ["Hi"]
        turn.resume()
        await stage.clock.advance(0.1)
        assert (await task).outcome == Completed("stop")
        assert stage.heard.words == ["Hi", " there"]

    async def test_a_refusal_that_never_ends_is_told_all_the_same(self) -> None:
        stage = Stage([Answer([Send(b"Too long"), Hang()], 400)], first_token_timeout_s=5)
        assert await stage.outcome() == Failed("refused", "Too long", 400)

    async def test_a_refusal_without_end_is_read_so_far_and_no_further(self) -> None:
        flood = Answer([Send(b"x" * 10_000)] * 20 + [Hang()], 400)
        outcome = await Stage([flood]).outcome(within_s=1)
        assert isinstance(outcome, Failed)
        assert len(outcome.message) == 500


class TestFallbacks:
    """C29."""

    @pytest.mark.parametrize("status", [401, 403, 404])
    async def test_another_upstream_may_know_better(self, status: int) -> None:
        stage = Stage([refusal(status, "No.")], [GOOD])
        assert await stage.outcome() == Completed("stop")
        assert stage.asked == [1, 1]
        answering = stage.heard.of(AttemptStarted)[1]
        assert (answering.upstream, answering.reason) == ("b", "fallback")
        assert answering.because is not None
        assert answering.because.startswith("No.")

    async def test_a_bad_request_is_bad_everywhere(self) -> None:
        stage = Stage([refusal(400, "Bad.")], [GOOD])
        assert isinstance(await stage.outcome(), Failed)
        assert stage.asked == [1, 0]

    async def test_retries_come_first_and_the_first_upstreams_error_stands(self) -> None:
        """C20."""
        stage = Stage([refusal(503, "A is down.")], [refusal(500, "B is down.")])
        assert await stage.outcome() == Failed("upstream_error", "A is down.", 503, True)
        assert stage.asked == [3, 3]
        assert [event.failed.message for event in stage.heard.of(AttemptEnded)] == ["A is down."] * 3 + [
            "B is down."
        ] * 3

    async def test_one_that_keeps_failing_is_left_alone_for_a_while(self) -> None:
        stage = Stage([refusal(503, "Down.")], [GOOD], retries=0, cool_down_after=2, cool_down_s=60)
        for _ in range(4):
            assert await stage.outcome(within_s=1) == Completed("stop")
        assert stage.asked == [2, 4]
        latest = stage.heard.of(AttemptStarted)[-1]
        assert (latest.upstream, latest.reason) == ("b", "fallback")
        assert "'a' keeps failing" in latest.because
        await stage.clock.advance(60)
        await stage.outcome(within_s=1)
        assert stage.asked == [3, 5]

    async def test_with_no_other_it_is_asked_all_the_same(self) -> None:
        stage = Stage([refusal(503, "Down."), refusal(503, "Down."), GOOD], retries=0, cool_down_after=1)
        for _ in range(2):
            assert isinstance(await stage.outcome(), Failed)
        assert await stage.outcome() == Completed("stop")

    async def test_one_that_recovers_is_trusted_again(self) -> None:
        down = refusal(503, "Down.")
        stage = Stage([down, GOOD, down, GOOD], [GOOD], retries=0, cool_down_after=2)
        for _ in range(4):
            await stage.outcome()
        assert stage.asked == [4, 2]


async def test_nothing_reaches_the_log_of_an_attempt_that_was_given_up() -> None:
    """C30: the late words of the first attempt come while the second one is read."""
    late = Answer([Pause(25), *text("late"), *DONE])
    stage = Stage([late, Answer([Pause(10), *text("Hi"), *DONE])], first_token_timeout_s=20, backoff_s=0)
    assert await stage.outcome() == Completed("stop")
    assert stage.heard.words == ["Hi"]


class TestStops:
    """C42: nothing more is asked, the connection is closed, what had arrived is handed on."""

    @pytest.mark.parametrize(
        "answer",
        [SILENT, Answer([*text("Hi"), Hang()]), Answer([Send(b"No"), Hang()], 500)],
        ids=["silent", "between chunks", "in a refusal"],
    )
    async def test_the_connection_is_closed(self, answer: Answer) -> None:
        stage = Stage([answer])
        task = stage.start()
        await stage.clock.advance(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        exchange = stage.upstreams[0].asked[0].exchange
        assert exchange is not None
        assert exchange.closed

    async def test_while_waiting_for_the_head(self) -> None:
        stage = Stage([Answer([], head_after_s=50)])
        task = stage.start()
        await stage.clock.advance(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stage.upstreams[0].asked[0].gave_up

    async def test_words_that_were_held_back_are_kept(self) -> None:
        """C43: "<thi" might have become a tag."""
        stage = Stage([Answer([*text("<thi"), Hang()])])
        task = stage.start()
        await stage.clock.advance(1)
        assert stage.heard.words == []
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stage.heard.words == ["<thi"]

    async def test_a_stop_in_the_same_moment_as_a_stall_is_a_stop(self) -> None:
        stage = Stage([Answer([], head_after_s=1000)], first_token_timeout_s=20)
        task = stage.start()
        await stage.clock.advance(1)

        def stop(now_s: float) -> None:
            if now_s > 1020:
                task.cancel()

        stage.sweep.add(stop)
        for _ in range(80):
            await stage.clock.advance(0.25)
        with pytest.raises(asyncio.CancelledError):
            await task
