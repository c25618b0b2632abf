"""What every part of a store stands on: the transactions of one worker.

It decides nothing but when to look whether this worker was fenced: at the beginning of every write.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from headwater.clock import Clock
from headwater.errors import StoreError
from headwater.store.news import Hub, News
from headwater.store.results import Batch
from headwater.store.tables import Database, Transaction
from headwater.store.writer import GroupWriter


class Core:
    def __init__(self, database: Database, worker_id: str, clock: Clock, entropy: Callable[[int], bytes]) -> None:
        self.worker_id = worker_id
        self._database = database
        self._clock = clock
        self._entropy = entropy
        self._hub = Hub()
        self._writer = GroupWriter(self._commit, self._tell)
        database.attach(self._hub)

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[Transaction]:
        async with self._database.writing() as tables:
            me = await tables.worker(self.worker_id)
            if me is None or me.fenced:
                raise fenced(self.worker_id)
            tx = Transaction(tables, me, self._clock.unix_s(), self._entropy)
            yield tx
        if tx.news:
            self._database.publish(tx.news)

    def _commit(self, batches: Sequence[Batch]) -> Mapping[str, StoreError]:
        return self._database.commit(self.worker_id, batches)

    def _tell(self, run_ids: Sequence[str]) -> None:
        self._database.publish(News(list(run_ids)))


def fenced(worker_id: str) -> StoreError:
    return StoreError(
        f"worker {worker_id} was declared dead by another one and may write nothing more; restart it", trouble="fenced"
    )


def lost(run_id: str) -> StoreError:
    return StoreError(f"{run_id} is no longer a running run of this worker", trouble="lost")
