"""Connections that are used in turn, so many and no more.

Nothing of it runs by itself: a connection is made when one is needed, and looked at before it is used again. Whether
its server has closed it shows without a question being sent.
"""

import asyncio
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from headwater.errors import StoreError
from headwater.store.postgres.connection import Address, Connection, usable

WAIT_S: Final = 10.0
"""For so long one waits until a connection is free."""


class Pool:
    def __init__(self, address: Address, limit: int) -> None:
        self._address = address
        self._limit = limit
        self._room = asyncio.Semaphore(limit)
        self._idle: list[Connection] = []

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """One that comes back in a transaction, or broken, is not used again."""
        await self._enter()
        try:
            connection = await self._take()
            try:
                yield connection
            finally:
                if usable(connection):
                    self._idle.append(connection)
                else:
                    await connection.close()
        finally:
            self._room.release()

    async def _enter(self) -> None:
        try:
            async with asyncio.timeout(WAIT_S):
                await self._room.acquire()
        except TimeoutError:
            raise StoreError(
                f"all {self._limit} connections to {self._address.name} were in use for {WAIT_S:.0f} s",
                trouble="unreachable",
            ) from None

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not _closed_by_server(connection):
                return connection
            await connection.close()
        return await self._address.connect()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()


def _closed_by_server(connection: Connection) -> bool:
    """Nothing was asked, so if there is something to be read, it is a farewell."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))
