"""How a Postgres is found: made at once by several, made by a later version, not to be had."""

import asyncio
import os
import re

import psycopg
import pytest
from psycopg import errors

from headwater.clock import SystemClock
from headwater.errors import StoreError
from headwater.records import StopRequest
from headwater.store.opening import open_store
from headwater.store.postgres import join, open_postgres
from headwater.store.postgres.connection import Address
from headwater.store.postgres.database import PostgresDatabase
from headwater.store.postgres.schema import MIGRATIONS, Step, migrate
from headwater.store.tables import Undone
from headwater.testing.postgres import PostgresServer
from headwater.testing.store_suite.making import OWNER, ended_well, logged, said, started
from tests.store.postgres_backend import emptied
from tests.store.test_postgres_faults import Writing

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return emptied(postgres)


async def open_it(url: str) -> None:
    store = await open_postgres(url, address="here", clock=SystemClock(), entropy=os.urandom)
    await store.close()


async def test_several_that_start_at_once_make_the_tables_once(url: str) -> None:
    await asyncio.gather(*(open_it(url) for _ in range(4)))
    with psycopg.connect(url) as connection:
        done = connection.execute("SELECT number FROM headwater.migration ORDER BY 1").fetchall()
        assert done == [(number,) for number in range(1, KNOWN + 1)]


async def test_a_store_is_opened_by_its_url(url: str) -> None:
    store = await open_store(url, address="here", clock=SystemClock(), entropy=os.urandom)
    await store.check()
    run = (await started(store)).run
    await ended_well(store, run.id)
    await store.close()
    visitor = await open_postgres(url, address="there", clock=SystemClock(), entropy=os.urandom, beside=True)
    assert await visitor.run(OWNER, run.id) is not None
    assert [worker.visiting for worker in await visitor.workers()] == [False, True]
    await visitor.close()


KNOWN = len(MIGRATIONS)
LATER = Step(("ALTER TABLE headwater.run ADD COLUMN hue text",), works_from=1)
BREAKING = Step(("ALTER TABLE headwater.run DROP COLUMN stopping",), works_from=KNOWN + 2)


async def test_a_worker_goes_on_beside_a_later_one_if_that_says_so(url: str) -> None:
    await migrate(Address(url))
    await migrate(Address(url), (*MIGRATIONS, LATER))
    await open_it(url)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT max(number) FROM headwater.migration").fetchone() == (KNOWN + 1,)


ADDS = re.compile(r"(CREATE TABLE|CREATE INDEX|ALTER TABLE \S+ ADD COLUMN (?!.*NOT NULL(?!.*DEFAULT)))")


def test_steps_that_older_workers_can_go_on_beside_only_add() -> None:
    for number, step in enumerate(MIGRATIONS[1:], 2):
        if step.works_from < number:
            assert all(ADDS.match(statement) for statement in step.statements), number
    assert ADDS.match(LATER.statements[0])
    assert not ADDS.match(BREAKING.statements[0])
    assert not ADDS.match("ALTER TABLE headwater.run ADD COLUMN hue text NOT NULL")


async def test_old_and_new_workers_side_by_side(url: str) -> None:
    """A worker that knows one step less goes on while the step is made, and after that beside those that made it."""
    await migrate(Address(url), MIGRATIONS[:-1])
    address, clock = Address(url), SystemClock()
    old = await join(PostgresDatabase(address, os.urandom), "old", clock, os.urandom)
    run = (await started(old, session_id="s", messages=(said("one"),))).run
    writing = Writing(old, run.id)
    await writing.more()
    await migrate(Address(url), (*MIGRATIONS, LATER))
    await writing.more()
    new = await open_postgres(url, address="new", clock=clock, entropy=os.urandom)
    told = asyncio.Event()
    new.watch_run(run.id, told.set)
    await new.tell_following()
    await told.wait()
    await writing.stop()
    theirs = (await started(new)).run
    orders: asyncio.Queue[str] = asyncio.Queue()
    for asks, has, of in ((old, new, theirs), (new, old, run)):
        has.watch_orders(orders.put_nowait)
        await asks.ask_stop(OWNER, of.id, StopRequest("user", 1.0))
        assert await orders.get() == of.id
    await ended_well(old, run.id)
    await ended_well(new, theirs.id)
    assert len(await logged(new, run.id)) > writing.kept_seq
    assert await old.read(OWNER, theirs.id) is not None
    await old.beat()
    assert await new.fence_dead() == ()
    await old.close()
    await new.close()


