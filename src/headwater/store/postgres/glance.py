"""One question to the database about all that is watched here: whoever missed something is told."""

from typing import Final

from headwater.store.news import Hub
from headwater.store.postgres.arrays import texts
from headwater.store.postgres.connection import Address
from headwater.store.postgres.pool import Pool
from headwater.store.postgres.post import NEWS_S

_RUNS: Final = """
SELECT id, state, (SELECT last_seq FROM headwater.batch WHERE batch.run = run.n ORDER BY first_seq DESC LIMIT 1)
FROM unnest(%s) AS watched
CROSS JOIN LATERAL (SELECT n, id, state FROM headwater.run WHERE id = watched LIMIT 1) AS run"""
_ORDERS: Final = """
SELECT worker_id, id, stopping, approvals
FROM headwater.run CROSS JOIN LATERAL (
    SELECT count(*) AS approvals FROM headwater.approval WHERE approval.run = run.n) AS given
WHERE state = 'running' AND state <> 'ended' AND worker_id = ANY (%s) AND (stopping OR approvals > 0)"""


class Glance:
    def __init__(self, address: Address, pool: Pool, hub: Hub, answer_s: float = NEWS_S) -> None:
        self._address = address
        self._pool = pool
        self._answer_s = answer_s
        self._hub = hub
        self._runs: dict[str, tuple[object, ...] | None] = {}
        """How each that is watched was seen last."""
        self._orders: dict[tuple[str, str], tuple[object, ...]] = {}

    async def look(self) -> None:
        watched, workers = self._hub.runs.watched(), self._hub.orders.watched()
        if not watched and not workers:
            return
        async with self._pool.connection() as connection:
            with self._address.answering(connection, self._answer_s):
                runs = await (await connection.execute(_RUNS, (texts(watched),))).fetchall()
                orders = await (await connection.execute(_ORDERS, (texts(workers),))).fetchall()
        self._tell_runs(watched, {run_id: tuple(seen) for run_id, *seen in runs})
        self._tell_orders({(worker_id, run_id): tuple(seen) for worker_id, run_id, *seen in orders})

    def _tell_runs(self, watched: list[str], seen: dict[str, tuple[object, ...]]) -> None:
        before, self._runs = self._runs, {run_id: seen.get(run_id) for run_id in watched}
        for run_id, now in self._runs.items():
            if run_id not in before or before[run_id] != now:
                self._hub.runs.tell(run_id)

    def _tell_orders(self, seen: dict[tuple[str, str], tuple[object, ...]]) -> None:
        before, self._orders = self._orders, seen
        for (worker_id, run_id), now in seen.items():
            if before.get((worker_id, run_id)) != now:
                self._hub.orders.tell(worker_id, run_id)
