"""Sends news to the other workers, by NOTIFY: what has come while the last was under way goes as one.

Apart from the commits that the news are of: a transaction with a NOTIFY holds a lock of the whole database while it
commits, so that all workers' commits would stand in line, each for a write to disk. Whoever is not told looks.
Where nobody else has been heard of for a while, nothing is sent.
"""

import asyncio
import logging
from typing import Final

from headwater.errors import StoreError
from headwater.store.news import News
from headwater.store.postgres.arrays import texts
from headwater.store.postgres.connection import Address
from headwater.store.postgres.letters import write
from headwater.store.postgres.pool import Pool

CHANNEL: Final = "headwater"
GAP_S: Final = 0.005
"""Between two of a worker, save after a pause: each is read by all others, some 50 µs a letter and worker."""
NEWS_S: Final = 5.0
"""Whoever sends or asks for news takes a millisecond: a server that says nothing for so long is as good as none."""

_log = logging.getLogger("headwater.store")


class Post:
    def __init__(self, address: Address, pool: Pool, sender: str, answer_s: float = NEWS_S) -> None:
        self._address = address
        self._pool = pool
        self._answer_s = answer_s
        self.sender = sender
        self._news = News()
        self._sending: asyncio.Task[None] | None = None
        self._readers_until_s = float("inf")

    def expect_readers(self, for_s: float) -> None:
        """Somebody is there, or may be; and if nothing more is heard of them, for so long."""
        self._readers_until_s = asyncio.get_running_loop().time() + for_s

    def send(self, news: News) -> None:
        if asyncio.get_running_loop().time() > self._readers_until_s:
            return
        self._news.runs += news.runs
        self._news.orders += news.orders
        self._news.changed += news.changed
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._news:
                news, self._news = self._news, News()
                await self.notify(write(self.sender, news))
                # It paces work, and is seen by nobody: no `Clock`.
                await asyncio.sleep(GAP_S)
        except StoreError as error:
            self._news = News()
            _log.warning("other workers were not told, and will look for themselves: %s", error)
        finally:
            self._sending = None

    async def notify(self, letters: list[str]) -> None:
        async with self._pool.connection() as connection:
            with self._address.answering(connection, self._answer_s):
                await connection.execute(
                    "SELECT pg_notify(%s, letter) FROM unnest(%s) AS letter", (CHANNEL, texts(letters))
                )

    async def close(self) -> None:
        """What was published is sent first."""
        if self._sending is not None:
            await self._sending
