"""Workers that come and go, what is found of those that went without a word, and what is cleared away."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final

from msgspec.structs import replace

from headwater.clock import Clock
from headwater.errors import StoreError
from headwater.records import KEYS_S, Run, Worker
from headwater.store.engine.core import fenced
from headwater.store.engine.runs import RunEngine
from headwater.store.rules import runs, sessions
from headwater.store.tables import Database, Transaction

LEASE_S: Final = 15.0
"""A worker that was not heard of for so long is dead, where no OS lock can say. A default."""
BLOB_UNUSED_S: Final = 86_400.0
"""For so long a blob may wait for the message that shows it."""
TIDIED_AT_ONCE: Final = 500
"""Logs that are dropped by one call."""


class WorkerEngine(RunEngine):
    def __init__(
        self,
        database: Database,
        worker_id: str,
        clock: Clock,
        entropy: Callable[[int], bytes],
        lease_s: float = LEASE_S,
    ) -> None:
        super().__init__(database, worker_id, clock, entropy)
        self._lease_s = lease_s
        self._beat_s = clock.now_s()
        """When this worker was heard of last."""
        self._following: frozenset[str] = frozenset()
        """What others were told of."""
        self._heard: dict[str, tuple[float, float]] = {}
        """The last beat of each of the others, and since when it has been that one: by this worker's own clock."""

    async def join(self, address: str, *, visiting: bool = False) -> None:
        """Become one of the workers. Before that, nothing can be written."""
        now = self._clock.unix_s()
        me = Worker(id=self.worker_id, address=address, joined_at=now, beat_at=now, visiting=visiting)
        async with self._database.writing() as tables:
            await tables.put_worker(me)
            others = await tables.workers()
        self._hear(others)

    async def beat(self) -> None:
        if self._database.alone:
            # Nobody waits for it: that this process lives is for its lock to say. Nothing is written for it.
            await self._look_whether_fenced()
        else:
            await self._beat()

    async def _beat(self) -> None:
        async def work(tx: Transaction) -> list[Worker]:
            await tx.tables.put_worker(replace(tx.me, beat_at=tx.now))
            return await tx.tables.workers()

        others = await self._write(work)
        if self._silent():
            # Perhaps the store was away, and nobody could be heard of: everybody gets a lease to come back.
            self._heard.clear()
        self._beat_s = self._clock.now_s()
        self._hear(others)

    async def _look_whether_fenced(self) -> None:
        async with self._database.reading() as tables:
            me = await tables.worker(self.worker_id)
        if me is None or me.fenced:
            raise fenced(self.worker_id)

    def _silent(self) -> bool:
        return self._clock.now_s() - self._beat_s > self._lease_s

    def _hear(self, workers: Sequence[Worker]) -> None:
        """No clocks of two machines are compared: what counts is for how long here a beat has been the same."""
        now_s, before = self._clock.now_s(), self._heard
        self._heard = {}
        for worker in workers:
            beat_at, since_s = before.get(worker.id, (None, now_s))
            self._heard[worker.id] = (worker.beat_at, since_s if beat_at == worker.beat_at else now_s)

    async def workers(self) -> tuple[Worker, ...]:
        async with self._database.reading() as tables:
            return tuple(await tables.workers())

    async def fence_dead(self, known: Collection[str] = ()) -> tuple[Worker, ...]:
        workers = await self.workers()
        if not self._silent():
            # Who was not heard of itself can't tell.
            self._hear(workers)
        dead = [worker for worker in workers if self._dead(worker, known)]
        if not dead:
            return ()

        async def work(tx: Transaction) -> tuple[Worker, ...]:
            declared: list[Worker] = []
            for found in dead:
                # Looked at again once it is locked: it may have been heard of meanwhile.
                if (worker := await tx.tables.lock_worker(found.id)) and self._dead(worker, known):
                    declared.append(replace(worker, fenced=True))
                    await tx.tables.put_worker(declared[-1])
            return tuple(declared)

        return await self._write(work)

    def _dead(self, worker: Worker, known: Collection[str]) -> bool:
        if worker.id == self.worker_id or worker.fenced:
            return False
        if worker.id in known or (self._database.alone and not worker.visiting):
            return True
        beat_at, since_s = self._heard.get(worker.id, (None, 0.0))
        return beat_at == worker.beat_at and not self._silent() and self._clock.now_s() - since_s >= self._lease_s

    async def abandoned(self) -> tuple[Run, ...]:
        found: list[Run] = []
        async with self._database.reading() as tables:
            for worker in await tables.workers():
                if worker.fenced:
                    found += await tables.running(worker.id)
        return tuple(found)

    async def mine(self) -> tuple[Run, ...]:
        async with self._database.reading() as tables:
            return tuple(await tables.running(self.worker_id))

    async def ready(self) -> tuple[Run, ...]:
        async with self._database.reading() as tables:
            return tuple(await sessions.ready(tables, self._clock.unix_s()))

    async def tell_following(self) -> None:
        here = frozenset(self._hub.runs.watched())
        if self._database.alone or here == self._following:
            return
        new, gone = here - self._following, self._following - here
        await self._write(lambda tx: tx.tables.put_following(tx.worker_id, new, gone))
        self._following = here

    async def followed_elsewhere(self) -> frozenset[str]:
        if self._database.alone:
            return frozenset()
        async with self._database.reading() as tables:
            return frozenset(await tables.followed(self.worker_id))

    async def tidy(self, keep_logs_s: float, keep_keys_s: float = KEYS_S) -> int:
        async def work(tx: Transaction) -> list[Run]:
            await tx.tables.drop_reservations(tx.now - keep_keys_s)
            await tx.tables.drop_blobs(tx.now - BLOB_UNUSED_S)
            for worker in await tx.tables.workers():
                if worker.fenced and not await tx.tables.running(worker.id):
                    await tx.tables.drop_worker(worker.id)
            return await tx.tables.droppable(tx.now - keep_logs_s, TIDIED_AT_ONCE)

        old = await self._write(work)
        await self._database.index()
        await self._database.forget()
        dropped = 0
        for run in old:
            # One at a time, so that nobody waits for long.
            dropped += await self._write(lambda tx, run_id=run.id: runs.drop_log(tx, run_id))  # type: ignore[misc]
            await asyncio.sleep(0)
        return dropped

    async def check(self) -> None:
        await self._beat()

    async def close(self) -> None:
        await self._writer.settle_all()
        if self._noting is not None:
            self._noting.cancel()
        try:
            await self._write_notes()
            await self._write(_leave)
        except StoreError as error:
            if error.trouble != "fenced":
                raise
        finally:
            await self._database.close(self._hub)


async def _leave(tx: Transaction) -> None:
    await tx.tables.lock_worker(tx.me.id)
    await tx.tables.put_worker(replace(tx.me, fenced=True))
