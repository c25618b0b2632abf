"""Statements on one connection, and locks by name."""

import hashlib
from collections.abc import Sequence
from typing import Any

from headwater.store.postgres.connection import Connection

Row = tuple[Any, ...]


class Rows:
    """What the tables are made of."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _all(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        cursor = await self._connection.execute(sql, values, binary=True)
        return await cursor.fetchall()

    async def _one(self, sql: str, values: Sequence[object] = ()) -> Row | None:
        cursor = await self._connection.execute(sql, values, binary=True)
        return await cursor.fetchone()

    async def _do(self, sql: str, values: Sequence[object] = ()) -> int:
        """How many rows were written."""
        return (await self._connection.execute(sql, values)).rowcount

    async def _lock(self, *name: str, shared: bool = False) -> None:
        """Until the transaction is over. There need not be anything of that name."""
        function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
        await self._connection.execute(f"SELECT {function}(%s)", (lock_number(*name),))


def lock_number(*name: str) -> int:
    """Two names that share one by chance (2⁻⁶⁴) wait for each other, no more."""
    digest = hashlib.blake2b("\0".join(name).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
