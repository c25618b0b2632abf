"""Transactions: what becomes of one is known, or said to be unknown.

A connection that breaks while it is told to commit leaves open whether it did. Postgres remembers: another connection
asks what became of the transaction, by its number.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from headwater.errors import StoreError
from headwater.store.postgres.connection import Address, Connection
from headwater.store.postgres.pool import Pool

ANSWER_S: Final = 20.0
"""For so long a transaction may take: a server that is there and says nothing is as good as none."""
UNDO_S: Final = 1.0
HOLD_S: Final = 5.0
"""For so long a transaction may wait for its worker, at most: one that hangs must not keep its locks from those who
are to declare it dead. Postgres then ends it."""
FATE_S: Final = 10.0
"""For so long it is tried to learn what became of a transaction."""
_FATE_GAP_S: Final = 0.1


class Transactions:
    def __init__(self, address: Address, pool: Pool, *, fate_s: float, answer_s: float, hold_s: float) -> None:
        self._address = address
        self._pool = pool
        self._fate_s = fate_s
        self._answer_s = answer_s
        # With each transaction, not with the connection: that may be a pooler's.
        self._begin = (
            f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = {hold_s * 1000:.0f};"
            " SELECT pg_current_xact_id()::text"
        )

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """Everything is read as of one moment."""
        async with self._pool.connection() as connection:
            with self._address.answering(connection, self._answer_s):
                try:
                    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    yield connection
                finally:
                    await self._undo(connection)

    @asynccontextmanager
    async def asking(self, answer_s: float) -> AsyncIterator[Connection]:
        """For one question, which is of one moment by itself."""
        async with self._pool.connection() as connection:
            with self._address.answering(connection, answer_s):
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Connection]:
        async with self._pool.connection() as connection:
            with self._address.answering(connection, self._answer_s):
                try:
                    number = await self._begun(connection)
                    yield connection
                except BaseException:
                    await self._undo(connection)
                    raise
            await self._commit(connection, number)

    async def _begun(self, connection: Connection) -> str:
        """The number of the transaction, by which its fate can be learned."""
        cursor = await connection.execute(self._begin, prepare=False)
        while cursor.nextset():
            pass
        row = await cursor.fetchone()
        assert row is not None, "a SELECT of one value has a row"
        return str(row[0])

    async def _undo(self, connection: Connection) -> None:
        """If it can't be told, it is closed, and its server finds out by itself."""
        try:
            with self._address.answering(connection, UNDO_S):
                await connection.execute("ROLLBACK")
        except StoreError:
            await connection.close()

    async def _commit(self, connection: Connection, number: str) -> None:
        try:
            with self._address.answering(connection, self._answer_s):
                await connection.execute("COMMIT")
        except StoreError:
            if not await self.committed(number):
                raise

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
                with self._address.answering(connection, self._answer_s):
                    cursor = await connection.execute("SELECT pg_xact_status(%s::xid8)", (number,))
                    row = await cursor.fetchone()
        except StoreError:
            return None
        return None if row is None else row[0]
