"""The store of many workers on many machines: one Postgres, through psycopg (`pip install headwater[postgres]`)."""

from collections.abc import Callable
from contextlib import AsyncExitStack

from headwater.clock import Clock
from headwater.events import make_id
from headwater.store.engine import Engine
from headwater.store.engine.workers import LEASE_S
from headwater.store.postgres.commit import KEEP_S
from headwater.store.postgres.connection import Address
from headwater.store.postgres.database import Patience, PostgresDatabase
from headwater.store.postgres.schema import migrate
from headwater.store.postgres.transactions import HOLD_S


async def open_postgres(
    url: str,
    *,
    address: str,
    clock: Clock,
    entropy: Callable[[int], bytes],
    lease_s: float = LEASE_S,
    beside: bool = False,
) -> Engine:
    """One more worker on that database, or with `beside` a visitor, which is to take up no runs."""
    where = Address(url)
    await migrate(where)
    patience = Patience(keep_s=min(KEEP_S, lease_s / 2), hold_s=min(HOLD_S, lease_s / 3))
    database = PostgresDatabase(where, entropy, patience=patience)
    return await join(database, address, clock, entropy, lease_s=lease_s, visiting=beside)


async def join(
    database: PostgresDatabase,
    address: str,
    clock: Clock,
    entropy: Callable[[int], bytes],
    *,
    lease_s: float = LEASE_S,
    visiting: bool = False,
) -> Engine:
    store = Engine(database, make_id("wrk", int(clock.unix_s() * 1000), entropy(16)), clock, entropy, lease_s)
    async with AsyncExitStack() as undo:
        undo.push_async_callback(database.abandon)
        await store.join(address, visiting=visiting)
        await database.listening()
        undo.pop_all()
    return store
