"""Demo models asked as any model is: with attempts, continuation, stalls and stops."""

import asyncio
from typing import Any

import pytest

from headwater.conversation import Request, Text, User
from headwater.events import AttemptStarted, Completed, Failed, TextDelta
from headwater.testing import ManualClock
from headwater.upstream import demo
from headwater.upstream.catalog import Resolved
from headwater.upstream.endpoint import Endpoint
from headwater.upstream.model import Model
from headwater.upstream.played import PlayedOpener
from headwater.upstream.sweep import Sweep
from headwater.upstream.targets import needs_finish_reason, route
from tests.upstream.asking import Heard
from tests.upstream.demo_turns import ask

pytestmark = pytest.mark.anyio


class Asking:
    def __init__(self, model: str, prompt: str, **options: Any) -> None:
        self.clock = ManualClock()
        self.heard = Heard()
        opener = PlayedOpener(demo.answer, self.clock)
        endpoint = Endpoint(demo.NAME, demo.SETTINGS, opener, needs_finish_reason=needs_finish_reason(demo.SETTINGS))
        resolved = Resolved(name=f"demo/{model}", upstream=demo.NAME, settings=demo.SETTINGS, model=model)
        asked = Model([route(endpoint, resolved)], self.clock, Sweep(self.clock), jitter=lambda: 1.0)
        turn = asked.turn(Request((User((Text(prompt),)),)), call_id_prefix="call_", **options)
        self.task = asyncio.create_task(self.heard.all_of(turn))

    async def outcome(self, within_s: float = 60) -> Any:
        for _ in range(int(within_s * 4)):
            await self.clock.advance(0.25)
            if self.task.done():
                break
        assert self.task.done()
        return self.task.result().outcome

    @property
    def text(self) -> str:
        return self.heard.fold.message().text


async def test_a_story_is_told_to_its_end() -> None:
    asking = Asking("story", "Tell me a story")
    assert await asking.outcome() == Completed("stop")
    assert asking.text == ask("story", "Tell me a story").message.text


async def test_an_answer_that_is_cut_is_continued_where_it_broke_off() -> None:
    """C27"""
    asking = Asking("flaky", "cut after 20", may_continue=True)
    assert await asking.outcome() == Completed("stop")
    assert [event.reason for event in asking.heard.of(AttemptStarted)] == ["first", "continue"]
    assert asking.text == ask("flaky", "cut after 9999").message.text.replace("9999 tokens", "20 tokens")


async def test_an_error_before_the_first_token_is_tried_again_and_then_told() -> None:
    """C20"""
    asking = Asking("flaky", "error")
    outcome = await asking.outcome()
    assert isinstance(outcome, Failed)
    assert "overloaded" in outcome.message
    assert [event.reason for event in asking.heard.of(AttemptStarted)] == ["first", "retry", "retry"]


async def test_a_stall_ends_within_the_patience_that_demo_models_get() -> None:
    """C28"""
    asking = Asking("flaky", "stall after 5")
    outcome = await asking.outcome(within_s=15)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "stalled"
    assert len(asking.heard.of(TextDelta)) == 5


async def test_a_story_is_stopped_in_its_midst() -> None:
    """C42"""
    asking = Asking("story", "Tell me a story")
    await asking.clock.advance(5)
    asking.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking.task
    said = asking.text
    assert said
    await asking.clock.advance(60)
    assert asking.text == said
