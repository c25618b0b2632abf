"""The store in memory."""

import random

import pytest

from headwater.store.base import Store
from headwater.store.memory import MemoryDatabase, open_memory
from headwater.testing.clock import ManualClock
from headwater.testing.store_suite import SharedStoreSuite, StoreSuite


class MemoryBackend:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.database = MemoryDatabase()
        self._random = random.Random(1)

    async def worker(self) -> Store:
        return await open_memory(self.database, address="here", clock=self.clock, entropy=self._random.randbytes)


class TestMemory(StoreSuite, SharedStoreSuite):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()
