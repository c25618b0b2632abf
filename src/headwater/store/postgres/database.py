"""Postgres as an engine: some connections for what is asked, and one each for commits, for news and to listen.

Nothing is kept in between: whatever a worker knows can be learned from the database, by any other.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct

from headwater.records import Blob, SearchHit
from headwater.store.engine.core import slice_of
from headwater.store.news import Hub, News
from headwater.store.postgres.commit import KEEP_S, Commits
from headwater.store.postgres.connection import Address
from headwater.store.postgres.glance import Glance
from headwater.store.postgres.listener import Listener, Pace
from headwater.store.postgres.pool import CONNECT_S, Pool
from headwater.store.postgres.post import NEWS_S, Post
from headwater.store.postgres.tables import INDEXED_AT_ONCE, PostgresTables
from headwater.store.postgres.tails import Tails
from headwater.store.postgres.transactions import ANSWER_S, FATE_S, HOLD_S, Transactions
from headwater.store.results import Batch, LogSlice
from headwater.store.tables import Tables
from headwater.store.writer import Troubles

CONNECTIONS: Final = 8
"""Of a worker, for what is asked of it; three more for the rest."""


class Patience(Struct, frozen=True):
    """How long it is tried to reach a server that went away."""

    connect_s: float = CONNECT_S
    keep_s: float = KEEP_S
    fate_s: float = FATE_S
    answer_s: float = ANSWER_S
    news_s: float = NEWS_S
    hold_s: float = HOLD_S


class PostgresDatabase:
    alone = False
    at_once = False

    def __init__(
        self,
        address: Address,
        entropy: Callable[[int], bytes],
        pace: Pace = Pace(),
        patience: Patience = Patience(),
    ) -> None:
        self._address = address
        self._pace = pace
        self._pool = Pool(address, CONNECTIONS, connect_s=patience.connect_s)
        self._transactions = Transactions(
            address, self._pool, fate_s=patience.fate_s, answer_s=patience.answer_s, hold_s=patience.hold_s
        )
        self._tails = Tails(self._transactions, patience.news_s)
        self._commits = Commits(address, patience.keep_s)
        self._news_pool = Pool(address, 1, connect_s=patience.connect_s)
        self._news_s = patience.news_s
        self._post = Post(address, self._news_pool, entropy(8).hex(), patience.news_s)
        self._hubs: dict[Hub, tuple[Listener, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Tables]:
        async with self._transactions.reading() as connection:
            yield PostgresTables(connection)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Tables]:
        async with self._transactions.writing() as connection:
            yield PostgresTables(connection)

    def commit(self, worker_id: str, batches: Sequence[Batch]) -> asyncio.Future[Troubles]:
        return asyncio.create_task(self._commits.keep(worker_id, batches))

    async def slice(self, run_id: str, after: int, limit_bytes: int) -> LogSlice | None:
        found = await self._tails.slice(run_id, after)
        if found is None or found.last_seq <= after or _fits(found, limit_bytes):
            return found
        # Whoever is so far behind is read to in several pieces, as of one moment.
        async with self.reading() as tables:
            return await slice_of(tables, run_id, after, limit_bytes)

    def publish(self, news: News) -> None:
        for hub in self._hubs:
            hub.publish(news)
        self._post.send(news)

    async def index(self) -> None:
        more = INDEXED_AT_ONCE
        while more == INDEXED_AT_ONCE:
            async with self._transactions.writing() as connection:
                more = await PostgresTables(connection).index_some()

    async def forget(self) -> None:
        """Postgres clears away by itself what was deleted."""

    async def search(self, owner: str, words: str, limit: int) -> list[SearchHit]:
        async with self._transactions.reading() as connection:
            return await PostgresTables(connection).search(owner, words, limit)

    async def blob(self, owner: str, hash: str) -> Blob | None:
        async with self._transactions.reading() as connection:
            return await PostgresTables(connection).blob(owner, hash)

    def attach(self, hub: Hub) -> None:
        glance = Glance(self._address, self._news_pool, hub, self._news_s)
        listener = Listener(self._address, hub, glance, self._post, self._pace)
        self._hubs[hub] = listener, asyncio.create_task(listener.run())

    async def listening(self) -> None:
        """From here on, nobody is told of what they could not have missed."""
        for listener, _ in self._hubs.values():
            await listener.began.wait()

    async def abandon(self) -> None:
        """As when the process ends: nobody is told."""
        for hub in list(self._hubs):
            await self.close(hub)

    async def close(self, hub: Hub) -> None:
        _, listening = self._hubs.pop(hub)
        while not listening.done():
            # More than once, if need be: what it waits for may come at the same moment, and hide the cancel.
            listening.cancel()
            await asyncio.wait([listening], timeout=1.0)
        await self._post.close()
        await self._tails.close()
        for pool in (self._commits, self._news_pool, self._pool):
            await pool.close()


def _fits(found: LogSlice, limit_bytes: int) -> bool:
    """What was found is all that was asked for, and no more."""
    size = sum(len(line) + 1 for batch in found.batches[:-1] for line in batch.entries)
    return bool(found.batches) and size < limit_bytes
