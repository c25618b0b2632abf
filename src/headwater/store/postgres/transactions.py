"""Transactions: what becomes of one is known, or said to be unknown.

A connection that breaks while it is told to commit leaves open whether it did. Postgres remembers: another connection
asks what became of the transaction, by its number.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import psycopg

from headwater.errors import StoreError
from headwater.store.postgres.connection import Address, Connection
from headwater.store.postgres.pool import Pool

ANSWER_S: Final = 20.0
"""For so long a transaction may take: a server that is there and says nothing is as good as none."""
UNDO_S: Final = 1.0
FATE_S: Final = 10.0
"""For so long it is tried to learn what became of a transaction."""
_FATE_GAP_S: Final = 0.1


class Transactions:
    def __init__(self, address: Address, pool: Pool, fate_s: float = FATE_S, answer_s: float = ANSWER_S) -> None:
        self._address = address
        self._pool = pool
        self._fate_s = fate_s
        self._answer_s = answer_s

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """Everything is read as of one moment."""
        async with self._pool.connection() as connection, self._in_time():
            try:
                await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield connection
            finally:
                await _undo(connection)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[Connection]:
        """For one question, which is of one moment by itself."""
        async with self._pool.connection() as connection, self._in_time():
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        async with self._pool.connection() as connection:
            async with self._in_time():
                try:
                    number = await _begin(connection)
                    yield connection
                except BaseException:
                    await _undo(connection)
                    raise
            await self._commit(connection, number)

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            with self._address.translated():
                async with asyncio.timeout(self._answer_s):
                    yield
        except TimeoutError:
            raise self._silent() from None

    def _silent(self) -> StoreError:
        return StoreError(f"{self._address.name} did not answer for {self._answer_s} s", trouble="unreachable")

    async def _commit(self, connection: Connection, number: str) -> None:
        try:
            async with asyncio.timeout(self._answer_s):
                await connection.execute("COMMIT")
        except (psycopg.Error, TimeoutError) as error:
            if not await self.committed(number):
                raise (self._address.trouble(error) if isinstance(error, psycopg.Error) else self._silent()) from error

    async def committed(self, number: str) -> bool:
        """What became of a transaction whose connection broke. Raises `StoreError` if that can't be learned."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._fate_s
        while True:
            status = await self._status(number)
            if status in ("committed", "aborted"):
                return status == "committed"
            if loop.time() > until_s:
                raise StoreError(
                    f"{self._address.name} went away in the middle of a commit, and whether it kept it can't be known",
                    trouble="unreachable",
                )
            await asyncio.sleep(_FATE_GAP_S)

    async def _status(self, number: str) -> str | None:
        """None: nobody can say, now."""
        try:
            # Not one of the pool's, all of which may be held by those who ask the same.
            async with await self._address.connect() as connection:
                cursor = await connection.execute("SELECT pg_xact_status(%s::xid8)", (number,))
                row = await cursor.fetchone()
        except (psycopg.Error, StoreError):
            return None
        return None if row is None else row[0]


async def _begin(connection: Connection) -> str:
    """The number of the transaction, by which its fate can be learned."""
    cursor = await connection.execute("BEGIN; SELECT pg_current_xact_id()::text", prepare=False)
    cursor.nextset()
    row = await cursor.fetchone()
    assert row is not None, "a SELECT of one value has a row"
    return str(row[0])


async def _undo(connection: Connection) -> None:
    """If it can't be told, it is closed, and its server finds out by itself."""
    try:
        async with asyncio.timeout(UNDO_S):
            await connection.execute("ROLLBACK")
    except (psycopg.Error, TimeoutError):
        await connection.close()
