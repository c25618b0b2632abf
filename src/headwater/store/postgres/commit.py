"""The group commit: entries of many runs in one statement, which is one transaction and one round trip.

It looks whether its worker lives, and holds that as long as it lasts: who declares the worker dead waits for it, and
after that sees all that there will ever be. A COPY took twice the CPU for few runs, and fails as a whole over one.

A commit whose connection broke may have been kept. It is sent again for a while: entries have their places, so that
those that are there stay, once, and are known by what they are.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from headwater.errors import StoreError
from headwater.store.engine.core import fenced, lost
from headwater.store.framing import pack
from headwater.store.postgres.arrays import byteas, int4s, texts
from headwater.store.postgres.connection import Address, Silent
from headwater.store.postgres.pool import Pool
from headwater.store.results import Batch
from headwater.store.tables import Undone
from headwater.store.writer import Troubles

KEEP_S: Final = 8.0
"""For so long a commit is tried, at most. Less than a lease: after that, somebody else may have ended the runs."""
RETRY_S: Final = 0.1

# The run of each row is looked up by itself: as a join, Postgres expects few rows and reads the table for each.
_KEEP: Final = """
WITH me AS MATERIALIZED (SELECT FROM headwater.worker WHERE id = %(worker)s AND NOT fenced FOR KEY SHARE),
kept AS (
    INSERT INTO headwater.batch
    SELECT run.n, given.first_seq, given.last_seq, given.data
    FROM me
    CROSS JOIN unnest(%(runs)s, %(firsts)s, %(lasts)s, %(data)s) AS given (run_id, first_seq, last_seq, data)
    CROSS JOIN LATERAL (
        SELECT n FROM headwater.run WHERE id = run_id AND state = 'running' AND worker_id = %(worker)s LIMIT 1) AS run
    ON CONFLICT DO NOTHING RETURNING 1)
SELECT (SELECT count(*) FROM me), (SELECT count(*) FROM kept)"""
_KEPT: Final = """
SELECT run_id FROM unnest(%(runs)s, %(firsts)s, %(lasts)s, %(data)s) AS given (run_id, first_seq, last_seq, data)
WHERE EXISTS (
    SELECT FROM headwater.run JOIN headwater.batch ON batch.run = run.n
    WHERE run.id = run_id AND state = 'running' AND worker_id = %(worker)s
    AND batch.first_seq = given.first_seq AND batch.last_seq = given.last_seq AND batch.data = given.data)"""


class Commits:
    """One at a time, on a connection of its own: nothing else holds it up."""

    def __init__(self, address: Address, keep_s: float = KEEP_S) -> None:
        self._address = address
        self._keep_s = keep_s
        self._pool = Pool(address, 1)

    async def keep(self, worker_id: str, batches: Sequence[Batch]) -> Troubles:
        run_ids = [batch.run_id for batch in batches]
        values = {
            "worker": worker_id,
            "runs": texts(run_ids),
            "firsts": int4s([batch.first_seq for batch in batches]),
            "lasts": int4s([batch.last_seq for batch in batches]),
            "data": byteas([pack(batch.entries) for batch in batches]),
        }
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._keep_s
        trouble = StoreError(f"{self._address.name} does not answer", trouble="unreachable")
        while loop.time() < until_s:
            try:
                return await self._keep(worker_id, run_ids, values, until_s)
            except TimeoutError:
                break
            except (Undone, Silent) as error:
                trouble = error
            await asyncio.sleep(RETRY_S)
        message = f"{trouble.message} (for {self._keep_s} s; whether what was sent was kept can't be known)"
        raise StoreError(message, trouble=trouble.trouble)

    async def _keep(
        self, worker_id: str, run_ids: Sequence[str], values: Mapping[str, object], until_s: float
    ) -> Troubles:
        async with self._pool.connection(until_s) as connection:
            with self._address.answering(connection, until_s - asyncio.get_running_loop().time()):
                row = await (await connection.execute(_KEEP, values)).fetchone()
                assert row is not None, "a SELECT of two values has a row"
                alive, kept = row
                if not alive:
                    raise fenced(worker_id)
                if kept == len(run_ids):
                    return {}
                there = {run_id for (run_id,) in await (await connection.execute(_KEPT, values)).fetchall()}
        return {run_id: lost(run_id) for run_id in run_ids if run_id not in there}

    async def close(self) -> None:
        await self._pool.close()
