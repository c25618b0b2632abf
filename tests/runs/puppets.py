"""Runs whose sources do what the test says, on a real store."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from headwater.clock import Clock, SystemClock
from headwater.conversation import Text, User
from headwater.events import AttemptStarted, Completed, Event, Outcome, TextDelta, make_id
from headwater.records import Run, Session, SessionMessage
from headwater.runs.habits import Habits
from headwater.runs.service import Runs
from headwater.runs.unfollowed import Patience
from headwater.source import Ended, Sink, Source, Suspended, emit
from headwater.store.base import Store
from headwater.store.memory import MemoryDatabase, open_memory
from headwater.store.results import Queued, Start, Started, StartResult
from headwater.store.sqlite import open_sqlite

OWNER = "ann"


def new_id(prefix: str) -> str:
    return make_id(prefix, 0, os.urandom(16))


def said(text: str) -> SessionMessage:
    return SessionMessage(id=new_id("msg"), message=User((Text(text),)), created_at=1000.0)


class Puppet:
    """A source on strings."""

    unwind_s: float | None = None

    def __init__(self, *, ignores_stops: bool = False) -> None:
        self.begun = asyncio.Event()
        self.cancelled = 0
        self.paused = False
        self._ignores_stops = ignores_stops
        self._end: asyncio.Future[Ended | Suspended] = asyncio.get_running_loop().create_future()
        self._sink: Sink | None = None

    async def run(self, sink: Sink) -> Ended | Suspended:
        self._sink = sink
        emit(sink, AttemptStarted("up", "m"))
        self.begun.set()
        while True:
            try:
                return await asyncio.shield(self._end)
            except asyncio.CancelledError:
                self.cancelled += 1
                if not self._ignores_stops:
                    raise

    @property
    def over(self) -> bool:
        return self._end.done()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def emit(self, *events: Event) -> None:
        assert self._sink is not None
        emit(self._sink, *events)

    def say(self, *words: str) -> None:
        for word in words:
            self.emit(TextDelta(word))

    def say_plainly(self, *words: str) -> None:
        """As an upstream's read does it, after a text that was said."""
        assert self._sink is not None
        for word in words:
            self._sink.fold.growing_text()(word)
            straight = self._sink.straight
            assert straight is not None
            straight.write(straight.before + word.encode() + straight.after)

    def end(self, outcome: Outcome = Completed("stop"), *last: Event) -> None:
        """`last` is what comes with the end."""
        for event in last:
            assert self._sink is not None
            self._sink.fold.apply(event)
        self._end.set_result(Ended(outcome, last))

    def suspend(self) -> None:
        self._end.set_result(Suspended())

    def fail(self, error: Exception) -> None:
        self._end.set_exception(error)


class Stage:
    """A worker, with the puppets of its runs by their ids."""

    def __init__(self, store: Store, clock: Clock, patience: Patience, unwind_s: float) -> None:
        self.store = store
        self.puppets: dict[str, Puppet] = {}
        habits = Habits(store=store, clock=clock, make_id=new_id, unwind_s=unwind_s, tail_bytes=2000)
        self.runs = Runs(habits, self._source, patience)
        self.next_puppet: Callable[[], Puppet] = Puppet
        self.refuses: Exception | None = None

    async def _source(self, run: Run) -> Source:
        if self.refuses is not None:
            raise self.refuses
        puppet = self.puppets[run.id] = self.next_puppet()
        return puppet

    async def ask(self, text: str = "Hello", session_id: str | None = None, **options: object) -> StartResult:
        run = Run(
            id=new_id("run"),
            owner=OWNER,
            model="m",
            created_at=1000.0,
            session_id=session_id,
            on_disconnect=options.pop("on_disconnect", "continue"),  # type: ignore[arg-type]
        )
        start = Start(run=run, messages=(said(text),) if session_id else (), create_session=True, **options)  # type: ignore[arg-type]
        return await self.runs.start(start)

    async def begin(self, text: str = "Hello", session_id: str | None = None, **options: object) -> tuple[str, Puppet]:
        """A run that has begun."""
        result = await self.ask(text, session_id, **options)
        assert isinstance(result, Started | Queued), result
        return result.run.id, await self.puppet(result.run.id)

    async def puppet(self, run_id: str) -> Puppet:
        await self.settled(lambda: run_id in self.puppets and self.puppets[run_id].begun.is_set())
        return self.puppets[run_id]

    async def outcome(self, run_id: str) -> Outcome:
        async with asyncio.timeout(10):
            return await self.runs.wait(OWNER, run_id)

    async def events(self, run_id: str, after: int = -1) -> list[Event]:
        async with asyncio.timeout(10):
            return [event async for event in self.runs.follow(OWNER, run_id, after)]

    async def words(self, run_id: str, after: int = -1) -> list[str]:
        return [event.text for event in await self.events(run_id, after) if isinstance(event, TextDelta)]

    async def settled(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 -- of many kinds
                await asyncio.sleep(0.001)

    async def transcript(self, session_id: str) -> list[tuple[str, str, str]]:
        """Kind, text and status of all that is in the session, in order."""
        found = await self.store.transcript(OWNER, session_id)
        assert found is not None
        items: list[tuple[str, str, str]] = []
        for message in found.messages:
            text = "".join(part.text for part in message.message.parts if isinstance(part, Text))
            items.append((type(message.message).__name__.lower(), text, message.status))
            items += [("notice", notice.code, "") for notice in found.notices if notice.after_id == message.id]
        return items


MakeStore = Callable[[], Awaitable[Store]]


@asynccontextmanager
async def stage(
    make_store: MakeStore, *, clock: Clock | None = None, patience: Patience = Patience(), unwind_s: float = 5.0
) -> AsyncIterator[Stage]:
    store = await make_store()
    staged = Stage(store, clock or SystemClock(), patience, unwind_s)
    await staged.runs.open()
    try:
        yield staged
    finally:
        await staged.runs.close()
        await store.close()


def memory(clock: Clock | None = None) -> MakeStore:
    database = MemoryDatabase()

    async def make() -> Store:
        return await open_memory(database, address="", clock=clock or SystemClock(), entropy=os.urandom)

    return make


def sqlite(folder: Path, clock: Clock | None = None) -> MakeStore:
    async def make() -> Store:
        return await open_sqlite(folder / "h.db", address="", clock=clock or SystemClock(), entropy=os.urandom)

    return make


__all__ = ["OWNER", "MakeStore", "Puppet", "Sequence", "Session", "Stage", "memory", "sqlite", "stage"]
