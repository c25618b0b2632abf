"""Durable streams in a program of one's own: runs over a store, without the server and its models.

    async with open_streams("sqlite:chat.db") as streams:
        run = await streams.start(answer(question))      # any async generator of text
        async for entry in streams.follow(run.id):
            ...

What holds for the server's runs holds for these: kept before they are shown, followed from any cursor, stopped for
real, ended once, found again after a crash. The generator itself is not: what it was doing when the process died
is not done again, and the run is `interrupted`.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal

from msgspec import Struct

from headwater import sse
from headwater.agent.own import Agent, OwnAgent, Said
from headwater.clock import Clock, SystemClock
from headwater.conversation import Message, Request, Text, User
from headwater.errors import CallerError
from headwater.events import Entry, Outcome, make_id
from headwater.records import Run
from headwater.runs.follow import Follower, frame
from headwater.runs.habits import Habits, MakeSource
from headwater.runs.service import Runs
from headwater.runs.stops import StopAnswer
from headwater.runs.unfollowed import Patience
from headwater.sessions.sessions import Sessions
from headwater.source import Source
from headwater.store.base import Store
from headwater.store.opening import open_store
from headwater.store.results import Busy, LogSlice, Missing, Start, Started

EVENT_STREAM: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    # A proxy that gathers, or keeps, makes no stream of it.
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}
"""Headers for what `Streams.sse` gives."""

_BEYOND_ANY_LOG: Final = 1 << 60


class _Parts(Struct, frozen=True):
    """What the views of all owners share."""

    store: Store
    clock: Clock
    runs: Runs
    sessions: Sessions
    new_id: Callable[[str], str]


@asynccontextmanager
async def open_streams(
    url: str,
    *,
    owner: str = "local",
    drain_s: float = 0.0,
    unwind_s: float = 5.0,
    patience: Patience = Patience(),
    clock: Clock | None = None,
) -> AsyncIterator["Streams"]:
    """`memory:` or `sqlite:PATH`: a file of this program's own, which no other process may have at the same time.

    At the end, what runs may go on for `drain_s`; the rest ends as `interrupted`. A generator that was stopped has
    `unwind_s` to clean up. Raises `StoreError`.
    """
    clock = clock or SystemClock()

    def new_id(prefix: str) -> str:
        return make_id(prefix, int(clock.unix_s() * 1000), os.urandom(16))

    store = await open_store(url, address="headwater.streams", clock=clock, entropy=os.urandom)
    try:
        runs = Runs(Habits(store=store, clock=clock, make_id=new_id, unwind_s=unwind_s), _nobody, patience)
        await runs.open()
        try:
            yield Streams(_Parts(store, clock, runs, Sessions(store, clock, new_id), new_id), owner)
        finally:
            await runs.close(drain_s)
    finally:
        await store.close()


class Streams:
    """The streams of one owner. Whatever is another's is as if it were not there."""

    def __init__(self, parts: _Parts, owner: str) -> None:
        self.owner = owner
        self.sessions = parts.sessions
        self._parts = parts
        self._store = parts.store
        self._runs = parts.runs

    def of(self, owner: str) -> "Streams":
        return Streams(self._parts, owner)

    async def start(
        self,
        agent: Agent | AsyncIterator[Said],
        *,
        said: str | Sequence[Message] = (),
        session_id: str | None = None,
        name: str = "agent",
        on_disconnect: Literal["cancel", "continue"] = "continue",
    ) -> Run:
        """Begin: an agent, which is called with its context, or a generator that is there already.

        With a session, what was `said` and the answer become part of it, and the agent's context has its history.
        Raises `CallerError` if the session has an active run (409), and at the end of the program (503).
        """
        messages = (User((Text(said),)),) if isinstance(said, str) else tuple(said)
        run = Run(
            id=self._parts.new_id("run"),
            owner=self.owner,
            model=name,
            agent=name,
            created_at=self._parts.clock.unix_s(),
            session_id=session_id,
            on_disconnect=on_disconnect,
        )
        result = await self._runs.start(self._ask(run, Request(messages)), self._answering(agent, Request(messages)))
        if isinstance(result, Busy):
            raise CallerError(
                f"The session has an active run, {result.active.id}. Wait for it, or stop it.",
                status=409,
                code="session_busy",
            )
        # Nothing was to be queued or looked up, and no key was given.
        assert isinstance(result, Started)
        return result.run

    async def run(self, run_id: str) -> Run:
        """Raises `CallerError` if there is none such (404)."""
        return (await self._log(run_id)).run

    async def follow(self, run_id: str, after: int = -1) -> AsyncGenerator[Entry, None]:
        """Every event after the cursor, in its place, to the end (C55). Any number may follow, at any time.

        Raises `CallerError`: 404, or 410 where the log has no such place (any more).
        """
        await self._at_end(run_id, after)
        follower = self._runs.follower(self.owner, run_id, after)
        try:
            while entries := await follower.next():
                for entry in entries:
                    yield entry
        finally:
            follower.leave()

    async def sse(self, run_id: str, after: int = -1, heartbeat_s: float = 15.0) -> AsyncGenerator[bytes, None] | None:
        """The same as the body of a `text/event-stream`, with `id`, `event` and `data` as the server has them.

        `after` is what the client sent as `Last-Event-ID`. None: it has seen all there is; on a 204 it asks no more.
        """
        if await self._at_end(run_id, after):
            return None
        return _framed(lambda: self._runs.follower(self.owner, run_id, after), heartbeat_s)

    async def wait(self, run_id: str) -> Outcome:
        """How it ends. Nothing is raised for a stop or a failure (C55)."""
        outcome = (await self.run(run_id)).outcome
        return outcome if outcome is not None else await self._runs.wait(self.owner, run_id)

    async def stop(self, run_id: str, wait_s: float = 5.0) -> StopAnswer:
        """At any moment, any number of times (C42, C47). Raises `CallerError` if there is none such (404)."""
        answer = await self._runs.stop(self.owner, run_id, wait_s=wait_s)
        if answer is None:
            raise _missing(run_id)
        return answer

    # -------------------------------------------------------------------- finding

    async def _log(self, run_id: str) -> LogSlice:
        found = await self._store.read(self.owner, run_id, _BEYOND_ANY_LOG)
        if found is None:
            raise _missing(run_id)
        return found

    async def _at_end(self, run_id: str, after: int) -> bool:
        """There is nothing after the cursor, and never will be."""
        found = await self._log(run_id)
        if found.run.log_dropped or after > found.last_seq:
            raise CallerError(f"{run_id} has no event {after} (any more).", status=410, code="cursor_gone")
        return found.run.outcome is not None and after == found.last_seq

    # ------------------------------------------------------------------- beginning

    def _ask(self, run: Run, request: Request) -> Start:
        if run.session_id is None:
            return Start(run=run, request=request)
        return self.sessions.said(run, request, create_session=True)

    def _answering(self, agent: Agent | AsyncIterator[Said], request: Request) -> MakeSource:
        async def make_source(run: Run) -> Source:
            if isinstance(agent, AsyncIterator):
                return OwnAgent(lambda _: agent, run)
            if run.session_id is None:
                return OwnAgent(agent, run, request.messages)
            built = await self.sessions.context(run, request)
            assert not isinstance(built, Missing), "a session is not deleted while a run of it is active"
            return OwnAgent(agent, run, built.request.messages)

        return make_source


def _missing(run_id: str) -> CallerError:
    return CallerError(f"There is no run {run_id}.", status=404, code="not_found")


async def _nobody(run: Run) -> Source:
    """For a run that waited for its turn in a file that was a server's: there is no agent for it here."""
    raise CallerError(f"There is nobody here to answer for {run.model}.", status=404, code="model_not_found")


async def _framed(make_follower: Callable[[], Follower], heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    # Only here: a generator that is never begun has no end either, and nobody would leave.
    follower = make_follower()
    try:
        while True:
            try:
                async with asyncio.timeout(heartbeat_s):
                    entries = await follower.next()
            except TimeoutError:
                yield sse.comment()
                continue
            if not entries:
                return
            yield b"".join(map(frame, entries))
    finally:
        follower.leave()
