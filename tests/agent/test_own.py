"""A user's own agent: what it says, how it ends, and how it is stopped (C70-C72)."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from headwater.agent.own import Agent, AgentError, Context, OwnAgent, Said
from headwater.events import (
    ApprovalGiven,
    Completed,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Notice,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolResult,
    ToolRunStarted,
)
from headwater.records import Run
from headwater.streams import Streams, open_streams
from headwater.testing import ManualClock
from headwater.testing.upstream import Heard

pytestmark = pytest.mark.anyio


async def ended(streams: Streams, run_id: str) -> Outcome:
    async with asyncio.timeout(10):
        return await streams.wait(run_id)


async def events(streams: Streams, run_id: str) -> list[Event]:
    """All but the beginning and the ending."""
    async with asyncio.timeout(10):
        return [entry.event async for entry in streams.follow(run_id)][1:-1]


async def played(agent: Agent) -> tuple[list[Event], Outcome]:
    """What the log has of it, and how it ended."""
    async with open_streams("memory:") as streams:
        run = await streams.start(agent)
        return await events(streams, run.id), await ended(streams, run.id)


def saying(*all_said: Any) -> Agent:
    async def agent(context: Context) -> AsyncGenerator[Said, None]:
        for said in all_said:
            yield said

    return agent


def returning(result: Any, *before: str | Event) -> Agent:
    async def agent(context: Context) -> Any:
        for said in before:
            context.say(said)
        return result

    return agent


CALL = (ToolCallStarted(0, "c1", "look"), ToolArgsDelta(0, "{}"), ToolCallEnded(0))


class TestWhatItSays:
    async def test_text_and_events_reach_the_log_as_they_come(self) -> None:
        said = [ReasoningDelta("Hm."), "One ", "two", Notice("n", "Look.")]
        log, outcome = await played(saying(*said))
        assert log == [ReasoningDelta("Hm."), TextDelta("One "), TextDelta("two"), Notice("n", "Look.")]
        assert outcome == Completed("stop")

    async def test_text_that_is_returned_is_delivered_as_one_chunk(self) -> None:
        """C72."""
        assert await played(returning("All of it.")) == ([TextDelta("All of it.")], Completed("stop"))

    async def test_text_that_was_streamed_is_not_delivered_again_when_it_is_returned(self) -> None:
        """C72."""
        log, outcome = await played(returning("One two", "One ", "two"))
        assert log == [TextDelta("One "), TextDelta("two")]
        assert outcome == Completed("stop")

    async def test_reasoning_is_no_text_that_was_streamed(self) -> None:
        """C72."""
        log, _ = await played(returning("So.", ReasoningDelta("Hm.")))
        assert log == [ReasoningDelta("Hm."), TextDelta("So.")]

    async def test_empty_text_is_nothing(self) -> None:
        assert (await played(saying("", "a")))[0] == [TextDelta("a")]

    async def test_half_of_a_surrogate_pair_does_not_make_the_log_unreadable(self) -> None:
        assert (await played(saying("a\ud83d", "\ude00b")))[0] == [TextDelta("a\ufffd"), TextDelta("\ufffdb")]

    @pytest.mark.parametrize(
        "said",
        [
            b"bytes",
            None,
            {"text": "x"},
            RunStarted("run_x", "m", datetime(2026, 1, 1)),
            RunEnded(Completed("stop")),
            ApprovalGiven("c1", "yes"),
            TextDelta("\ud800"),
            TextDelta(5),  # type: ignore[arg-type]
            ProviderState("chat", {"x": object()}),
            Failed("no_such_reason", "x"),  # type: ignore[arg-type]
            ToolResult("a call that nobody made", "x"),
        ],
        ids=lambda said: type(said).__name__,
    )
    async def test_what_a_log_can_not_keep_fails_the_run_and_leaves_the_log_whole(
        self, said: object, caplog: pytest.LogCaptureFixture
    ) -> None:
        log, outcome = await played(saying("Before. ", said, "after"))
        assert log == [TextDelta("Before. ")]
        assert isinstance(outcome, Failed)
        assert outcome.reason == "agent_error"
        assert "its source raised" in caplog.text

    async def test_a_generator_that_never_waits_holds_up_nobody(self) -> None:
        async def endless(context: Context) -> AsyncGenerator[str, None]:
            while len(said) < 1_000_000:
                said.append("on and ")
                yield said[-1]

        said: list[str] = []
        async with open_streams("memory:") as streams:
            run = await streams.start(endless)
            while not said:  # noqa: ASYNC110 -- it has begun, and waits for nothing
                await asyncio.sleep(0)
            assert (await streams.stop(run.id)).run.outcome == Stopped("user")

    async def test_an_iterator_that_is_no_generator_will_do(self) -> None:
        class Words:
            def __init__(self) -> None:
                self.left = ["a", "b"]

            def __aiter__(self) -> "Words":
                return self

            async def __anext__(self) -> str:
                if not self.left:
                    raise StopAsyncIteration
                return self.left.pop(0)

        assert await played(lambda _: Words()) == ([TextDelta("a"), TextDelta("b")], Completed("stop"))


class TestHowItEnds:
    @pytest.mark.parametrize("end", [Completed("stop"), Incomplete("length"), Failed("refused", "No.", 400)])
    async def test_an_outcome_that_it_names_stands(self, end: Outcome) -> None:
        """C70."""
        assert await played(saying("a", end, "never")) == ([TextDelta("a")], end)
        assert await played(returning(end)) == ([], end)

    async def test_an_exception_is_a_failure_that_names_it(self, caplog: pytest.LogCaptureFixture) -> None:
        """C70."""

        async def agent(context: Context) -> AsyncGenerator[str, None]:
            yield "So far. "
            raise ZeroDivisionError("the secret reason")

        log, outcome = await played(agent)
        assert log == [TextDelta("So far. ")]
        assert isinstance(outcome, Failed)
        assert outcome.reason == "agent_error"
        assert "ZeroDivisionError" in outcome.message
        assert "secret" not in outcome.message
        assert "the secret reason" in caplog.text

    @pytest.mark.parametrize("result", [5, b"x"])
    async def test_a_result_that_is_neither_text_nor_outcome_is_a_failure(self, result: object) -> None:
        _, outcome = await played(returning(result))
        assert isinstance(outcome, Failed)
        assert outcome.reason == "agent_error"

    @pytest.mark.parametrize("agent", [saying(), saying(ReasoningDelta("Hm.")), returning(None), returning("")])
    async def test_no_answer_is_no_success(self, agent: Agent) -> None:
        """C12, for an agent that names no outcome."""
        _, outcome = await played(agent)
        assert isinstance(outcome, Failed)
        assert outcome.reason == "empty"

    async def test_one_that_has_run_tools_may_have_nothing_to_add(self) -> None:
        """C12."""
        _, outcome = await played(saying(*CALL, ToolRunStarted("c1"), ToolResult("c1", "done")))
        assert outcome == Completed("stop")

    async def test_calls_that_are_left_to_the_client_are_an_ending(self) -> None:
        assert (await played(saying(*CALL)))[1] == Completed("tool_calls")

    async def test_a_torn_call_is_no_success(self) -> None:
        _, outcome = await played(saying(ToolCallStarted(0, "c1", "look"), ToolArgsDelta(0, '{"a')))
        assert isinstance(outcome, Failed)
        assert outcome.reason == "agent_error"

    async def test_its_cleanup_runs_once_and_before_the_ending_when_it_names_an_outcome(self) -> None:
        cleaned: list[Outcome | None] = []

        async def agent(context: Context) -> AsyncGenerator[Said, None]:
            try:
                yield "a"
                yield Completed("stop")
            finally:
                await asyncio.sleep(0.02)
                cleaned.append((await streams.run(context.run_id)).outcome)

        async with open_streams("memory:") as streams:
            run = await streams.start(agent)
            assert await ended(streams, run.id) == Completed("stop")
            assert cleaned == [None]

    async def test_a_cancel_that_nobody_asked_for_is_its_own_failure(self) -> None:
        async def agent(context: Context) -> str:
            other = asyncio.create_task(asyncio.sleep(100))
            other.cancel()
            await other
            return "never"

        _, outcome = await played(agent)
        assert isinstance(outcome, Failed)
        assert outcome.reason == "agent_error"

    async def test_what_it_says_when_it_is_over_is_refused(self) -> None:
        kept: list[Context] = []

        async def agent(context: Context) -> str:
            kept.append(context)
            return "a"

        assert (await played(agent))[1] == Completed("stop")
        with pytest.raises(AgentError):
            kept[0].say("b")


class Stoppable:
    """Agents that say a word and wait, and what they have seen."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.cancels: list[Outcome | None] = []
        self.cleaned = 0

    async def function(self, context: Context) -> str:
        context.say("One ")
        await self.wait(context)
        return "never"

    async def generator(self, context: Context) -> AsyncGenerator[str, None]:
        yield "One "
        await self.wait(context)
        yield "never"

    async def wait(self, context: Context) -> None:
        try:
            assert context.stop_cause is None
            self.waiting.set()
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            self.cancels.append(context.stop_cause)
            raise
        finally:
            await asyncio.sleep(0.001)
            self.cleaned += 1