async def test_a_later_schema_that_an_older_worker_would_break_on_is_refused(url: str) -> None:
    await migrate(Address(url), (*MIGRATIONS, LATER, BREAKING))
    with pytest.raises(StoreError, match=f"its schema is {KNOWN + 2}, this one knows {KNOWN}, and that") as raised:
        await open_it(url)
    assert raised.value.trouble == "newer"


async def test_tables_that_somebody_else_has_changed_are_refused(url: str) -> None:
    await migrate(Address(url))
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE headwater.migration SET digest = 'x'")
    with pytest.raises(StoreError, match="not what step 1 makes") as raised:
        await open_it(url)
    assert raised.value.trouble == "corrupt"


async def test_a_step_that_fails_leaves_nothing(url: str) -> None:
    broken = Step(("CREATE TABLE headwater.hue (n integer)", "SELECT no_such_function()"), works_from=1)
    with pytest.raises(StoreError, match="no_such_function"):
        await migrate(Address(url), (*MIGRATIONS, broken))
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT to_regnamespace('headwater')").fetchone() == (None,)


async def test_a_role_that_may_only_read_and_write_can_start(url: str, postgres: PostgresServer) -> None:
    await migrate(Address(url))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS modest")
        connection.execute("CREATE ROLE modest LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA headwater TO modest")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA headwater TO modest")
        await open_it(url.replace("postgres:@", "modest:@"))
        connection.execute("REVOKE INSERT ON headwater.worker FROM modest")
        with pytest.raises(StoreError, match="may not do that") as raised:
            await open_it(url.replace("postgres:@", "modest:@"))
        assert raised.value.trouble == "read_only"
        connection.execute("DROP OWNED BY modest")


async def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(StoreError, match=r"the Postgres at 127\.0\.0\.1:1/db can't be reached") as raised:
        await open_it("postgresql://me:secret@127.0.0.1:1/db?connect_timeout=2")
    assert (raised.value.trouble, "secret" in str(raised.value)) == ("unreachable", False)


async def test_a_url_that_can_not_be_read_is_refused() -> None:
    with pytest.raises(StoreError, match=r"store\.url can't be read"):
        await open_it("postgresql://me:secret@host/db?hue=red")


@pytest.mark.parametrize(
    ("error", "trouble", "again"),
    [
        (errors.DiskFull("no room"), "full", False),
        (errors.ReadOnlySqlTransaction("standby"), "read_only", True),
        (errors.InsufficientPrivilege("no"), "read_only", False),
        (errors.DataCorrupted("page"), "corrupt", False),
        (errors.IndexCorrupted("page"), "corrupt", False),
        (errors.DeadlockDetected("x"), "locked", True),
        (errors.SerializationFailure("x"), "locked", True),
        (errors.AdminShutdown("x"), "unreachable", True),
        (psycopg.OperationalError("gone"), "unreachable", True),
        (psycopg.InterfaceError("closed"), "unreachable", True),
        (errors.UndefinedTable("x"), "unreachable", False),
    ],
)
async def test_what_postgres_raises_is_told_in_our_words(error: psycopg.Error, trouble: str, again: bool) -> None:
    found = Address("postgresql://here/db").trouble(error)
    assert (found.trouble, isinstance(found, Undone)) == (trouble, again)


async def test_a_database_that_turns_read_only_is_told_so_and_left(url: str) -> None:
    """As when another machine has become the primary."""
    store = await open_postgres(url, address="here", clock=SystemClock(), entropy=os.urandom)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER DATABASE tests SET default_transaction_read_only = on")
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'tests' AND pid <> pg_backend_pid()"
        )
        with pytest.raises(StoreError) as raised:
            await store.check()
        assert raised.value.trouble == "read_only"
        assert (await store.workers())[0].id == store.worker_id
        connection.execute("SET default_transaction_read_only = off")
        connection.execute("ALTER DATABASE tests RESET default_transaction_read_only")
    await store.check()
    await store.close()
