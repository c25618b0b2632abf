"""What every part of a store stands on: the transactions of one worker.

It decides when to look whether this worker was fenced, at the beginning of every write, and that a write which an
engine has undone by no fault of its own is done again.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from headwater.clock import Clock
from headwater.errors import StoreError
from headwater.store.news import Hub, News
from headwater.store.results import LogSlice
from headwater.store.tables import Database, Tables, Transaction, Undone
from headwater.store.writer import GroupWriter

T = TypeVar("T")

TRIES: Final = 4
"""Of a write. Each is a transaction of its own, of which nothing is left if it is undone."""


class Core:
    def __init__(self, database: Database, worker_id: str, clock: Clock, entropy: Callable[[int], bytes]) -> None:
        self.worker_id = worker_id
        self._database = database
        self._clock = clock
        self._entropy = entropy
        self._hub = Hub()
        self._writer = GroupWriter(lambda batches: database.commit(worker_id, batches), self._tell)
        database.attach(self._hub)

    def watch_commits(self, told: Callable[[float], None]) -> None:
        self._writer.told_of_commit = told

    async def _write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """What `work` does is one transaction, and may be done again from its beginning."""
        for _ in range(TRIES - 1):
            try:
                return await self._try(work)
            except Undone:
                continue
        return await self._try(work)

    async def _try(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self._database.writing() as tables:
            me = await tables.hold_worker(self.worker_id)
            if me is None or me.fenced:
                raise fenced(self.worker_id)
            tx = Transaction(tables, me, self._clock.unix_s(), self._entropy)
            result = await work(tx)
        if tx.news:
            self._database.publish(tx.news)
        return result

    def _tell(self, run_ids: Sequence[str]) -> None:
        self._database.publish(News(list(run_ids)))


async def slice_of(tables: Tables, run_id: str, after: int, limit_bytes: int) -> LogSlice | None:
    """For engines that have no shorter way."""
    run = await tables.run(run_id)
    if run is None:
        return None
    last_seq = run.last_seq if run.outcome is not None else await tables.last_seq(run_id)
    batches = await tables.batches(run_id, after, limit_bytes) if after < last_seq else []
    return LogSlice(run, tuple(batches), last_seq)


def fenced(worker_id: str) -> StoreError:
    return StoreError(
        f"worker {worker_id} was declared dead by another one and may write nothing more", trouble="fenced"
    )


def lost(run_id: str) -> StoreError:
    return StoreError(f"{run_id} is no longer a running run of this worker", trouble="lost")