Kind = Callable[[Stoppable], Callable[[Context], AsyncIterator[str] | Awaitable[str]]]
BOTH = pytest.mark.parametrize(
    "kind", [lambda agents: agents.generator, lambda agents: agents.function], ids=["generator", "function"]
)


class TestStopping:
    @BOTH
    async def test_it_is_cancelled_once_where_it_awaits_and_knows_why(self, kind: Kind) -> None:
        """C71."""
        agents = Stoppable()
        async with open_streams("memory:") as streams:
            run = await streams.start(kind(agents))
            await agents.waiting.wait()
            first, second = await asyncio.gather(streams.stop(run.id), streams.stop(run.id))
            assert first.run.outcome == second.run.outcome == Stopped("user")
            assert (agents.cancels, agents.cleaned) == ([Stopped("user")], 1)
            assert await events(streams, run.id) == [TextDelta("One ")]

    @BOTH
    async def test_the_cause_tells_a_shutdown_from_a_stop(self, kind: Kind) -> None:
        """C71."""
        agents = Stoppable()
        async with open_streams("memory:") as streams:
            await streams.start(kind(agents))
            await agents.waiting.wait()
        assert agents.cancels == [Interrupted("shutdown")]

    async def test_one_that_is_stopped_before_it_has_begun_is_never_called(self) -> None:
        """C48."""
        called = False

        async def agent(context: Context) -> str:
            nonlocal called
            called = True
            return "never"

        async with open_streams("memory:") as streams:
            run = await streams.start(agent)
            assert (await streams.stop(run.id)).run.outcome == Stopped("user")
        assert not called

    async def test_an_error_in_its_cleanup_does_not_undo_the_stop(self, caplog: pytest.LogCaptureFixture) -> None:
        """C42: to many a library a cancel looks like an error of the network."""
        waiting = asyncio.Event()

        async def agent(context: Context) -> str:
            try:
                waiting.set()
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                raise ConnectionError("it went away") from None
            return "never"

        async with open_streams("memory:") as streams:
            run = await streams.start(agent)
            await waiting.wait()
            assert (await streams.stop(run.id)).run.outcome == Stopped("user")
        assert "it went away" in caplog.text

    async def test_one_that_swallows_the_cancel_and_returns_was_stopped(self) -> None:
        """C47: what it returns then is neither delivered nor a success."""
        waiting = asyncio.Event()

        async def agent(context: Context) -> str:
            try:
                waiting.set()
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                context.say("more")
            return "All done."

        async with open_streams("memory:") as streams:
            run = await streams.start(agent)
            await waiting.wait()
            assert (await streams.stop(run.id)).run.outcome == Stopped("user")
            assert await events(streams, run.id) == []

    async def test_a_generator_that_swallows_the_cancel_and_goes_on_is_closed_at_its_next_word(self) -> None:
        """C71."""
        waiting, seen = asyncio.Event(), []

        async def agent(context: Context) -> AsyncGenerator[str, None]:
            while True:
                try:
                    waiting.set()
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    seen.append("cancelled")
                try:
                    yield "more"
                except GeneratorExit:
                    seen.append("closed")
                    raise

        async with open_streams("memory:") as streams:
            run = await streams.start(agent)
            await waiting.wait()
            assert (await streams.stop(run.id)).run.outcome == Stopped("user")
            assert seen == ["cancelled", "closed"]
            assert await events(streams, run.id) == []

    async def test_one_that_ignores_the_signal_is_abandoned(self) -> None:
        """C71."""
        clock = ManualClock()
        waiting, let_go = asyncio.Event(), asyncio.Event()

        async def stubborn(context: Context) -> str:
            context.say("One ")
            while not let_go.is_set():
                waiting.set()
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    waiting.clear()
            context.say("two")
            return "Never."

        async with open_streams("memory:", clock=clock, unwind_s=5.0) as streams:
            run = await streams.start(stubborn)
            await waiting.wait()
            stopping = asyncio.create_task(streams.stop(run.id))
            await clock.advance(4.0)
            assert (await streams.run(run.id)).outcome is None
            await clock.advance(2.0)
            async with asyncio.timeout(10):
                answer = await stopping
            assert answer.run.outcome == Stopped("user")
            let_go.set()
            await clock.advance(1.0)
            assert await events(streams, run.id) == [TextDelta("One ")]


