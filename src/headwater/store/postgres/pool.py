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
from headwater.store.postgres.connection import Address, Connection, Silent, usable

WAIT_S: Final = 10.0
"""For so long one waits until a connection is free."""
CONNECT_S: Final = 3.0
"""And for so long until there is a server that takes one: it may be restarting."""
_CONNECT_GAP_S: Final = 0.1


class Pool:
    def __init__(self, address: Address, limit: int, *, wait_s: float = WAIT_S, connect_s: float = CONNECT_S) -> None:
        self._address = address
        self._limit = limit
        self._wait_s = wait_s
        self._connect_s = connect_s
        self._room = asyncio.Semaphore(limit)
        self._idle: list[Connection] = []
        self._closed = False

    @asynccontextmanager
    async def connection(self, until_s: float | None = None) -> AsyncIterator[Connection]:
        """One that comes back broken or in a transaction is not used again.

        None is, if its server has turned standby or says nothing any more. Raises `TimeoutError` after `until_s`.
        """
        async with asyncio.timeout_at(until_s):
            await self._enter()
        try:
            async with asyncio.timeout_at(until_s):
                connection = await self._take()
            try:
                yield connection
            except StoreError as error:
                if error.trouble == "read_only" or isinstance(error, Silent):
                    await connection.close()
                    await self._drop_idle()
                raise
            finally:
                if usable(connection) and not self._closed:
                    self._idle.append(connection)
                else:
                    await connection.close()
        finally:
            self._room.release()

    async def _enter(self) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await self._room.acquire()
        except TimeoutError:
            raise StoreError(
                f"all {self._limit} connections to {self._address.name} were in use for {self._wait_s} s",
                trouble="unreachable",
            ) from None

    async def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not _closed_by_server(connection):
                return connection
            await connection.close()
        return await self._connect()

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._connect_s
        while True:
            try:
                return await self._address.connect()
            except StoreError as error:
                if loop.time() > until_s:
                    # Not `Undone`: it was tried for long enough.
                    raise StoreError(error.message, trouble=error.trouble) from error
            await asyncio.sleep(_CONNECT_GAP_S)

    async def close(self) -> None:
        """What is in use is closed when it comes back."""
        self._closed = True
        await self._drop_idle()

    async def _drop_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()


def _closed_by_server(connection: Connection) -> bool:
    """Nothing was asked, so if there is something to be read, it is a farewell."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))
