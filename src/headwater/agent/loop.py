"""The built-in agent: a model's turn, the tools that it called, their results, and the next turn.

A source that can suspend: all that it needs to go on is in its log, which it is handed as a fold. Owns when it is over;
what an attempt does is `upstream.model`'s, what a call does `calls`'.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from headwater.accumulate import Accumulator
from headwater.agent.arguments import prepare
from headwater.agent.calls import Calls
from headwater.agent.pictures import Pictures
from headwater.agent.tools import Tool, Toolbox
from headwater.agent.window import fitted
from headwater.conversation import Request
from headwater.events import Completed, Failed, Incomplete, Notice, Outcome
from headwater.records import Run
from headwater.sessions.context import Context, trimmed_notice
from headwater.sessions.trim import tokens
from headwater.source import Ended, Sink, Source, Suspended, emit
from headwater.upstream.continuation import continued
from headwater.upstream.model import Model

TOOLS_MISSING: Final = "tools_unavailable"
_TOKEN_CHARS: Final = 4
"""Of which a token is about made, where nobody says how many there were."""


class Limits(Struct, frozen=True, kw_only=True):
    max_turns: int = 20
    budget_tokens: int | None = None
    """Read and written, over all turns."""


class Loop:
    """A `Source`."""

    unwind_s: float | None = None

    def __init__(
        self,
        run: Run,
        model: Model,
        context: Context,
        toolbox: Toolbox,
        calls: Calls,
        pictures: Pictures,
        limits: Limits = Limits(),
    ) -> None:
        """`context`: what was said before this run, and with it."""
        self._run = run
        self._model = model
        self._context = context
        self._toolbox = toolbox
        self._calls = calls
        self._pictures = pictures
        self._limits = limits
        self._turn: Source | None = None
        self._paused = False

    async def run(self, sink: Sink) -> Ended | Suspended:
        fresh = not sink.fold.attempts
        await asyncio.to_thread(prepare)
        offer = await self._toolbox.offer()
        if fresh:
            emit(sink, *(_missing(server, why) for server, why in offer.missing.items()))
        tools = {tool.called: tool for tool in offer.tools}
        while True:
            suspended = await self._calls.settle(tools, sink)
            if suspended is not None:
                return suspended
            outcome = await self._ask(offer.tools, sink)
            if outcome != Completed("tool_calls"):
                return Ended(_of_the_run(outcome, sink.fold))
            if self._is_spent(sink.fold):
                # What nobody would read the result of is not run.
                return Ended(Incomplete("turn_limit"))

    def pause(self) -> None:
        self._paused = True
        if self._turn is not None:
            self._turn.pause()

    def resume(self) -> None:
        self._paused = False
        if self._turn is not None:
            self._turn.resume()

    # ------------------------------------------------------------------- a turn

    async def _ask(self, tools: Sequence[Tool], sink: Sink) -> Outcome:
        fold = sink.fold
        number = fold.turn + 1 if fold.attempts else 0
        self._turn = turn = self._model.turn(
            await self._request(tools, sink),
            call_id_prefix=f"call_{self._run.id.removeprefix('run_')}_{number}_",
            turn=number,
            may_continue=True,
            goes_on=None if number else self._context.goes_on,
            taken=frozenset(call.id for call in fold.calls),
        )
        if self._paused:
            turn.pause()
        try:
            ended = await turn.run(sink)
        finally:
            self._turn = None
        sink.take(ended.last)
        return ended.outcome

    async def _request(self, tools: Sequence[Tool], sink: Sink) -> Request:
        """What was said before, and what this run has said and been told so far, as far as that fits."""
        request, goes_on = self._context.request, self._context.goes_on
        so_far = await self._pictures.shown(sink.fold.messages())
        window_tokens, asked_in = self._model.context_tokens, 1
        if goes_on is not None and so_far:
            request, asked_in = continued(request, goes_on, "none"), 2
        elif goes_on is not None and window_tokens is not None:
            window_tokens -= tokens(goes_on)
        request = replace(request, tools=tuple(tool.declared() for tool in tools))
        told = fitted(request, so_far, window_tokens, asked_in=asked_in)
        notice = trimmed_notice(self._context.left_out + told.left_out)
        if notice is not None and notice not in sink.fold.notices:
            emit(sink, notice)
        return replace(request, messages=told.messages)

    def _is_spent(self, fold: Accumulator) -> bool:
        if fold.turn + 1 >= self._limits.max_turns:
            return True
        budget = self._limits.budget_tokens
        return budget is not None and tokens_used(fold) >= budget


def tokens_used(fold: Accumulator) -> int:
    usage = fold.usage
    if usage.input_tokens is not None and usage.output_tokens is not None:
        return usage.input_tokens + usage.output_tokens
    written = sum(len(call.arguments) for call in fold.calls)
    return (len(fold.text()) + len(fold.reasoning()) + written) // _TOKEN_CHARS


def _of_the_run(outcome: Outcome, fold: Accumulator) -> Outcome:
    """An agent that has used its tools may have nothing to add (C12)."""
    worked = any(call.result is not None for call in fold.calls)
    if worked and isinstance(outcome, Failed) and outcome.reason == "empty":
        return Completed("stop")
    return outcome


def _missing(server: str, why: str) -> Notice:
    return Notice(TOOLS_MISSING, f"The tools of '{server}' can't be used: {why}", (server,))