class TestPausing:
    """Whoever reads may be behind."""

    async def run_until_paused(self, agent: Agent) -> tuple[OwnAgent, Heard, "asyncio.Task[Any]"]:
        source = OwnAgent(agent, Run(id="run_1", owner="ann", model="m", created_at=0.0))
        heard = Heard()
        source.pause()
        task = asyncio.create_task(source.run(heard))
        async with asyncio.timeout(10):
            await heard.first.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        return source, heard, task

    async def test_no_word_is_taken_while_it_is_paused(self) -> None:
        source, heard, task = await self.run_until_paused(saying("a", "b", "c"))
        assert heard.words == ["a"]
        source.resume()
        assert (await task).outcome == Completed("stop")
        assert heard.words == ["a", "b", "c"]

    @pytest.mark.parametrize("swallows", [False, True])
    async def test_a_stop_in_a_pause_is_a_cancel_to_the_agent_too(self, swallows: bool) -> None:
        """C71."""
        seen: list[Outcome | None] = []

        async def agent(context: Context) -> AsyncGenerator[str, None]:
            try:
                yield "a"
            except asyncio.CancelledError:
                seen.append(context.stop_cause)
                if not swallows:
                    raise

        _, heard, task = await self.run_until_paused(agent)
        heard.stopping = Stopped("user")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == [Stopped("user")]

    async def test_an_iterator_that_is_no_generator_is_just_left(self) -> None:
        class Endless:
            def __aiter__(self) -> "Endless":
                return self

            async def __anext__(self) -> str:
                return "a"

        _, heard, task = await self.run_until_paused(lambda _: Endless())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert heard.words == ["a"]


@pytest.fixture(autouse=True)
def _errors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "headwater.runs")
