"""A user's own agent as a source: an async generator of what it says, or an async function that returns it.

Owns what is taken from it, and that it hears of a stop once: by a cancel where it awaits, with the cause in its
context before that. How long it may clean up, and what becomes of one that does not end, is `runs.live`'s. An agent
can't suspend itself, and is never begun a second time: nothing here could know how far it had come.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from headwater.accumulate import Accumulator
from headwater.agent.asking import Asking, ModelError, request_of
from headwater.agent.calls import Calls
from headwater.agent.tools import Tool, Toolbox
from headwater.conversation import Message
from headwater.conversation import Tool as Declared
from headwater.dialects.lenient import mended
from headwater.errors import HeadwaterError
from headwater.events import (
    ApprovalAsked,
    ApprovalGiven,
    Completed,
    Entry,
    Event,
    Failed,
    Interrupted,
    Outcome,
    RunEnded,
    RunStarted,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolResult,
    Usage,
    UsageReported,
    decode_entry,
    encode_entry,
)
from headwater.records import Run
from headwater.source import Ended, Sink, emit
from headwater.upstream.upstreams import Upstreams

Said = str | Event | Outcome
"""What an agent may yield: text, an event of another kind, or how it ends, which is the last that is taken."""

Agent = Callable[["Context"], AsyncIterator[Said] | Awaitable[str | Outcome | None]]

# The run's own: a log has one beginning and one end, and only the built-in agents can wait for a person.
_RESERVED: Final = (RunStarted, RunEnded, ApprovalAsked, ApprovalGiven)
_BREATH: Final = 32
"""So often may it speak before others have their turn, if it never awaits anything by itself."""


class AgentError(HeadwaterError):
    """The agent did what an agent can't do."""


class Means(Struct, frozen=True):
    """What the server lends to its agents."""

    upstreams: Upstreams
    toolbox: Toolbox
    calls: Calls


class Context:
    """What an agent knows of its run, a second way to speak, and what it can use: tools, and models."""

    def __init__(self, run: Run, messages: tuple[Message, ...], sink: Sink, means: Means | None = None) -> None:
        self.run_id = run.id
        self.session_id = run.session_id
        self.messages = messages
        """What was said so far, the history of the session first."""
        self._sink = sink
        self._means = means
        self._usage: Usage | None = None
        self._over = False
        self._streamed = False

    @property
    def stop_cause(self) -> Stopped | Interrupted | None:
        """Why it is being cancelled; None as long as it is not."""
        return self._sink.stopping

    def say(self, said: str | Event) -> None:
        """As if it were yielded, for an agent that is no generator. After a stop, nothing is taken any more."""
        if self._over:
            raise AgentError("The run is over: there is nobody to say it to.")
        event = _event(said)
        if event is not None and self.stop_cause is None:
            self._streamed = self._streamed or isinstance(event, TextDelta)
            emit(self._sink, event)

    # -------------------------------------------------------------- tools and models

    async def tools(self) -> tuple[Tool, ...]:
        """Those that its configuration names."""
        return (await self._lent().toolbox.offer()).tools

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """A tool, by its name (`files.read_file`, or as a model calls it): in the log, and never a second time.

        What went wrong is in the result's `state`. Several may be called at a time.
        """
        means = self._lent()
        tools = {tool.called: tool for tool in await self.tools()}
        called = next((tool.called for tool in tools.values() if tool.full_name == name), name)
        index = len(self._sink.fold.turn_calls)
        id = f"call_{self.run_id.removeprefix('run_')}_{index}"
        written = msgspec.json.encode(arguments).decode()
        emit(self._sink, ToolCallStarted(index, id, called), ToolArgsDelta(index, written), ToolCallEnded(index))
        call = self._sink.fold.turn_calls[index]
        await means.calls.one(call, tools, self._sink)
        assert call.result is not None
        return call.result

    def ask(
        self,
        model: str,
        messages: Sequence[Message] | str | None = None,
        tools: Sequence[Declared] = (),
        **parameters: Any,
    ) -> Asking:
        """A model of the server's, by its name there. Without `messages`, what this agent was asked."""
        said = self.messages if messages is None else messages
        return Asking(self._lent().upstreams, model, request_of(said, tools, parameters), self._sink, self._spend)

    def _spend(self, usage: Usage) -> None:
        self._usage = usage if self._usage is None else self._usage + usage
        if self.stop_cause is None:
            emit(self._sink, UsageReported(self._usage))

    def _lent(self) -> Means:
        if self._means is None:
            raise AgentError("Tools and models are a server's to lend: this agent runs without one.")
        return self._means

    # ------------------------------------------------------------------- how it ends

    def returned(self, said: str | Outcome | None) -> Outcome | None:
        """What an agent that is a function ends with: text that it has streamed is not said again (C72)."""
        if not isinstance(said, str):
            return None if said is None else _checked(said)
        if not self._streamed:
            self.say(said)
        return None

    def end(self) -> None:
        self._over = True


