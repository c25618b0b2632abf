"""A user's own agent: what it says, and how it ends (C70, C72)."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any

import pytest

from headwater.agent.own import Agent, AgentError, Context, Said
from headwater.events import (
    ApprovalGiven,
    Completed,
    Event,
    Failed,
    Incomplete,
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
from headwater.streams import open_streams
from tests.agent.speech import ended, events, saying

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _errors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "headwater.runs")


async def played(agent: Agent) -> tuple[list[Event], Outcome]:
    """What the log has of it, and how it ended."""
    async with open_streams("memory:") as streams:
        run = await streams.start(agent)
        return await events(streams, run.id), await ended(streams, run.id)


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
