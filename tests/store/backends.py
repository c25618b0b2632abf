"""The engines that are tested."""

import random
from pathlib import Path
from typing import Any

import apsw

from headwater.store.base import Store
from headwater.store.memory import MemoryDatabase, open_memory
from headwater.store.sqlite import join
from headwater.store.sqlite.database import SqliteDatabase
from headwater.store.sqlite.schema import migrate
from headwater.testing.clock import ManualClock


class MemoryBackend:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.database = MemoryDatabase()
        self._random = random.Random(1)

    async def worker(self) -> Store:
        return await open_memory(self.database, address="here", clock=self.clock, entropy=self._random.randbytes)


GROWING = {
    "run",
    "batch",
    "run_body",
    "session",
    "message",
    "notice",
    "queued",
    "shown",
    "blob",
    "reservation",
    "approval",
}
# Housekeeping, once in a while.
SCANS = {
    "DELETE FROM reservation WHERE at <= ?",
    "DELETE FROM blob WHERE hash NOT IN (SELECT hash FROM blob_owner)",
}


class Planner:
    """Fails on a statement that looks through a whole table of those that grow."""

    def __init__(self) -> None:
        self._connection = apsw.Connection(":memory:")
        migrate(self._connection, "plans")
        self._seen: set[str] = set(SCANS)

    def __call__(self, cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
        if sql not in self._seen and sql.startswith(("SELECT", "UPDATE", "DELETE")):
            self._seen.add(sql)
            steps: list[Any] = self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()
            scanned = [detail for *_, detail in steps if detail.startswith("SCAN") and " USING " not in detail]
            assert not {detail.split()[1] for detail in scanned} & GROWING, (sql, scanned)
        return True


_planner = Planner()


class SqliteBackend:
    """A worker that comes while there is one finds no lock, as if somebody had deleted the file of it."""

    def __init__(self, path: Path, seed: int = 1) -> None:
        self.clock = ManualClock()
        self.path = path
        self._random = random.Random(seed)
        self._databases: list[SqliteDatabase] = []

    @property
    def database(self) -> SqliteDatabase:
        return self._databases[-1]

    async def worker(self) -> Store:
        self.path.with_name(self.path.name + ".lock").unlink(missing_ok=True)
        self._databases.append(SqliteDatabase(self.path, address="here", durability="process"))
        for connection in (self.database._writer, self.database._reader):
            connection.exec_trace = _planner
        return await join(self.database, "here", self.clock, self._random.randbytes)
