"""The machine over runs, on every engine."""

import tempfile
from pathlib import Path
from typing import ClassVar

from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from headwater.testing.postgres import PostgresServer
from headwater.testing.store_suite.making import Backend
from tests.runs.machine import RunsMachine
from tests.store.backends import MemoryBackend, SqliteBackend
from tests.store.postgres_backend import PostgresBackend, emptied


class InMemory(RunsMachine):
    def make_backend(self) -> Backend:
        return MemoryBackend()


class OnSqlite(RunsMachine):
    shared = False

    def make_backend(self) -> Backend:
        self._folder = tempfile.TemporaryDirectory()
        return SqliteBackend(Path(self._folder.name) / "headwater.db")

    def teardown(self) -> None:
        super().teardown()
        self._folder.cleanup()


class OnPostgres(RunsMachine):
    url: ClassVar[str]
    news_s = 20.0

    def make_backend(self) -> Backend:
        return PostgresBackend(self.url)


def examples(fewest: int, part: int) -> settings:
    """A step is some milliseconds of waiting for commits."""
    return settings(max_examples=max(fewest, settings().max_examples // part), stateful_step_count=30)


def test_runs_in_memory() -> None:
    run_state_machine_as_test(InMemory, settings=examples(60, 5))


def test_runs_on_sqlite() -> None:
    run_state_machine_as_test(OnSqlite, settings=examples(20, 10))


def test_runs_on_postgres(postgres: PostgresServer) -> None:
    OnPostgres.url = emptied(postgres, "runs")
    # A failure waits for news that do not come: it is shown as it was found.
    run_state_machine_as_test(OnPostgres, settings=settings(examples(7, 40), phases=(Phase.generate,)))
