"""One Postgres for all tests that need one."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.testing.postgres import PostgresServer

_missing: list[str] = []


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with tempfile.TemporaryDirectory(prefix="hw", ignore_cleanup_errors=True) as folder:
        try:
            server = PostgresServer(Path(folder) / "pg")
        except Exception as error:
            _missing.append(f"{type(error).__name__}: {error}")
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"there is no Postgres to be had here: {error}")
        yield server
        server.remove()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason in _missing:
        terminalreporter.write_line(
            f"NOT TESTED: the Postgres store, for no Postgres could be started: {reason}", red=True
        )
