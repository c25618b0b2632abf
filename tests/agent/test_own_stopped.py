"""A user's own agent that is stopped, or held up (C71)."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from headwater.agent.own import Agent, Context, OwnAgent
from headwater.events import (
    Completed,
    Interrupted,
    Outcome,
    Stopped,
    TextDelta,
)
from headwater.records import Run
from headwater.streams import open_streams
from headwater.testing import ManualClock
from headwater.testing.upstream import Heard
from tests.agent.speech import events, saying

pytestmark = pytest.mark.anyio


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
        waiting, told, let_go = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def stubborn(context: Context) -> str:
            context.say("One ")
            while not let_go.is_set():
                waiting.set()
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    told.set()
            context.say("two")
            return "Never."

        async with open_streams("memory:", clock=clock, unwind_s=5.0) as streams:
            run = await streams.start(stubborn)
            await waiting.wait()
            stopping = asyncio.create_task(streams.stop(run.id))
            await told.wait()
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
