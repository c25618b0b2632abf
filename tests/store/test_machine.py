"""Any steps in any order, on every engine, against a simple model (C40–C55 as far as they are the store's)."""

import tempfile
from pathlib import Path
from typing import ClassVar

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from headwater.testing.postgres import PostgresServer
from headwater.testing.store_suite.machine import StoreMachine
from headwater.testing.store_suite.making import Backend
from tests.store.backends import MemoryBackend, SqliteBackend
from tests.store.postgres_backend import PostgresBackend, emptied


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


class PostgresMachine(StoreMachine):
    shared = True
    url: ClassVar[str]

    def make_backend(self) -> Backend:
        return PostgresBackend(self.url)


def examples(part: int) -> settings:
    """Each of 50 steps: in CI, thousands in all."""
    return settings(max_examples=settings().max_examples // part)


def test_memory_machine() -> None:
    run_state_machine_as_test(MemoryMachine, settings=examples(2))


def test_sqlite_machine() -> None:
    run_state_machine_as_test(SqliteMachine, settings=examples(3))


def test_postgres_machine(postgres: PostgresServer) -> None:
    PostgresMachine.url = emptied(postgres, "machine")
    # A step is some 50 round trips.
    run_state_machine_as_test(PostgresMachine, settings=settings(examples(8), stateful_step_count=30))
