"""Several workers on one Postgres that want the same at the same moment."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

from headwater.errors import StoreError
from headwater.events import Completed, Interrupted, decode_entry
from headwater.records import Group, IdempotencyKey, StopRequest
from headwater.store.base import Store
from headwater.store.postgres.database import Patience
from headwater.store.postgres.pool import Pool
from headwater.store.postgres.tables import PostgresTables
from headwater.store.results import Busy, Ending, EndStands, Queued, Replayed, Start, Started
from headwater.store.tables import Transaction
from headwater.testing.postgres import PostgresServer
from headwater.testing.store_suite.making import (
    OWNER,
    a_run,
    a_session,
    answered,
    ended,
    ended_well,
    kept,
    logged,
    said,
    started,
    tail,
    tokens,
)
from tests.store.postgres_backend import PostgresBackend

pytestmark = pytest.mark.anyio

CRASH = Interrupted("crash")


@pytest.fixture
async def backend(postgres: PostgresServer) -> AsyncIterator[PostgresBackend]:
    backend = PostgresBackend(postgres.url())
    yield backend
    await backend.close()


async def somebody_waits(connection: psycopg.Connection, number: int = 1) -> None:
    """Until so many wait for a lock."""
    async with asyncio.timeout(30):
        while True:
            row = connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
            if row is not None and row[0] >= number:
                return
            await asyncio.sleep(0.01)


# -------------------------------------------------------------------- fencing


async def fence(backend: PostgresBackend, store: Store) -> Any:
    """By one that has been there for long enough to tell."""
    for _ in range(2):
        await backend.clock.advance(10)
        await store.beat()
    return await store.fence_dead()


async def test_a_commit_that_is_under_way_is_waited_for_and_then_ended_behind(backend: PostgresBackend) -> None:
    old, new = await backend.worker(), await backend.worker()
    run = (await started(old)).run
    await kept(old, tokens(run.id, 0))
    with backend.sql() as holding, backend.sql() as looking:
        # Another transaction wants the same place in the log, so that the commit waits in its middle.
        holding.autocommit = False
        holding.execute("INSERT INTO headwater.batch SELECT n, 1, 1, 'x' FROM headwater.run")
        keeping = asyncio.create_task(kept(old, tokens(run.id, 1)))
        await somebody_waits(looking)
        fencing = asyncio.create_task(fence(backend, new))
        await somebody_waits(looking, 2)
        assert not fencing.done()
        holding.rollback()
    assert await keeping == [None]
    assert [worker.id for worker in await fencing] == [old.worker_id]
    assert [decode_entry(entry).seq for entry in await logged(new, run.id)] == [0, 1]
    assert isinstance(await ended(new, run.id, CRASH, tail=tail(run.id, 2, CRASH)), EndStands)


async def test_a_write_that_comes_while_its_worker_is_being_fenced_is_refused(backend: PostgresBackend) -> None:
    old, new = await backend.worker(), await backend.worker()
    with backend.sql() as looking:
        async with backend.database.writing() as tables:
            worker = await tables.lock_worker(old.worker_id)
            assert worker is not None
            starting = asyncio.create_task(old.start(Start(run=a_run())))
            await somebody_waits(looking)
            await tables.put_worker(replace(worker, fenced=True))
    with pytest.raises(StoreError) as raised:
        await starting
    assert raised.value.trouble == "fenced"
    assert (await new.runs(OWNER)).runs == ()


async def test_a_commit_that_comes_while_its_worker_is_being_fenced_is_refused(backend: PostgresBackend) -> None:
    old, new = await backend.worker(), await backend.worker()
    run = (await started(old)).run
    with backend.sql() as looking:
        async with backend.database.writing() as tables:
            worker = await tables.lock_worker(old.worker_id)
            assert worker is not None
            keeping = asyncio.create_task(kept(old, tokens(run.id, 0)))
            ending = asyncio.create_task(ended(old, run.id))
            await somebody_waits(looking, 1)
            await tables.put_worker(replace(worker, fenced=True))
    (trouble,) = await keeping
    assert trouble is not None
    assert trouble.trouble == "fenced"
    with pytest.raises(StoreError) as raised:
        await ending
    assert raised.value.trouble == "fenced"
    assert await logged(new, run.id) == []


async def test_one_that_hangs_in_mid_transaction_is_declared_dead_all_the_same(backend: PostgresBackend) -> None:
    """What it holds is its own row: whoever is to declare it dead waits for that."""
    backend.patience = Patience(hold_s=0.2)
    hanging, other = await backend.worker(), await backend.worker()

    async def hang(tx: Transaction) -> None:
        async with asyncio.timeout(30):
            assert await other.fence_dead({hanging.worker_id})

    with pytest.raises(StoreError) as raised:
        await hanging._write(hang)  # type: ignore[attr-defined]
    assert raised.value.trouble == "fenced"


async def test_a_beat_waits_for_nobody(backend: PostgresBackend) -> None:
    store = await backend.worker()
    async with backend.database.writing() as tables:
        await tables.hold_worker(store.worker_id)
        await store.beat()


async def test_of_two_that_declare_each_other_dead_one_lives(backend: PostgresBackend) -> None:
    first, second = await backend.worker(), await backend.worker()
    asked = (first.fence_dead({second.worker_id}), second.fence_dead({first.worker_id}))
    found = await asyncio.gather(*asked, return_exceptions=True)
    workers = {worker.id: worker.fenced for worker in await first.workers()}
    assert sum(workers.values()) == 1, found


# ---------------------------------------------------------------- many at once


async def test_many_starts_and_ends_in_few_sessions_do_not_lock_each_other_up(backend: PostgresBackend) -> None:
    stores = [await backend.worker() for _ in range(2)]
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    with backend.sql() as connection:
        before = connection.execute(deadlocks).fetchone()

    async def one(number: int) -> None:
        store = stores[number % 2]
        run = a_run(session_id=f"s{number % 3}")
        ask = Start(run=run, messages=(said("x"),), multitask="queue", create_session=True)
        result = await store.start(ask)
        while isinstance(result, Started):
            following = await ended_well(store, result.run.id, messages=(answered("y"),))
            if following.next is None:
                break
            result = following.next
        assert isinstance(result, Started | Queued)

    await asyncio.gather(*(one(number) for number in range(50)))
    with backend.sql() as connection:
        assert connection.execute(deadlocks).fetchone() == before
    assert await stores[0].ready() == ()
    assert len((await stores[0].runs(OWNER, status="completed")).runs) == 50
    for number in range(3):
        transcript = await stores[0].transcript(OWNER, f"s{number}")
        assert transcript is not None
        assert (transcript.active, transcript.queue) == (None, ())


async def test_a_session_that_many_make_at_once_is_made_once(backend: PostgresBackend) -> None:
    stores = [await backend.worker() for _ in range(2)]
    asks = [Start(run=a_run(session_id="new"), messages=(said("x"),), create_session=True) for _ in range(10)]
    found = await asyncio.gather(*(stores[n % 2].start(ask) for n, ask in enumerate(asks)))
    assert sum(isinstance(result, Started) for result in found) == 1
    assert sum(isinstance(result, Busy) for result in found) == 9


async def test_what_is_asked_again_with_the_same_key_at_the_same_moment_is_started_once(
    backend: PostgresBackend,
) -> None:
    stores = [await backend.worker() for _ in range(2)]
    asks = [Start(run=a_run(), idempotency=IdempotencyKey("k", "d")) for _ in range(10)]
    found = await asyncio.gather(*(stores[n % 2].start(ask) for n, ask in enumerate(asks)))
    (begun,) = [result for result in found if isinstance(result, Started)]
    assert [result for result in found if isinstance(result, Replayed)] == [Replayed(begun.run.id)] * 9


async def test_a_stop_and_an_end_at_the_same_moment_leave_the_end_standing(backend: PostgresBackend) -> None:
    """C47."""
    first, second = await backend.worker(), await backend.worker()
    runs = [(await started(first)).run for _ in range(20)]
    await asyncio.gather(
        *(ended_well(first, run.id) for run in runs),
        *(second.ask_stop(OWNER, run.id, StopRequest("user", 1.0)) for run in runs),
    )
    found = [await first.run(OWNER, run.id) for run in runs]
    assert [run and run.outcome for run in found] == [Completed()] * 20


async def test_a_run_that_is_adopted_while_it_ends_leaves_its_message_with_its_new_owner(
    backend: PostgresBackend,
) -> None:
    store = await backend.worker()
    run = (await started(store, owner="local", session_id="s", messages=(said("one"),))).run
    answer = answered("yes")
    with backend.sql() as looking:
        async with backend.database.writing() as tables:
            await tables.rename_owner(OWNER, "local")
            ending = asyncio.create_task(store.end(Ending(run_id=run.id, outcome=Completed(), messages=(answer,))))
            await somebody_waits(looking)
    assert isinstance(await ending, EndStands)
    transcript = await store.transcript(OWNER, "s")
    assert transcript is not None
    assert [message.id for message in transcript.messages[1:]] == [answer.id]
    assert await store.session("local", "s") is None


async def test_a_write_that_is_the_victim_of_a_deadlock_is_done_again(backend: PostgresBackend) -> None:
    store = await backend.worker()
    panes = tuple(a_session(id=f"p{n}") for n in range(2))
    await store.create_group(Group(id="g", owner=OWNER, created_at=1.0, session_ids=("p0", "p1")), panes)
    want = "SELECT FROM headwater.session WHERE id = %s FOR UPDATE"
    with backend.sql() as holding, backend.sql() as looking:
        # Whoever has waited for that long first is the victim.
        holding.execute("SET deadlock_timeout = '60s'")
        holding.autocommit = False
        holding.execute(want, ("p1",))
        picking = asyncio.create_task(store.pick(OWNER, "g", "p0"))
        await somebody_waits(looking)
        await asyncio.to_thread(holding.execute, want, ("p0",))
        holding.rollback()
    picked = await picking
    assert isinstance(picked, Group)
    assert picked.picked_id == "p0"


async def test_groups_that_have_their_panes_in_another_order_are_picked_from_at_once(backend: PostgresBackend) -> None:
    stores = [await backend.worker() for _ in range(2)]
    panes = tuple(a_session(id=f"p{n}") for n in range(2))
    for name, ids in (("one", ("p0", "p1")), ("two", ("p1", "p0"))):
        await stores[0].create_group(Group(id=name, owner=OWNER, created_at=1.0, session_ids=ids), panes)
    found = await asyncio.gather(*(stores[n % 2].pick(OWNER, ("one", "two")[n % 2], "p0") for n in range(20)))
    assert all(isinstance(result, Group) for result in found)


async def test_who_waits_too_long_for_a_connection_is_told(backend: PostgresBackend) -> None:
    await backend.worker()
    pool = Pool(backend.database._address, 1, wait_s=0.01)
    async with pool.connection():
        with pytest.raises(StoreError, match="all 1 connections"):
            async with pool.connection():
                pass
    await pool.close()


async def test_a_long_log_is_read_in_several_questions_and_up_to_the_limit(backend: PostgresBackend) -> None:
    store = await backend.worker()
    run = (await started(store)).run
    with backend.sql() as connection:
        connection.execute(
            """INSERT INTO headwater.batch
            SELECT n, seq, seq, convert_to(chr(1) || 'entry' || seq, 'UTF8')
            FROM headwater.run, generate_series(0, 449) AS seq"""
        )
    for after, limit_bytes, number in ((-1, 1 << 20, 450), (99, 1 << 20, 350), (-1, 2000, 235), (-1, 9, 2)):
        piece = await store.read(OWNER, run.id, after, limit_bytes)
        assert piece is not None
        assert [batch.first_seq for batch in piece.batches] == list(range(after + 1, after + 1 + number))


async def test_words_of_a_deleted_session_do_not_stay_behind(backend: PostgresBackend) -> None:
    store = await backend.worker()
    run = (await started(store, session_id="s", messages=(said("rivers"),))).run
    await ended_well(store, run.id)
    with backend.sql() as looking:
        # Search is just learning of them.
        async with backend.database.writing() as tables:
            assert isinstance(tables, PostgresTables)
            assert await tables.index_some() == 1
            deleting = asyncio.create_task(store.delete_session(OWNER, "s"))
            await somebody_waits(looking)
        await deleting
        for table in ("found", "unindexed", "message"):
            assert looking.execute(f"SELECT FROM headwater.{table}").fetchall() == []