class OwnAgent:
    """A `Source`."""

    def __init__(
        self,
        agent: Agent,
        run: Run,
        messages: tuple[Message, ...] = (),
        means: Means | None = None,
        unwind_s: float | None = None,
    ) -> None:
        """`unwind_s`: for its cleanup, if not as long as all have."""
        self.unwind_s = unwind_s
        self._means = means
        self._agent = agent
        self._run = run
        self._messages = messages
        self._going = asyncio.Event()
        self._going.set()

    async def run(self, sink: Sink) -> Ended:
        context = Context(self._run, self._messages, sink, self._means)
        try:
            outcome = await self._outcome(context)
        except ModelError as error:
            outcome = error.outcome
        finally:
            context.end()
        return Ended(outcome or _proven(sink.fold))

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    async def _outcome(self, context: Context) -> Outcome | None:
        """None: it has ended, and said no more than that."""
        speech = self._agent(context)
        if isinstance(speech, AsyncIterator):
            return await self._listen(speech, context)
        return context.returned(await speech)

    async def _listen(self, speech: AsyncIterator[Said], context: Context) -> Outcome | None:
        count = 0
        try:
            async for said in speech:
                if isinstance(said, Outcome) or context.stop_cause is not None:
                    # It names its end; or it was cancelled, and goes on all the same.
                    return _checked(said) if isinstance(said, Outcome) else None
                context.say(said)
                count += 1
                if count % _BREATH == 0 or not self._going.is_set():
                    await self._rest(speech)
        finally:
            if isinstance(speech, AsyncGenerator):
                await speech.aclose()
        return None

    async def _rest(self, speech: AsyncIterator[Said]) -> None:
        try:
            await asyncio.sleep(0)
            await self._going.wait()
        except asyncio.CancelledError as cancel:
            # The agent hears of a stop in one way only, whoever of us two was waiting.
            if isinstance(speech, AsyncGenerator):
                with contextlib.suppress(StopAsyncIteration):
                    await speech.athrow(cancel)
            raise


def _event(said: object) -> Event | None:
    """None: nothing was said. What a log could not give back is refused here, before it is in one."""
    if isinstance(said, str):
        return TextDelta(mended(said)) if said else None
    if not isinstance(said, Event) or isinstance(said, _RESERVED):
        raise AgentError(f"An agent says text, events or an outcome, and not {type(said).__name__}.")
    return _readable(said)


def _checked(outcome: object) -> Outcome:
    if not isinstance(outcome, Outcome):
        raise AgentError(f"An agent returns text or an outcome, and not {type(outcome).__name__}.")
    _readable(RunEnded(outcome))
    return outcome


def _readable(event: Event) -> Event:
    try:
        decode_entry(encode_entry(Entry(0, 0.0, event)))
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentError(f"This {type(event).__name__} can't be kept: {error}.") from error
    return event


def _proven(fold: Accumulator) -> Outcome:
    """It has ended by itself and named no outcome. That is a success if there is an answer."""
    asked = [call for call in fold.turn_calls if call.state == "asked"]
    if any(call.torn for call in asked):
        return Failed("agent_error", "The agent has ended inside the arguments of a tool call.")
    if asked:
        return Completed("tool_calls")
    if not fold.calls and not fold.delivered().text:
        return Failed("empty", "The agent has ended without an answer.")
    return Completed("stop")
