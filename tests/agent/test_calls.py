"""A turn's calls: begun where it is kept that they are, run once, and told of however they end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from headwater.agent.calls import NOT_RUN, STOPPED, Calls
from headwater.agent.pictures import LIMIT, LIMIT_BYTES, Kept, Pictures
from headwater.agent.tools import Offer, Picture, Progress, Returned, Tool
from headwater.events import (
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolProgress,
    ToolResult,
    ToolRunStarted,
)
from headwater.source import emit
from headwater.store.base import Store
from headwater.store.memory import MemoryDatabase, open_memory
from headwater.testing import ManualClock
from headwater.testing.upstream import Heard

pytestmark = pytest.mark.anyio

TOOL = Tool(server="s", name="t")


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = await open_memory(MemoryDatabase(), address="", clock=ManualClock(), entropy=lambda size: bytes(size))
    yield opened
    await opened.close()


class Box:
    """A toolbox whose one tool does what it is told."""

    def __init__(self) -> None:
        self.called = 0
        self.may_end = asyncio.Event()
        self.progress: Progress | None = None

    async def offer(self) -> Offer:
        return Offer((TOOL,))

    async def call(self, tool: Tool, arguments: dict[str, Any], progress: Progress) -> Returned:
        self.called += 1
        self.progress = progress
        await self.may_end.wait()
        return Returned("done")


class Keeping(Heard):
    """A sink whose store takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.may_keep = asyncio.Event()

    async def kept(self) -> None:
        await self.may_keep.wait()


def begun(sink: Heard, *ids: str) -> None:
    for index, id in enumerate(ids):
        emit(sink, ToolCallStarted(index, id, TOOL.called), ToolArgsDelta(index, "{}"), ToolCallEnded(index))


async def settle(task: asyncio.Task[Any]) -> None:
    for _ in range(20):
        await asyncio.sleep(0)


# ---------------------------------------------------------------------------- calls


async def test_a_tool_hears_of_nothing_before_it_is_kept_that_it_will(store: Store) -> None:
    box, sink = Box(), Keeping()
    begun(sink, "a", "b")
    calls = Calls(box, None, Pictures(store, "ann"), ManualClock(), result_chars=99)
    task = asyncio.create_task(calls.settle({TOOL.called: TOOL}, sink))
    await settle(task)
    assert [type(event) for event in sink.events[-2:]] == [ToolRunStarted, ToolRunStarted]
    assert box.called == 0
    sink.may_keep.set()
    await settle(task)
    assert box.called == 2
    box.may_end.set()
    assert await task is None
    assert [event.text for event in sink.of(ToolResult)] == ["done", "done"]


@pytest.mark.parametrize(("kept", "text", "state"), [(False, NOT_RUN, "failed"), (True, STOPPED, "unknown")])
async def test_a_stop_says_whether_a_tool_was_called(kept: bool, text: str, state: str, store: Store) -> None:
    box, sink = Box(), Keeping()
    begun(sink, "a")
    calls = Calls(box, None, Pictures(store, "ann"), ManualClock(), result_chars=99)
    task = asyncio.create_task(calls.settle({TOOL.called: TOOL}, sink))
    if kept:
        sink.may_keep.set()
    await settle(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sink.of(ToolResult) == [ToolResult("a", text, state=state)]  # type: ignore[arg-type]
    assert box.called == kept


async def test_a_tool_that_answers_when_it_is_stopped_has_answered(store: Store) -> None:
    class Late(Box):
        async def call(self, tool: Tool, arguments: dict[str, Any], progress: Progress) -> Returned:
            try:
                return await super().call(tool, arguments, progress)
            except asyncio.CancelledError:
                return Returned("late")

    box, sink = Late(), Keeping()
    sink.may_keep.set()
    begun(sink, "a")
    calls = Calls(box, None, Pictures(store, "ann"), ManualClock(), result_chars=99)
    task = asyncio.create_task(calls.settle({TOOL.called: TOOL}, sink))
    await settle(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sink.of(ToolResult) == [ToolResult("a", "late")]


async def test_what_a_tool_has_returned_is_known_also_if_there_is_no_time_for_its_images(store: Store) -> None:
    class Slow(Pictures):
        async def keep(self, pictures: Sequence[Picture]) -> Kept:
            await asyncio.sleep(3600)
            return Kept()

    box, sink = Box(), Keeping()
    sink.may_keep.set()
    box.may_end.set()
    begun(sink, "a")
    calls = Calls(box, None, Slow(store, "ann"), ManualClock(), result_chars=99)
    task = asyncio.create_task(calls.settle({TOOL.called: TOOL}, sink))
    await settle(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [result] = sink.of(ToolResult)
    assert result.state == "done"
    assert result.text.startswith("done\n\n[Its images are left out")


async def test_progress_does_not_fill_the_log(store: Store) -> None:
    box, sink, clock = Box(), Keeping(), ManualClock()
    sink.may_keep.set()
    begun(sink, "a")
    task = asyncio.create_task(
        Calls(box, None, Pictures(store, "ann"), clock, result_chars=99).settle({TOOL.called: TOOL}, sink)
    )
    await settle(task)
    assert box.progress is not None
    for number in range(100):
        box.progress("x" * 1000, number, 100)
    await clock.advance(1)
    box.progress("more", 100, 100)
    assert [(event.text, event.done) for event in sink.of(ToolProgress)] == [("x" * 500, 0), ("more", 100)]
    box.may_end.set()
    await task


async def test_a_fault_of_ours_in_a_call_ends_the_run(store: Store) -> None:
    class Faulty(Box):
        async def call(self, tool: Tool, arguments: dict[str, Any], progress: Progress) -> Returned:
            raise ZeroDivisionError

    sink = Keeping()
    sink.may_keep.set()
    begun(sink, "a")
    with pytest.raises(ZeroDivisionError):
        await Calls(Faulty(), None, Pictures(store, "ann"), ManualClock(), result_chars=9).settle(
            {TOOL.called: TOOL}, sink
        )


async def test_pictures_have_their_limits(store: Store) -> None:
    pictures = Pictures(store, "ann")
    large = Picture("image/png", bytes(LIMIT_BYTES + 1))
    kept = await pictures.keep([large, *[Picture("image/png", bytes([n])) for n in range(LIMIT)]])
    assert len(kept.urls) == LIMIT - 1
    assert "too large" in kept.remarks[0]
    assert kept.remarks[1] == "[1 more images are left out.]"
