"""The engines that are tested."""

import random
from pathlib import Path

from headwater.store.base import Store
from headwater.store.memory import MemoryDatabase, open_memory
from headwater.store.sqlite import join
from headwater.store.sqlite.database import SqliteDatabase
from headwater.testing.clock import ManualClock


class MemoryBackend:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.database = MemoryDatabase()
        self._random = random.Random(1)

    async def worker(self) -> Store:
        return await open_memory(self.database, address="here", clock=self.clock, entropy=self._random.randbytes)


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
        return await join(self.database, "here", self.clock, self._random.randbytes)
