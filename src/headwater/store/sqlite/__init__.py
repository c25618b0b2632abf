"""One machine's store: an SQLite file, through APSW, whose own SQLite lacks the WAL-reset fault of older ones."""

from collections.abc import Callable
from pathlib import Path

from headwater.clock import Clock
from headwater.events import make_id
from headwater.store.engine import Engine
from headwater.store.sqlite.connection import Durability
from headwater.store.sqlite.database import SqliteDatabase


async def open_sqlite(
    path: Path,
    *,
    address: str,
    clock: Clock,
    entropy: Callable[[int], bytes],
    durability: Durability = "process",
    beside: bool = False,
) -> Engine:
    """The one worker on that file, or with `beside` a visitor, which is to take up no runs."""
    database = SqliteDatabase(path, address=address, durability=durability, beside=beside)
    return await join(database, address, clock, entropy)


async def join(database: SqliteDatabase, address: str, clock: Clock, entropy: Callable[[int], bytes]) -> Engine:
    store = Engine(database, make_id("wrk", int(clock.unix_s() * 1000), entropy(16)), clock, entropy)
    await store.join(address, visiting=not database.alone)
    if database.alone:
        # Whoever had the file before is dead: it would have the lock.
        await store.fence_dead()
    return store
