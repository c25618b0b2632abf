"""Workers on one Postgres, each with connections of its own, as processes have."""

import random
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from headwater.events import decode_entry
from headwater.records import Run
from headwater.store.base import Store
from headwater.store.postgres import join
from headwater.store.postgres.connection import Address
from headwater.store.postgres.database import Patience, PostgresDatabase
from headwater.store.postgres.listener import Pace
from headwater.store.postgres.schema import migrate
from headwater.testing.clock import ManualClock
from headwater.testing.postgres import PostgresServer
from headwater.testing.store_suite.making import logged, started
from tests.store.proxy import Proxy, proxied

# Whoever waits for a look, waits for ever: letters are to do.
ONLY_LETTERS = Pace(hearing_s=3600.0, deaf_s=3600.0)

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'headwater' AND tablename <> 'migration'"


def emptied(server: PostgresServer, name: str = "tests") -> str:
    """The url of a database in which there is nothing."""
    server.do(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name}")
    return server.url(name)


class PostgresBackend:
    def __init__(
        self,
        url: str,
        *,
        seed: int = 1,
        pace: Pace = ONLY_LETTERS,
        patience: Patience = Patience(),
        by_proxy: str | None = None,
    ) -> None:
        """`by_proxy`: the url that the workers use."""
        self.clock = ManualClock()
        self.url = url
        self._workers_url = by_proxy or url
        self.pace = pace
        self.patience = patience
        self._random = random.Random(seed)
        self._databases: list[PostgresDatabase] = []

    @property
    def database(self) -> PostgresDatabase:
        return self._databases[-1]

    async def worker(self) -> Store:
        address = Address(self._workers_url)
        if not self._databases:
            await migrate(address)
            with self.sql() as connection:
                found = connection.execute(_TABLES).fetchall()
                connection.execute(f"TRUNCATE {', '.join(f'headwater.{name}' for (name,) in found)}")
        self._databases.append(PostgresDatabase(address, self._random.randbytes, self.pace, self.patience))
        return await join(self.database, "here", self.clock, self._random.randbytes)

    @contextmanager
    def sql(self) -> Iterator[psycopg.Connection]:
        """A way in that is no worker's."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            yield connection

    async def begun(self, **ask: Any) -> tuple[Store, Run]:
        """A worker, and a run of its own."""
        store = await self.worker()
        return store, (await started(store, **ask)).run

    async def close(self) -> None:
        """As when all of their processes end: nothing is said."""
        for database in self._databases:
            await database.abandon()


async def seqs(store: Store, run_id: str) -> list[int]:
    return [decode_entry(entry).seq for entry in await logged(store, run_id)]


# Shorter than anybody has to wait, longer than a busy machine takes.
IMPATIENT = Patience(connect_s=0.2, keep_s=1.0, fate_s=0.3, answer_s=2.0, news_s=2.0)


class BehindProxy(PostgresBackend):
    """Its workers reach Postgres through `proxy`, and have little patience."""

    def __init__(self, url: str, by_proxy: str, proxy: Proxy) -> None:
        # Two seconds are the least that libpq takes.
        super().__init__(url, by_proxy=f"{by_proxy}&connect_timeout=2", patience=IMPATIENT)
        self.proxy = proxy


@asynccontextmanager
async def behind_proxy(server: PostgresServer) -> AsyncIterator[BehindProxy]:
    # The path of a socket is short, and pytest's own folders are not.
    with tempfile.TemporaryDirectory(prefix="hw") as folder:
        async with proxied(server.url(), Path(folder)) as (proxy, url):
            backend = BehindProxy(server.url(), url, proxy)
            yield backend
            proxy.refusing = proxy.deaf = proxy.silent = proxy.cut_on_cancel = False
            proxy.thaw()
            await backend.close()
