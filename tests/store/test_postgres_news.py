"""How workers on one Postgres hear of one another: by letters, and by looking."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from headwater.errors import StoreError
from headwater.records import Run, StopRequest
from headwater.store.news import News
from headwater.store.postgres.database import PostgresDatabase
from headwater.store.postgres.listener import Pace
from headwater.testing.postgres import PostgresServer
from headwater.testing.store_suite.making import OWNER, ended_well, kept, started, tokens
from tests.store.postgres_backend import BehindProxy, PostgresBackend, seqs

pytestmark = pytest.mark.anyio


@pytest.fixture
async def backend(postgres: PostgresServer) -> AsyncIterator[PostgresBackend]:
    backend = PostgresBackend(postgres.url())
    yield backend
    await backend.close()


async def test_long_news_arrive_in_several_letters(backend: PostgresBackend) -> None:
    first, second = await backend.worker(), await backend.worker()
    ids = [f"run_{n:0100d}" for n in range(100)]
    told: asyncio.Queue[str] = asyncio.Queue()
    for run_id in ids:
        second.watch_run(run_id, _teller(told, run_id))
    _database(first).publish(News(list(ids)))
    assert [await told.get() for _ in ids] == ids


async def test_too_long_news_make_the_others_look_for_themselves(backend: PostgresBackend) -> None:
    first, second = await backend.worker(), await backend.worker()
    run = (await started(first)).run
    told: asyncio.Queue[str] = asyncio.Queue()
    changed: asyncio.Queue[str] = asyncio.Queue()
    second.watch_run(run.id, _teller(told, run.id))
    second.watch_owner(OWNER, lambda change: changed.put_nowait(change.kind))
    for store in (first, await backend.worker()):
        _database(store).publish(News([f"run_{n:0100d}" for n in range(1000)]))
    assert await told.get() == run.id
    while await changed.get() != "all":
        pass


def _teller(told: asyncio.Queue[str], run_id: str) -> Callable[[], None]:
    return lambda: told.put_nowait(run_id)


def _database(store: Any) -> PostgresDatabase:
    database = store._database
    assert isinstance(database, PostgresDatabase)
    return database


async def test_one_that_leaves_while_it_is_about_to_look_does_not_look(backend: PostgresBackend) -> None:
    first, second = await backend.worker(), await backend.worker()
    told = asyncio.Event()
    second.watch_run("run_last", told.set)
    _database(first).publish(News([f"run_{n:0100d}" for n in range(1000)]))
    _database(second).publish(News())
    third = await backend.worker()
    await asyncio.sleep(0.02)
    _database(third).publish(News(["run_last"]))
    await told.wait()
    await second.close()


async def test_who_is_alone_writes_to_nobody_until_somebody_comes(postgres: PostgresServer) -> None:
    backend = PostgresBackend(postgres.url(), pace=Pace(hearing_s=0.05, deaf_s=0.05))
    first = await backend.worker()
    with backend.sql() as connection:
        connection.execute("LISTEN headwater")
        found = ["run_alone"]
        async with asyncio.timeout(60):
            while any("run_alone" in payload for payload in found):
                _database(first).publish(News(["run_alone"]))
                await asyncio.sleep(0.1)
                found = [note.payload for note in connection.notifies(timeout=0.0)]
        second = await backend.worker()
        told = asyncio.Event()
        second.watch_run("run_x", told.set)
        while not told.is_set():
            _database(first).publish(News(["run_x"]))
            await asyncio.sleep(0.01)
        found = [note.payload for note in connection.notifies(timeout=0.1)]
        assert any("run_x" in payload for payload in found)
    await backend.close()


async def test_what_was_never_written_by_a_worker_is_not_heard(backend: PostgresBackend) -> None:
    store = await backend.worker()
    told = asyncio.Event()
    store.watch_run("run_x", told.set)
    with backend.sql() as connection:
        connection.execute("SELECT pg_notify('headwater', 'hello')")
    other = await backend.worker()
    _database(other).publish(News(["run_x"]))
    await told.wait()


async def test_who_looks_tells_of_what_has_changed_and_nothing_else(postgres: PostgresServer) -> None:
    backend = PostgresBackend(postgres.url(), pace=Pace(0.02, 0.02))
    store = await backend.worker()
    runs = [(await started(store)).run for _ in range(2)]
    told: asyncio.Queue[str] = asyncio.Queue()
    for run in runs:
        store.watch_run(run.id, _teller(told, run.id))
    # Each is new to it, once.
    assert {await told.get(), await told.get()} == {run.id for run in runs}
    with backend.sql() as connection:
        connection.execute(
            "INSERT INTO headwater.batch SELECT n, 0, 0, 'x' FROM headwater.run WHERE id = %s", (runs[0].id,)
        )
        assert await told.get() == runs[0].id
        connection.execute("DELETE FROM headwater.run WHERE id = %s", (runs[1].id,))
        assert await told.get() == runs[1].id
    assert told.empty()
    await backend.close()


async def test_orders_are_seen_by_looking(postgres: PostgresServer) -> None:
    backend = PostgresBackend(postgres.url(), pace=Pace(0.02, 0.02))
    store = await backend.worker()
    runs: list[Run] = [(await started(store)).run for _ in range(3)]
    orders: asyncio.Queue[str] = asyncio.Queue()
    store.watch_orders(orders.put_nowait)
    with backend.sql() as connection:
        connection.execute("UPDATE headwater.run SET stopping = true WHERE id = %s", (runs[0].id,))
        assert await orders.get() == runs[0].id
        connection.execute(
            "INSERT INTO headwater.approval (run, call_id, record) SELECT n, 'c', '' FROM headwater.run WHERE id = %s",
            (runs[1].id,),
        )
        assert await orders.get() == runs[1].id
    assert orders.empty()
    await backend.close()


LISTENING = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"


async def test_a_worker_whose_ear_was_cut_off_sees_by_itself_and_listens_again(postgres: PostgresServer) -> None:
    """C50."""
    backend = PostgresBackend(postgres.url(), pace=Pace(hearing_s=3600.0, deaf_s=0.05))
    first, second = await backend.worker(), await backend.worker()
    run = (await started(first)).run
    told: asyncio.Queue[None] = asyncio.Queue()
    second.watch_run(run.id, lambda: told.put_nowait(None))
    for seq in range(3):
        await kept(first, tokens(run.id, seq))
        await told.get()
        with backend.sql() as connection:
            connection.execute(LISTENING)
    await kept(first, tokens(run.id, 3))
    await told.get()
    assert await seqs(second, run.id) == [0, 1, 2, 3]
    await backend.close()


async def test_who_can_not_write_letters_says_so_and_harms_nobody(
    behind: BehindProxy, caplog: pytest.LogCaptureFixture
) -> None:
    between = behind.proxy
    store = await behind.worker()
    told: list[int] = []
    store.watch_run("run_x", lambda: told.append(1))
    between.refusing = True
    between.cut()
    behind.database.publish(News(["run_x"]))
    assert told == [1]
    await behind.close()
    assert "will look for themselves" in caplog.text


@pytest.mark.parametrize("silent", [False, True], ids=["gone", "silent"])
async def test_one_that_can_not_even_look_has_those_who_watch_ask_and_goes_on_trying(
    behind: BehindProxy, silent: bool
) -> None:
    """Or they would wait for ever, at a worker that learns of nothing, for what goes on at others (C50)."""
    between = behind.proxy
    behind.patience = replace(behind.patience, news_s=0.5)
    behind.pace = Pace(hearing_s=0.02, deaf_s=0.02)
    store = await behind.worker()
    run = (await started(store)).run
    told = asyncio.Event()
    store.watch_run(run.id, told.set)
    await told.wait()
    if silent:
        between.silent = True
    else:
        between.refusing = True
        between.cut()
    for _ in range(2):
        told.clear()
        async with asyncio.timeout(30):
            await told.wait()
        with pytest.raises(StoreError):
            await store.read(OWNER, run.id)
    between.refusing = between.silent = False
    # The first may be told by a look that fails even now; the second is seen.
    for seq in range(2):
        told.clear()
        with behind.sql() as connection:
            connection.execute(f"INSERT INTO headwater.batch SELECT n, {seq}, {seq}, 'x' FROM headwater.run")
        await told.wait()


async def test_followers_orders_and_owners_do_not_depend_on_letters(behind: BehindProxy) -> None:
    """As behind a pooler, where LISTEN is taken and nothing is ever heard."""
    between = behind.proxy
    behind.pace = Pace(hearing_s=0.05, deaf_s=0.05)
    between.deaf = True
    first, second = await behind.worker(), await behind.worker()
    run = (await started(first)).run
    seen: asyncio.Queue[str] = asyncio.Queue()
    second.watch_run(run.id, lambda: seen.put_nowait("run"))
    assert await seen.get() == "run"
    await kept(first, tokens(run.id, 0))
    assert await seen.get() == "run"
    first.watch_orders(seen.put_nowait)
    await second.ask_stop(OWNER, run.id, StopRequest("user", 1.0))
    while await seen.get() != run.id:
        pass
    changed: asyncio.Queue[str] = asyncio.Queue()
    second.watch_owner(OWNER, lambda change: changed.put_nowait(change.kind))
    assert await changed.get() == "all"
    await ended_well(first, run.id)
