"""A turn's tool calls, from what the model wrote to their results: checked, approved, run side by side.

Owns the promise that nothing runs twice and nothing runs unseen: that a call is begun is committed before its tool
hears of it, and one whose end nobody knows says so.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, assert_never

from msgspec import Struct

from headwater.accumulate import Call
from headwater.agent.arguments import Complaint, read
from headwater.agent.gate import Gate, Go, Refuse, Wait
from headwater.agent.pictures import Kept, Pictures
from headwater.agent.tools import Tool, Toolbox, shortened
from headwater.clock import Clock
from headwater.dialects.history import UNKNOWN
from headwater.events import ToolProgress, ToolResult, ToolRunStarted
from headwater.source import Sink, Suspended, emit

NOT_RUN: Final = "Stopped before it was run."
STOPPED: Final = f"{UNKNOWN}: it was stopped while it ran, and may have had an effect."
PROGRESS_S: Final = 0.1
"""Between two words of progress of a call: more would only fill the log."""
PROGRESS_CHARS: Final = 500
UNWIND_S: Final = 4.0
"""For so long tools may clean up when they are stopped: more than a server of tools can be given for it, and less than
a run."""
_NO_TIME: Final = "[Its images are left out: it was stopped before they were kept.]"


class _Ready(Struct, frozen=True):
    call: Call
    tool: Tool
    arguments: dict[str, Any]


class Calls:
    """Of one run."""

    def __init__(
        self, toolbox: Toolbox, gate: Gate | None, pictures: Pictures, clock: Clock, *, result_chars: int
    ) -> None:
        """Without a `gate` nothing needs a person's word."""
        self._toolbox = toolbox
        self._gate = gate
        self._pictures = pictures
        self._clock = clock
        self._result_chars = result_chars

    async def settle(self, tools: Mapping[str, Tool], sink: Sink) -> Suspended | None:
        """Until every call of the turn has its result; or as far as that goes, before somebody has answered."""
        while open_calls := [call for call in sink.fold.turn_calls if call.state in ("asked", "waiting")]:
            ready: list[_Ready] = []
            until: list[datetime | None] = []
            for call in open_calls:
                match await self._checked(call, tools, sink):
                    case _Ready() as checked:
                        ready.append(checked)
                    case Wait(until=moment):
                        until.append(moment)
                    case Refuse(text=text):
                        emit(sink, ToolResult(call.id, text, state="failed"))
                    case unreachable:
                        assert_never(unreachable)
            if ready:
                await self.run(ready, sink)
            elif until:
                return Suspended(min((moment for moment in until if moment is not None), default=None))
        return None

    async def one(self, call: Call, tools: Mapping[str, Tool], sink: Sink) -> None:
        """A single call, of an agent that can't wait for anybody."""
        checked = await self._checked(call, tools, sink)
        assert not isinstance(checked, Wait), "there is no gate"
        if isinstance(checked, Refuse):
            emit(sink, ToolResult(call.id, checked.text, state="failed"))
        else:
            await self.run([checked], sink)

    async def _checked(self, call: Call, tools: Mapping[str, Tool], sink: Sink) -> _Ready | Wait | Refuse:
        tool = tools.get(call.name)
        if tool is None:
            known = ", ".join(tools) or "none at all"
            return Refuse(f"There is no tool '{call.name}'. There are: {known}.")
        arguments = read(call.arguments, tool.schema)
        if isinstance(arguments, Complaint):
            return Refuse(arguments.text)
        verdict = Go() if self._gate is None else await self._gate.verdict(call, tool, sink)
        return _Ready(call, tool, arguments) if isinstance(verdict, Go) else verdict

    # ------------------------------------------------------------------ running

    async def run(self, ready: Iterable[_Ready], sink: Sink) -> None:
        begun = list(ready)
        emit(sink, *(ToolRunStarted(one.call.id) for one in begun))
        try:
            await sink.kept()
        except asyncio.CancelledError:
            _end_open(begun, NOT_RUN, "failed", sink)
            raise
        tasks = [asyncio.create_task(self._call(one, sink), name=f"tool {one.tool.full_name}") for one in begun]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=UNWIND_S)
            _end_open(begun, STOPPED, "unknown", sink)
            raise
        for task in tasks:
            # A fault of ours, not of the tool's: it ends the run.
            task.result()

    async def _call(self, one: _Ready, sink: Sink) -> None:
        returned = await self._toolbox.call(one.tool, one.arguments, _Meter(one.call.id, self._clock, sink))
        try:
            kept = await self._pictures.keep(returned.pictures)
        except asyncio.CancelledError:
            # What it has returned is known all the same.
            kept = Kept(remarks=(_NO_TIME,))
        text = "\n\n".join(part for part in (shortened(returned.text, self._result_chars), *kept.remarks) if part)
        if one.call.result is None:
            emit(sink, ToolResult(one.call.id, text, kept.urls, returned.state))


class _Meter:
    """A call's `Progress`, as events: not every word, but never two at once."""

    def __init__(self, call_id: str, clock: Clock, sink: Sink) -> None:
        self._call_id = call_id
        self._clock = clock
        self._sink = sink
        self._next_s = float("-inf")

    def __call__(self, text: str, done: float | None, total: float | None) -> None:
        now_s = self._clock.now_s()
        if now_s >= self._next_s and self._sink.stopping is None:
            self._next_s = now_s + PROGRESS_S
            emit(self._sink, ToolProgress(self._call_id, text[:PROGRESS_CHARS], done, total))


def _end_open(begun: Iterable[_Ready], text: str, state: Literal["failed", "unknown"], sink: Sink) -> None:
    emit(sink, *(ToolResult(one.call.id, text, state=state) for one in begun if one.call.result is None))
