"""What the suite needs of an engine, and short ways to say what is to be kept."""

import asyncio
from itertools import count
from typing import Any, Protocol

from headwater.conversation import Assistant, Text, User
from headwater.errors import StoreError
from headwater.events import Completed, Entry, Event, Outcome, RunEnded, TextDelta, encode_entry
from headwater.records import Run, Session, SessionMessage, SessionNotice
from headwater.store.base import Store
from headwater.store.results import Batch, Ending, EndResult, EndStands, Start, Started
from headwater.store.tables import Database
from headwater.testing.clock import ManualClock

OWNER = "ann"


class Backend(Protocol):
    """A database that is empty at first, and the workers on it."""

    clock: ManualClock

    @property
    def database(self) -> Database:
        """Of the last worker."""

    async def worker(self) -> Store:
        """One more. If the engine lets only one live at a time, this means that the one before was killed."""


_numbers = count(1)


def new_id(prefix: str) -> str:
    return f"{prefix}_{next(_numbers):08d}"


def a_run(**fields: Any) -> Run:
    return Run(**{"id": new_id("run"), "owner": OWNER, "model": "fast", "created_at": 1.0, **fields})


def a_session(**fields: Any) -> Session:
    return Session(**{"id": new_id("ses"), "owner": OWNER, "created_at": 1.0, "updated_at": 1.0, **fields})


def said(text: str, **fields: Any) -> SessionMessage:
    return SessionMessage(**{"id": new_id("msg"), "message": User((Text(text),)), "created_at": 1.0, **fields})


def answered(text: str, **fields: Any) -> SessionMessage:
    return SessionMessage(**{"id": new_id("msg"), "message": Assistant((Text(text),)), "created_at": 1.0, **fields})


def a_notice(code: str = "stopped") -> SessionNotice:
    return SessionNotice(id=new_id("not"), code=code, text="Stopped by you.", created_at=1.0)


def entries(first_seq: int, *events: Event) -> list[bytes]:
    return [encode_entry(Entry(first_seq + n, 0.0, event)) for n, event in enumerate(events)]


def tokens(run_id: str, first_seq: int, number: int = 1) -> Batch:
    return Batch(run_id, first_seq, entries(first_seq, *(TextDelta(f"t{first_seq + n} ") for n in range(number))))


def tail(run_id: str, first_seq: int, outcome: Outcome = Completed()) -> Batch:
    return Batch(run_id, first_seq, entries(first_seq, RunEnded(outcome)))


async def started(store: Store, **ask: Any) -> Started:
    """A run that this worker has, in a session if one is named."""
    fields = {name: ask.pop(name) for name in list(ask) if name in Run.__struct_fields__}
    result = await store.start(Start(run=a_run(**fields), create_session=True, **ask))
    assert isinstance(result, Started)
    return result


async def kept(store: Store, *batches: Batch) -> list[StoreError | None]:
    """Append, and wait until each run was told."""
    loop = asyncio.get_running_loop()
    told: dict[str, asyncio.Future[StoreError | None]] = {batch.run_id: loop.create_future() for batch in batches}
    for batch in batches:
        future = told[batch.run_id]
        store.append(batch, lambda _, trouble, future=future: future.set_result(trouble))  # type: ignore[misc]
    return [await future for future in told.values()]


async def ended(store: Store, run_id: str, outcome: Outcome = Completed(), **fields: Any) -> EndResult:
    return await store.end(Ending(run_id=run_id, outcome=outcome, **fields))


async def ended_well(store: Store, run_id: str, outcome: Outcome = Completed(), **fields: Any) -> EndStands:
    result = await ended(store, run_id, outcome, **fields)
    assert isinstance(result, EndStands)
    return result


async def logged(store: Store, run_id: str, after: int = -1) -> list[bytes]:
    """All entries after the cursor, however many reads that takes."""
    found: list[bytes] = []
    while (piece := await store.read(OWNER, run_id, after, limit_bytes=1)) is not None and piece.batches:
        for batch in piece.batches:
            found += batch.after(after)
            after = batch.last_seq
    return found


async def succeed(backend: Backend) -> Store:
    """A new worker that has declared all others dead."""
    store = await backend.worker()
    for _ in range(2):
        await backend.clock.advance(10)
        await store.beat()
    await store.fence_dead()
    return store
