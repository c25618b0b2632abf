"""What a run asks, and of whom: a model, or an agent.

Made once the session's lock is held: what was said before is all there.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from headwater.agent.agents import Agents
from headwater.conversation import Assistant, Message, Request, ToolCall, ToolOutput
from headwater.dialects.responses.resource import response_id
from headwater.errors import CallerError
from headwater.events import Completed, Notice
from headwater.records import Run, RunBody
from headwater.sessions.context import Context
from headwater.sessions.sessions import Sessions
from headwater.source import Ended, Sink, Source, Suspended, emit
from headwater.store.base import Store
from headwater.store.results import Missing
from headwater.upstream.model import Model
from headwater.upstream.upstreams import Upstreams

_NOTHING: Final = Request(())


class Answers:
    """A `MakeSource`."""

    def __init__(self, store: Store, sessions: Sessions, upstreams: Upstreams, agents: Agents) -> None:
        self._store = store
        self._sessions = sessions
        self.upstreams = upstreams
        """Those that the next run asks: another set once the configuration was read again."""
        self.agents = agents
        """Likewise."""

    async def __call__(self, run: Run) -> Source:
        """Raises `CallerError`."""
        body = await self._store.body(None, run.id) or RunBody()
        if run.agent is not None:
            return await self._of_agent(run, run.agent, body)
        return await self.asking(run, body, await self.upstreams.model(run.model))

    async def asking(self, run: Run, body: RunBody, model: Model) -> Source:
        """The same where the body is at hand: no store has it if the run is not recorded. Raises `CallerError`."""
        if run.session_id is None and run.previous_run_id is None:
            # Nothing was said before it: nearly all that a gateway is asked.
            return turn(run, model, body.request or _NOTHING)
        built = await self._told(run, body, model.context_tokens)
        asked = turn(run, model, built.request, built.goes_on)
        return asked if built.notice is None else Noted(asked, built.notice)

    async def _of_agent(self, run: Run, name: str, body: RunBody) -> Source:
        # By the same set to the end: another may come while the history is read.
        agents = self.agents
        return await agents.source(run, await self._told(run, body, await agents.window_tokens(name)))

    async def _told(self, run: Run, body: RunBody, window_tokens: int | None) -> Context:
        """The request, with what was said before it."""
        request = body.request or _NOTHING
        if run.session_id is None:
            if earlier := await self._earlier(run):
                instructions, said = _parted(body)
                request = replace(request, messages=(*instructions, *earlier, *said))
            return Context(request)
        built = await self._sessions.context(run, request, window_tokens)
        if isinstance(built, Missing):
            raise CallerError("The session was deleted.", status=404, code="not_found")
        return built

    async def _earlier(self, run: Run) -> list[Message]:
        """What was said in the runs that this one follows, outside of sessions; the oldest first."""
        earlier: list[Message] = []
        previous = run.previous_run_id
        while previous is not None:
            found = await self._store.run(run.owner, previous)
            body = await self._store.body(run.owner, previous)
            if found is None or body is None:
                # It was there when this run was asked for.
                what = f"'{response_id(previous)}', which this response follows, was deleted just now."
                raise CallerError(f"{what} No model was asked.", code="previous_response_not_found")
            _, said = _parted(body)
            answered = body.output if isinstance(found.outcome, Completed) else _without_dropped(body.output)
            earlier = [*said, *answered, *earlier]
            previous = found.previous_run_id
        return earlier


def _parted(body: RunBody) -> tuple[Sequence[Message], Sequence[Message]]:
    """Instructions, which are for the run that they came with, and what was said: a developer's words are part of it.

    The dialect that has both puts its instructions first (`responses.parse`).
    """
    messages = () if body.request is None else body.request.messages
    first = 1 if body.echo.get("instructions") else 0
    return messages[:first], messages[first:]


def _without_dropped(output: Sequence[Message]) -> Iterator[Message]:
    """Calls of a run that was cut and that have no result were never run, and may be torn."""
    answered = {message.call_id for message in output if isinstance(message, ToolOutput)}
    for message in output:
        if isinstance(message, Assistant):
            parts = [part for part in message.parts if not isinstance(part, ToolCall) or part.id in answered]
            message = replace(message, parts=tuple(parts))
        yield message


def turn(run: Run, model: Model, request: Request, goes_on: Assistant | None = None) -> Source:
    prefix = f"call_{run.id.removeprefix('run_')}_"
    return model.turn(request, call_id_prefix=prefix, may_continue=run.on_cut == "continue", goes_on=goes_on)


class Noted:
    """A source that has something to say first."""

    def __init__(self, source: Source, notice: Notice) -> None:
        self.unwind_s = source.unwind_s
        self._source = source
        self._notice = notice

    async def run(self, sink: Sink) -> Ended | Suspended:
        emit(sink, self._notice)
        return await self._source.run(sink)

    def pause(self) -> None:
        self._source.pause()

    def resume(self) -> None:
        self._source.resume()
