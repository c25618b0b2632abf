"""The file as an engine: one connection that writes, one that reads, both on the event loop.

A commit is shorter than a switch to a thread and back (docs/decisions/0001), and so are the lookups. A read
transaction lasts as long as one question. Searches and blobs, which take milliseconds, are read on threads.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

import apsw

from headwater.errors import StoreError
from headwater.records import Blob, Key, SearchHit, Worker
from headwater.store.engine.core import fenced, lost, slice_of
from headwater.store.framing import pack
from headwater.store.news import Hub, News
from headwater.store.results import Batch, LogSlice
from headwater.store.rows import decode_key, decode_worker, encode
from headwater.store.sqlite.connection import Durability, connect, prepare, translated, translation
from headwater.store.sqlite.lock import FileLock
from headwater.store.sqlite.schema import is_behind, migrate
from headwater.store.sqlite.search import forget_some, index_some, read_blob, search
from headwater.store.sqlite.sessions import SqliteSessions
from headwater.store.tables import Tables

P = ParamSpec("P")
T = TypeVar("T")

_KEEP: Final = "INSERT OR IGNORE INTO batch VALUES (?, ?, ?, ?)"
_KEPT: Final = "SELECT 1 FROM batch WHERE run = ? AND first_seq = ? AND last_seq = ? AND data = ?"
_GOES_ON: Final = "SELECT n FROM run WHERE id = ? AND state = 'running' AND worker_id = ?"
_ALIVE: Final = "SELECT 1 FROM worker WHERE id = ? AND NOT fenced"


class SqliteTables(SqliteSessions):
    exclusive = True

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self._worker: tuple[bytes, Worker] | None = None
        """The last one that was read: every transaction asks for its own."""
        self.seen: object = None
        """For whom, and of which version of the file, `rows` were looked up; None: they are to be looked up anew."""

    async def put_blob(self, owner: str, blob: Blob, at: float) -> None:
        self._sql("INSERT OR IGNORE INTO blob VALUES (?, ?, ?)", (blob.hash, blob.media_type, blob.data))
        self._sql("REPLACE INTO blob_owner VALUES (?, ?, ?)", (owner, blob.hash, at))

    async def drop_blobs(self, unused_since: float) -> None:
        self._sql(
            """DELETE FROM blob_owner WHERE at <= ? AND NOT EXISTS (
                SELECT 1 FROM shown JOIN session ON session.n = shown.session
                WHERE shown.hash = blob_owner.hash AND session.owner = blob_owner.owner)""",
            (unused_since,),
        )
        self._sql("DELETE FROM blob WHERE hash NOT IN (SELECT hash FROM blob_owner)")

    async def key(self, hash: str) -> Key | None:
        row = self._sql("SELECT record FROM key WHERE hash = ?", (hash,)).fetchone()
        return None if row is None else decode_key(row[0])

    async def keys(self, owner: str | None) -> list[Key]:
        rows = self._sql("SELECT record FROM key WHERE ?1 IS NULL OR owner = ?1 ORDER BY rowid", (owner,))
        return [decode_key(record) for (record,) in rows]

    async def put_key(self, key: Key) -> None:
        self._sql("REPLACE INTO key VALUES (?, ?, ?, ?)", (key.id, key.hash, key.owner, encode(key)))

    async def worker(self, worker_id: str) -> Worker | None:
        row = self._sql("SELECT record FROM worker WHERE id = ?", (worker_id,)).fetchone()
        if row is None:
            return None
        if self._worker is None or self._worker[0] != row[0]:
            self._worker = (row[0], decode_worker(row[0]))
        return self._worker[1]

    # A writer is alone.
    hold_worker = lock_worker = worker

    async def workers(self) -> list[Worker]:
        return [decode_worker(record) for (record,) in self._sql("SELECT record FROM worker ORDER BY rowid")]

    async def put_worker(self, worker: Worker) -> None:
        self.seen = None
        self._sql(
            """INSERT INTO worker VALUES (?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET fenced = excluded.fenced, record = excluded.record""",
            (worker.id, worker.fenced, encode(worker)),
        )

    async def drop_worker(self, worker_id: str) -> None:
        self.seen = None
        self._sql("DELETE FROM worker WHERE id = ?", (worker_id,))

    async def put_following(self, worker_id: str, new: Collection[str], gone: Collection[str]) -> None:
        """There is one worker, and who only visits follows nothing."""

    async def followed(self, worker_id: str) -> list[str]:
        return []


class _Transaction:
    """All that is within, or nothing of it. What SQLite raises there is translated."""

    # Not by `contextmanager`, of which this would be two: there is one for every commit.
    __slots__ = ("_begin", "_connection", "_path", "_tables")

    def __init__(self, connection: apsw.Connection, begin: str, path: str, tables: SqliteTables) -> None:
        self._connection = connection
        self._begin = begin
        self._path = path
        self._tables = tables

    async def __aenter__(self) -> Tables:
        self.__enter__()
        return self._tables

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, where: object) -> None:
        self.__exit__(kind, error, where)

    def __enter__(self) -> None:
        try:
            self._connection.execute(self._begin)
        except apsw.Error as error:
            raise translation(error, self._path) from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            if error is None:
                self._connection.execute("COMMIT")
        except apsw.Error as refused:
            error = refused
        # Some errors (a full disk) have undone it already.
        if error is not None and self._connection.in_transaction:
            with translated(self._path):
                self._connection.execute("ROLLBACK")
        if isinstance(error, apsw.Error):
            raise translation(error, self._path) from error


class SqliteDatabase:
    at_once = True

    def __init__(self, path: Path, *, address: str, durability: Durability, beside: bool = False) -> None:
        """`beside`: while a server has it, for a command that reads or changes keys, say. It takes no lock."""
        self._path = str(path)
        prepare(path)
        self._lock = None if beside else FileLock(path, address)
        self.alone = not beside
        try:
            with translated(self._path):
                self._writer = connect(path, durability)
                if beside and is_behind(self._writer):
                    # Never under a server of an earlier version: it could not open the file again.
                    self._lock = FileLock(path, address)
                migrate(self._writer, self._path)
                if beside:
                    self._unlock()
                self._reader = connect(path, durability)
        except BaseException:
            self._unlock()
            raise
        self._writing = SqliteTables(self._writer)
        self._reading = SqliteTables(self._reader)
        self._hubs: list[Hub] = []

    def reading(self) -> _Transaction:
        return _Transaction(self._reader, "BEGIN", self._path, self._reading)

    def writing(self) -> _Transaction:
        return _Transaction(self._writer, "BEGIN IMMEDIATE", self._path, self._writing)

    def commit(self, worker_id: str, batches: Sequence[Batch]) -> Mapping[str, StoreError]:
        writer, tables = self._writer, self._writing
        with self.writing():
            self._look(worker_id, batches)
            at = tables.rows
            rows = [
                (at[batch.run_id], batch.first_seq, batch.first_seq + len(batch.entries) - 1, pack(batch.entries))
                for batch in batches
                if batch.run_id in at
            ]
            before = writer.total_changes()
            writer.executemany(_KEEP, rows)
            if len(batches) == len(rows) == writer.total_changes() - before:
                return {}
            # One that was lost harms only itself.
            kept = {row[0] for row in rows if writer.execute(_KEPT, row).fetchone()}
            return {batch.run_id: lost(batch.run_id) for batch in batches if at.get(batch.run_id) not in kept}

    def _look(self, worker_id: str, batches: Sequence[Batch]) -> None:
        """The worker is alive, and which of the runs go on: once, until another connection has written to the file."""
        writer, tables = self._writer, self._writing
        seen = (worker_id, writer.execute("PRAGMA data_version").fetchone())
        if seen != tables.seen:
            tables.rows.clear()
            if not writer.execute(_ALIVE, (worker_id,)).fetchone():
                raise fenced(worker_id)
            tables.seen = seen
        for batch in batches:
            if batch.run_id not in tables.rows:
                row = writer.execute(_GOES_ON, (batch.run_id, worker_id)).fetchone()
                if row is not None:
                    tables.rows[batch.run_id] = row[0]

    async def slice(self, run_id: str, after: int, limit_bytes: int) -> LogSlice | None:
        async with self.reading() as tables:
            return await slice_of(tables, run_id, after, limit_bytes)

    def publish(self, news: News) -> None:
        for hub in self._hubs:
            hub.publish(news)

    async def index(self) -> None:
        while True:
            with self.writing():
                if not index_some(self._writer):
                    return
            await asyncio.sleep(0)

    async def forget(self) -> None:
        going_on = False
        while True:
            with self.writing():
                if not forget_some(self._writer, going_on=going_on):
                    return
            going_on = True
            await asyncio.sleep(0)

    async def search(self, owner: str, words: str, limit: int) -> list[SearchHit]:
        return await asyncio.to_thread(self._apart, search, owner, words, limit)

    async def blob(self, owner: str, hash: str) -> Blob | None:
        return await asyncio.to_thread(self._apart, read_blob, owner, hash)

    def _apart(self, question: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """For what takes milliseconds: on a thread, with a connection of its own."""
        with translated(self._path):
            connection = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READONLY)
            try:
                return question(connection, *args, **kwargs)
            finally:
                connection.close()

    def attach(self, hub: Hub) -> None:
        self._hubs.append(hub)

    async def close(self, hub: Hub) -> None:
        self._hubs.remove(hub)
        self._reader.close()
        self._writer.close()
        self._unlock()

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()
