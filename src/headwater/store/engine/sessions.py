"""Sessions, comparisons, blobs and keys."""

from collections.abc import Callable, Sequence

from headwater.conversation import Request
from headwater.records import (
    Blob,
    Group,
    IdempotencyKey,
    Key,
    QueueEntry,
    SearchHit,
    Session,
    SessionMessage,
    Transcript,
)
from headwater.store.base import Unwatch
from headwater.store.engine.core import Core
from headwater.store.results import (
    Adopted,
    Busy,
    Changed,
    GroupList,
    KeyMismatch,
    Missing,
    Page,
    Replayed,
    SessionChange,
    SessionList,
    Started,
)
from headwater.store.rules import sessions


class SessionEngine(Core):
    async def create_session(self, session: Session) -> bool:
        return await self._write(lambda tx: sessions.create(tx, session))

    async def session(self, owner: str, session_id: str) -> Session | None:
        async with self._database.reading() as tables:
            return await tables.session(owner, session_id)

    async def sessions(self, owner: str, page: Page = Page()) -> SessionList:
        async with self._database.reading() as tables:
            found = await tables.sessions(owner, page)
        last = (found[-1].updated_at, found[-1].id) if len(found) == page.limit else None
        return SessionList(tuple(found), last)

    async def transcript(self, owner: str, session_id: str) -> Transcript | None:
        async with self._database.reading() as tables:
            return await sessions.transcript(tables, owner, session_id)

    async def change_session(self, owner: str, session_id: str, change: SessionChange) -> Session | Missing:
        return await self._write(lambda tx: sessions.change(tx, owner, session_id, change))

    async def delete_session(self, owner: str, session_id: str) -> Busy | Missing | None:
        return await self._write(lambda tx: sessions.delete(tx, owner, session_id))

    async def fork(self, owner: str, session_id: str, message_id: str, new_id: str) -> Session | Missing:
        return await self._write(lambda tx: sessions.fork(tx, owner, session_id, message_id, new_id))

    async def search(self, owner: str, words: str, limit: int = 20) -> tuple[SearchHit, ...]:
        await self._database.index()
        return tuple(await self._database.search(owner, words, limit))

    def watch_owner(self, owner: str, told: Callable[[Changed], None]) -> Unwatch:
        return self._hub.owners.add(owner, told)

    # ---------------------------------------------------------------- queue

    async def reorder_queue(
        self, owner: str, session_id: str, run_ids: Sequence[str]
    ) -> tuple[QueueEntry, ...] | Missing:
        return await self._write(lambda tx: sessions.reorder(tx, owner, session_id, run_ids))

    async def edit_queued(
        self, owner: str, run_id: str, messages: tuple[SessionMessage, ...], request: Request
    ) -> QueueEntry | Missing:
        return await self._write(lambda tx: sessions.edit_queued(tx, owner, run_id, messages, request))

    async def resume_queue(self, owner: str, session_id: str) -> Started | Missing | None:
        result = await self._write(lambda tx: sessions.resume(tx, owner, session_id))
        if isinstance(result, Started):
            self._writer.own(result.run.id, -1)
        return result

    # ------------------------------------------------------- groups and blobs

    async def create_group(
        self, group: Group, panes: tuple[Session, ...], key: IdempotencyKey | None = None
    ) -> Replayed | KeyMismatch | None:
        return await self._write(lambda tx: sessions.create_group(tx, group, panes, key))

    async def group(self, owner: str, group_id: str) -> Group | None:
        async with self._database.reading() as tables:
            return await tables.group(owner, group_id)

    async def groups(self, owner: str, page: Page = Page()) -> GroupList:
        async with self._database.reading() as tables:
            found = await sessions.compared(tables, owner, page)
        last = found[-1].group if len(found) == page.limit else None
        return GroupList(tuple(found), None if last is None else (last.created_at, last.id))

    async def delete_group(self, owner: str, group_id: str) -> Busy | Missing | None:
        return await self._write(lambda tx: sessions.delete_group(tx, owner, group_id))

    async def pick(self, owner: str, group_id: str, session_id: str) -> Group | Missing:
        return await self._write(lambda tx: sessions.pick(tx, owner, group_id, session_id))

    async def put_blob(self, owner: str, blob: Blob) -> None:
        await self._write(lambda tx: tx.tables.put_blob(owner, blob, tx.now))

    async def blob(self, owner: str, hash: str) -> Blob | None:
        return await self._database.blob(owner, hash)

    # ----------------------------------------------------------------- keys

    async def put_key(self, key: Key) -> None:
        await self._write(lambda tx: tx.tables.put_key(key))

    async def key(self, hash: str) -> Key | None:
        async with self._database.reading() as tables:
            return await tables.key(hash)

    async def keys(self, owner: str | None = None) -> tuple[Key, ...]:
        async with self._database.reading() as tables:
            return tuple(await tables.keys(owner))

    async def adopt(self, owner: str, of: str) -> Adopted:
        if owner == of:
            return Adopted(0)
        return await self._write(lambda tx: tx.tables.rename_owner(owner, of))
