"""A store in memory: for tests, and for a server that is to forget (`store.url = "memory:"`).

Several workers may share one `MemoryDatabase`, as processes share a database. Nothing in here waits, so that a
transaction is never seen half done; the rules refuse before they write, so that none has to be undone.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

from headwater.clock import Clock
from headwater.errors import StoreError
from headwater.events import make_id
from headwater.lifecycle import RunState
from headwater.records import Blob, Key, Worker
from headwater.store.engine import Engine
from headwater.store.engine.core import fenced, lost, slice_of
from headwater.store.memory.runs import Owned
from headwater.store.memory.sessions import MemorySessions
from headwater.store.news import Hub, News
from headwater.store.results import Adopted, Batch, LogSlice
from headwater.store.tables import Tables


class MemoryTables(MemorySessions):
    exclusive = True

    def __init__(self) -> None:
        super().__init__()
        self._blobs: dict[Owned, tuple[Blob, float]] = {}
        self._keys: dict[str, Key] = {}
        self._workers: dict[str, Worker] = {}
        self._following: dict[str, set[str]] = {}
        """Runs, by the worker at which they are followed."""

    async def blob(self, owner: str, hash: str) -> Blob | None:
        found = self._blobs.get((owner, hash))
        return found and found[0]

    async def put_blob(self, owner: str, blob: Blob, at: float) -> None:
        self._blobs[owner, blob.hash] = (blob, at)

    async def drop_blobs(self, unused_since: float) -> None:
        shown = {
            (owner, hash)
            for (owner, _), messages in self._messages.items()
            for message in messages.values()
            for hash in message.blobs
        }
        shown |= {
            (entry.run.owner, hash)
            for entry in self._queue.values()
            for message in entry.messages
            for hash in message.blobs
        }
        kept = {at: found for at, found in self._blobs.items() if at in shown or found[1] > unused_since}
        self._blobs = kept

    async def rename_owner(self, owner: str, of: str) -> Adopted:
        adopted = await super().rename_owner(owner, of)
        for hash in [hash for at, hash in self._blobs if at == of]:
            self._blobs[owner, hash] = self._blobs[of, hash]
            if not adopted.left:
                # What stays may show any of them.
                del self._blobs[of, hash]
        return adopted

    async def key(self, hash: str) -> Key | None:
        return next((key for key in self._keys.values() if key.hash == hash), None)

    async def keys(self, owner: str | None) -> list[Key]:
        return [key for key in self._keys.values() if owner in (None, key.owner)]

    async def put_key(self, key: Key) -> None:
        self._keys[key.id] = key

    async def worker(self, worker_id: str) -> Worker | None:
        return self._workers.get(worker_id)

    # A writer is alone.
    hold_worker = lock_worker = worker

    async def workers(self) -> list[Worker]:
        return list(self._workers.values())

    async def put_worker(self, worker: Worker) -> None:
        self._workers[worker.id] = worker

    async def drop_worker(self, worker_id: str) -> None:
        self._workers.pop(worker_id, None)
        self._following.pop(worker_id, None)

    async def put_following(self, worker_id: str, new: Collection[str], gone: Collection[str]) -> None:
        self._following[worker_id] = self._following.get(worker_id, set()).union(new).difference(gone)

    async def followed(self, worker_id: str) -> list[str]:
        living = [worker.id for worker in self._workers.values() if worker.id != worker_id and not worker.fenced]
        elsewhere = set().union(*(self._following.get(other, ()) for other in living))
        return [run.id for run in await self.running(worker_id) if run.id in elsewhere]


class MemoryDatabase(MemoryTables):
    alone = False
    at_once = True

    def __init__(self) -> None:
        super().__init__()
        self._hubs: list[Hub] = []

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Tables]:
        yield self

    writing = reading

    def commit(self, worker_id: str, batches: Sequence[Batch]) -> Mapping[str, StoreError]:
        worker = self._workers.get(worker_id)
        if worker is None or worker.fenced:
            raise fenced(worker_id)
        troubles: dict[str, StoreError] = {}
        for batch in batches:
            run = self._open.get(batch.run_id)
            if run is None or run.state is not RunState.RUNNING or run.worker_id != worker_id:
                troubles[batch.run_id] = lost(batch.run_id)
            else:
                self._logs.setdefault(batch.run_id, []).append(batch)
        return troubles

    async def slice(self, run_id: str, after: int, limit_bytes: int) -> LogSlice | None:
        return await slice_of(self, run_id, after, limit_bytes)

    def publish(self, news: News) -> None:
        for hub in tuple(self._hubs):
            hub.publish(news)

    async def index(self) -> None:
        """Search looks at the messages themselves."""

    async def forget(self) -> None:
        """They are gone."""

    def attach(self, hub: Hub) -> None:
        self._hubs.append(hub)

    async def close(self, hub: Hub) -> None:
        self._hubs.remove(hub)


async def open_memory(
    database: MemoryDatabase, *, address: str, clock: Clock, entropy: Callable[[int], bytes]
) -> Engine:
    """A worker on that database."""
    store = Engine(database, make_id("wrk", int(clock.unix_s() * 1000), entropy(16)), clock, entropy)
    await store.join(address)
    return store
