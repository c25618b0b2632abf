"""Workers that come and go, what is found of those that went without a word, and what is cleared away."""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from headwater.clock import Clock
from headwater.errors import StoreError
from headwater.records import Run, Worker
from headwater.store.engine.runs import RunEngine
from headwater.store.rules import runs, sessions
from headwater.store.tables import Database, Transaction

LEASE_S: Final = 15.0
"""A worker that was not heard of for so long is dead, where no OS lock can say."""
BLOB_UNUSED_S: Final = 86_400.0
"""For so long a blob may wait for the message that shows it."""
TIDIED_AT_ONCE: Final = 500
"""Logs that are dropped by one call."""


class WorkerEngine(RunEngine):
    def __init__(self, database: Database, worker_id: str, clock: Clock, entropy: Callable[[int], bytes]) -> None:
        super().__init__(database, worker_id, clock, entropy)
        self._beat_s = self._steady_s = clock.now_s()
        """When this worker was heard of last, and since when without a gap."""

    async def join(self, address: str, *, visiting: bool = False) -> None:
        """Become one of the workers. Before that, nothing can be written."""
        now = self._clock.unix_s()
        me = Worker(id=self.worker_id, address=address, joined_at=now, beat_at=now, visiting=visiting)
        async with self._database.writing() as tables:
            await tables.put_worker(me)

    async def beat(self) -> None:
        await self._write(lambda tx: tx.tables.put_worker(replace(tx.me, beat_at=tx.now)))
        now_s = self._clock.now_s()
        if now_s - self._beat_s > LEASE_S:
            self._steady_s = now_s
        self._beat_s = now_s

    async def workers(self) -> tuple[Worker, ...]:
        async with self._database.reading() as tables:
            return tuple(await tables.workers())

    async def fence_dead(self) -> tuple[Worker, ...]:
        # Who was not heard of itself can't tell: perhaps the store was away, and nobody could be.
        steady = self._clock.now_s() - self._steady_s >= LEASE_S

        def dead(worker: Worker, now: float) -> bool:
            for_sure = self._database.alone and not worker.visiting
            silent = steady and worker.beat_at < now - LEASE_S
            return worker.id != self.worker_id and not worker.fenced and (for_sure or silent)

        async def work(tx: Transaction) -> tuple[Worker, ...]:
            fenced: list[Worker] = []
            for found in await tx.tables.workers():
                # Looked at again once it is locked: it may have been heard of meanwhile.
                if dead(found, tx.now) and (worker := await tx.tables.lock_worker(found.id)) and dead(worker, tx.now):
                    fenced.append(replace(worker, fenced=True))
                    await tx.tables.put_worker(fenced[-1])
            return tuple(fenced)

        return await self._write(work)

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

    async def tidy(self, keep_logs_s: float) -> int:
        async def work(tx: Transaction) -> list[Run]:
            await tx.tables.drop_reservations(tx.now - runs.RESERVED_S)
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
        await self.beat()

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
