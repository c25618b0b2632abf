"""Every engine passes what any store must (C40–C55 as far as they are the store's); its machine is in test_machine.py."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headwater.testing.postgres import PostgresServer
from headwater.testing.store_suite import SharedStoreSuite, StoreSuite
from tests.store.backends import MemoryBackend, SqliteBackend
from tests.store.postgres_backend import PostgresBackend


class TestMemory(StoreSuite, SharedStoreSuite):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()


class TestSqlite(StoreSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> SqliteBackend:
        return SqliteBackend(tmp_path / "headwater.db")


class TestPostgres(StoreSuite, SharedStoreSuite):
    @pytest.fixture
    async def backend(self, postgres: PostgresServer) -> AsyncIterator[PostgresBackend]:
        backend = PostgresBackend(postgres.url())
        yield backend
        await backend.close()
