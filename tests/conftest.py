"""Hypothesis profiles, and one Postgres for all tests that need one.

CI takes more examples; both profiles are deterministic, so that a red run stays red.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from headwater.testing.postgres import PostgresServer

pytest.register_assert_rewrite("headwater.testing.store_suite")

settings.register_profile(
    "fast", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("fast"), max_examples=300)
settings.register_profile("soak", settings.get_profile("fast"), max_examples=3000)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "fast")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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
