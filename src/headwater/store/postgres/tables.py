"""All tables: those of runs and sessions, and blobs, keys and workers; what search has yet to learn."""

from collections.abc import Collection
from typing import Final

from headwater.records import Blob, Key, Worker
from headwater.store.postgres.arrays import texts
from headwater.store.postgres.sessions import PostgresSessions
from headwater.store.postgres.words import vector_of
from headwater.store.results import Adopted
from headwater.store.rows import decode_key, decode_message, decode_worker, encode
from headwater.store.words import text_of

INDEXED_AT_ONCE: Final = 50
"""Messages that search learns of in one transaction."""


class PostgresTables(PostgresSessions):
    exclusive = False

    async def blob(self, owner: str, hash: str) -> Blob | None:
        row = await self._one(
            """SELECT hash, media_type, data FROM headwater.blob JOIN headwater.blob_owner USING (hash)
            WHERE owner = %s AND hash = %s""",
            (owner, hash),
        )
        return None if row is None else Blob(*row)

    async def put_blob(self, owner: str, blob: Blob, at: float) -> None:
        # One that is there must not be dropped before it is known whose it is now.
        await self._lock("blobs", shared=True)
        await self._do(
            "INSERT INTO headwater.blob VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (blob.hash, blob.media_type, blob.data),
        )
        await self._do(
            """INSERT INTO headwater.blob_owner VALUES (%s, %s, %s)
            ON CONFLICT (owner, hash) DO UPDATE SET at = excluded.at""",
            (owner, blob.hash, at),
        )

    async def drop_blobs(self, unused_since: float) -> None:
        await self._lock("blobs")
        await self._do(
            """DELETE FROM headwater.blob_owner WHERE at <= %s AND NOT EXISTS (
                SELECT 1 FROM headwater.shown JOIN headwater.session ON session.n = shown.session
                WHERE shown.hash = blob_owner.hash AND session.owner = blob_owner.owner)""",
            (unused_since,),
        )
        await self._do(
            """DELETE FROM headwater.blob
            WHERE NOT EXISTS (SELECT 1 FROM headwater.blob_owner WHERE blob_owner.hash = blob.hash)"""
        )

    async def rename_owner(self, owner: str, of: str) -> Adopted:
        adopted = await super().rename_owner(owner, of)
        await self._do(
            """INSERT INTO headwater.blob_owner SELECT %s, hash, at FROM headwater.blob_owner WHERE owner = %s
            ON CONFLICT (owner, hash) DO UPDATE SET at = excluded.at""",
            (owner, of),
        )
        if not adopted.left:
            # What stays may show any of them.
            await self._do("DELETE FROM headwater.blob_owner WHERE owner = %s", (of,))
        return adopted

    async def key(self, hash: str) -> Key | None:
        row = await self._one("SELECT record FROM headwater.key WHERE hash = %s", (hash,))
        return None if row is None else decode_key(row[0])

    async def keys(self, owner: str | None) -> list[Key]:
        rows = await self._all(
            "SELECT record FROM headwater.key WHERE %s::text IS NULL OR owner = %s ORDER BY n", (owner, owner)
        )
        return [decode_key(record) for (record,) in rows]

    async def put_key(self, key: Key) -> None:
        await self._do(
            """INSERT INTO headwater.key (id, hash, owner, record) VALUES (%s, %s, %s, %s)
            ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, owner = excluded.owner, record = excluded.record""",
            (key.id, key.hash, key.owner, encode(key)),
        )

    # -------------------------------------------------------------- workers

    async def worker(self, worker_id: str) -> Worker | None:
        return await self._worker(worker_id, "")

    async def hold_worker(self, worker_id: str) -> Worker | None:
        # A beat does not wait for it: that changes no key. To declare it dead takes the lock that does.
        return await self._worker(worker_id, "FOR KEY SHARE")

    async def lock_worker(self, worker_id: str) -> Worker | None:
        return await self._worker(worker_id, "FOR UPDATE")

    async def _worker(self, worker_id: str, lock: str) -> Worker | None:
        row = await self._one(f"SELECT record FROM headwater.worker WHERE id = %s {lock}", (worker_id,))
        return None if row is None else decode_worker(row[0])

    async def workers(self) -> list[Worker]:
        rows = await self._all("SELECT record FROM headwater.worker ORDER BY n")
        return [decode_worker(record) for (record,) in rows]

    async def put_worker(self, worker: Worker) -> None:
        await self._do(
            """INSERT INTO headwater.worker (id, fenced, record) VALUES (%s, %s, %s)
            ON CONFLICT (id) DO UPDATE SET fenced = excluded.fenced, record = excluded.record""",
            (worker.id, worker.fenced, encode(worker)),
        )

    async def drop_worker(self, worker_id: str) -> None:
        await self._do("DELETE FROM headwater.following WHERE worker_id = %s", (worker_id,))
        await self._do("DELETE FROM headwater.worker WHERE id = %s", (worker_id,))

    async def put_following(self, worker_id: str, new: Collection[str], gone: Collection[str]) -> None:
        await self._do(
            "INSERT INTO headwater.following SELECT %s, unnest(%s) ON CONFLICT DO NOTHING",
            (worker_id, texts(sorted(new))),
        )
        await self._do(
            "DELETE FROM headwater.following WHERE worker_id = %s AND run_id = ANY (%s)",
            (worker_id, texts(sorted(gone))),
        )

    async def followed(self, worker_id: str) -> list[str]:
        rows = await self._all(
            """SELECT id FROM headwater.run WHERE state = 'running' AND state <> 'ended' AND worker_id = %s AND EXISTS (
                SELECT FROM headwater.following JOIN headwater.worker ON worker.id = following.worker_id
                WHERE following.run_id = run.id AND following.worker_id <> %s AND NOT worker.fenced)""",
            (worker_id, worker_id),
        )
        return [run_id for (run_id,) in rows]

    # --------------------------------------------------------------- search

    async def index_some(self) -> int:
        """Let search learn of some messages; how many that were."""
        await self._lock("index")
        rows = await self._all(
            """DELETE FROM headwater.unindexed WHERE message IN (
                SELECT message FROM headwater.unindexed ORDER BY message LIMIT %s)
            RETURNING message, (SELECT record FROM headwater.message WHERE n = unindexed.message)""",
            (INDEXED_AT_ONCE,),
        )
        for n, record in rows:
            words = vector_of(text_of(decode_message(record).message))
            await self._do("INSERT INTO headwater.found VALUES (%s, %s::tsvector)", (n, words))
        return len(rows)
