"""Sessions, their messages, their queues and comparisons, in dictionaries."""

from collections.abc import Sequence

from msgspec.structs import replace

from headwater.records import (
    AtHead,
    Group,
    QueueEntry,
    Run,
    SearchHit,
    Session,
    SessionMessage,
    SessionNotice,
    Under,
)
from headwater.store.memory.runs import MemoryRuns, Owned
from headwater.store.results import Adopted, Page
from headwater.store.words import has_words, snippet, text_of


class MemorySessions(MemoryRuns):
    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[Owned, Session] = {}
        self._messages: dict[Owned, dict[str, SessionMessage]] = {}
        self._notices: dict[Owned, list[SessionNotice]] = {}
        self._queue: dict[str, QueueEntry] = {}
        self._groups: dict[Owned, Group] = {}

    async def session(self, owner: str, session_id: str) -> Session | None:
        return self._sessions.get((owner, session_id))

    lock_session = session

    async def put_session(self, session: Session) -> None:
        self._sessions[session.owner, session.id] = session

    async def sessions(self, owner: str, page: Page) -> list[Session]:
        found = [
            session
            for session in self._sessions.values()
            if session.owner == owner
            and not session.hidden
            and (page.before is None or (session.updated_at, session.id) < page.before)
        ]
        return sorted(found, key=lambda session: (session.updated_at, session.id), reverse=True)[: page.limit]

    async def delete_session(self, owner: str, session_id: str) -> None:
        self._sessions.pop((owner, session_id), None)
        self._messages.pop((owner, session_id), None)
        self._notices.pop((owner, session_id), None)
        for run in list(self._runs.values()):
            if (run.owner, run.session_id) == (owner, session_id):
                self._queue.pop(run.id, None)
                await self.delete_run(run.id)

    async def message(self, owner: str, session_id: str, message_id: str) -> SessionMessage | None:
        return self._messages.get((owner, session_id), {}).get(message_id)

    async def messages(self, owner: str, session_id: str) -> list[SessionMessage]:
        return list(self._messages.get((owner, session_id), {}).values())

    async def add_message(self, owner: str, session_id: str, message: SessionMessage) -> None:
        self._messages.setdefault((owner, session_id), {})[message.id] = message

    async def notices(self, owner: str, session_id: str) -> list[SessionNotice]:
        return list(self._notices.get((owner, session_id), ()))

    async def add_notice(self, owner: str, session_id: str, notice: SessionNotice) -> None:
        self._notices.setdefault((owner, session_id), []).append(notice)

    async def queue(self, owner: str, session_id: str) -> list[QueueEntry]:
        found = [
            replace(entry, run=self._runs[entry.run.id])
            for entry in self._queue.values()
            if (entry.run.owner, entry.run.session_id) == (owner, session_id)
        ]
        return sorted(found, key=lambda entry: entry.position)

    async def put_queued(
        self, run: Run, messages: tuple[SessionMessage, ...], place: AtHead | Under, position: int
    ) -> None:
        self._queue[run.id] = QueueEntry(run=run, messages=messages, place=place, position=position)

    async def drop_queued(self, run_id: str) -> None:
        self._queue.pop(run_id, None)

    async def group(self, owner: str, group_id: str) -> Group | None:
        return self._groups.get((owner, group_id))

    async def put_group(self, group: Group) -> None:
        self._groups[group.owner, group.id] = group

    async def groups(self, owner: str) -> list[Group]:
        return [group for group in self._groups.values() if group.owner == owner]

    async def delete_group(self, owner: str, group_id: str) -> None:
        del self._groups[owner, group_id]

    async def sessions_named(self, owner: str, session_ids: Sequence[str]) -> list[Session]:
        return [self._sessions[owner, id] for id in session_ids if (owner, id) in self._sessions]

    async def search(self, owner: str, words: str, limit: int) -> list[SearchHit]:
        hits = [
            SearchHit(
                session.id, message.id, session.title, snippet(text_of(message.message), words), message.created_at
            )
            for session in self._sessions.values()
            if session.owner == owner and not session.hidden
            for message in self._messages.get((owner, session.id), {}).values()
            if has_words(text_of(message.message), words)
        ]
        return sorted(hits, key=lambda hit: hit.created_at, reverse=True)[:limit]

    async def rename_owner(self, owner: str, of: str) -> Adopted:
        moved = [id for at, id in self._sessions if at == of and (owner, id) not in self._sessions]
        for id in moved:
            self._sessions[owner, id] = replace(self._sessions.pop((of, id)), owner=owner)
            self._messages[owner, id] = self._messages.pop((of, id), {})
            self._notices[owner, id] = self._notices.pop((of, id), [])
        for run in [run for run in self._runs.values() if run.owner == of]:
            if run.session_id is None or run.session_id in moved:
                await self.put_run(replace(run, owner=owner))
        for entry in self._queue.values():
            self._queue[entry.run.id] = replace(entry, run=self._runs[entry.run.id])
        for group in [group for group in self._groups.values() if group.owner == of]:
            self._groups[owner, group.id] = replace(self._groups.pop((of, group.id)), owner=owner)
        return Adopted(len(moved), tuple(sorted(id for at, id in self._sessions if at == of)))
