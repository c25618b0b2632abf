"""Every engine passes what any store must: the suite, and the state machine (C40–C55 as far as they are the store's)."""

import tempfile
from pathlib import Path

import pytest

from headwater.testing.store_suite import SharedStoreSuite, StoreSuite
from headwater.testing.store_suite.machine import StoreMachine
from headwater.testing.store_suite.making import Backend
from tests.store.backends import MemoryBackend, SqliteBackend


class TestMemory(StoreSuite, SharedStoreSuite):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()


class TestSqlite(StoreSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> SqliteBackend:
        return SqliteBackend(tmp_path / "headwater.db")


class MemoryMachine(StoreMachine):
    shared = True

    def make_backend(self) -> Backend:
        return MemoryBackend()


class SqliteMachine(StoreMachine):
    def make_backend(self) -> Backend:
        self._folder = tempfile.TemporaryDirectory()
        return SqliteBackend(Path(self._folder.name) / "headwater.db")

    def teardown(self) -> None:
        super().teardown()
        self._folder.cleanup()


TestMemoryMachine = MemoryMachine.TestCase
TestSqliteMachine = SqliteMachine.TestCase
