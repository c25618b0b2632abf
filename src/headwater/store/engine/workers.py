"""Workers that come and go, what is found of those that went without a word, and what is cleared away."""

import asyncio
from typing import Final

from msgspec.structs import replace

from headwater.errors import StoreError
from headwater.records import Run, Worker
from headwater.store.engine.runs import RunEngine
from headwater.store.rules import runs, sessions

LEASE_S: Final = 15.0
"""A worker that was not heard of for so long is dead, where no OS lock can say."""
BLOB_UNUSED_S: Final = 86_400.0
"""For so long a blob may wait for the message that shows it."""
TIDIED_AT_ONCE: Final = 500
"""Logs that are dropped by one call."""


class WorkerEngine(RunEngine):
    async def join(self, address: str, *, visiting: bool = False) -> None:
        """Become one of the workers. Before that, nothing can be written."""
        now = self._clock.unix_s()
        me = Worker(id=self.worker_id, address=address, joined_at=now, beat_at=now, visiting=visiting)
        async with self._database.writing() as tables:
            await tables.put_worker(me)

    async def beat(self) -> None:
        async with self._write() as tx:
            await tx.tables.put_worker(replace(tx.me, beat_at=tx.now))

    async def workers(self) -> tuple[Worker, ...]:
        async with self._database.reading() as tables:
            return tuple(await tables.workers())

    async def fence_dead(self) -> tuple[Worker, ...]:
        dead: list[Worker] = []
        async with self._write() as tx:
            for worker in await tx.tables.workers():
                dead_for_sure = self._database.alone and not worker.visiting
                silent = worker.beat_at < tx.now - LEASE_S
                if worker.id != self.worker_id and not worker.fenced and (dead_for_sure or silent):
                    dead.append(replace(worker, fenced=True))
                    await tx.tables.put_worker(dead[-1])
        return tuple(dead)

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
        async with self._write() as tx:
            await tx.tables.drop_reservations(tx.now - runs.RESERVED_S)
            await tx.tables.drop_blobs(tx.now - BLOB_UNUSED_S)
            for worker in await tx.tables.workers():
                if worker.fenced and not await tx.tables.running(worker.id):
                    await tx.tables.drop_worker(worker.id)
            old = await tx.tables.droppable(tx.now - keep_logs_s, TIDIED_AT_ONCE)
        await self._database.index()
        for run in old:
            # One at a time, so that nobody waits for long.
            async with self._write() as tx:
                await tx.tables.drop_log(run.id)
                await tx.tables.put_run(replace(run, log_dropped=True))
                tx.news.of_run(run)
            await asyncio.sleep(0)
        return len(old)

    async def check(self) -> None:
        await self.beat()

    async def close(self) -> None:
        self._writer.flush()
        if self._noting is not None:
            self._noting.cancel()
        try:
            await self._write_notes()
            async with self._write() as tx:
                await tx.tables.put_worker(replace(tx.me, fenced=True))
        except StoreError as error:
            if error.trouble != "fenced":
                raise
        finally:
            self._database.close(self._hub)
