"""Sessions, their messages, their queues and comparisons, in SQL."""

from collections.abc import Sequence
from typing import Final

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
from headwater.store.postgres.runs import PostgresRuns
from headwater.store.postgres.words import query_of
from headwater.store.results import Adopted, Page
from headwater.store.rows import (
    QueuedBody,
    decode_group,
    decode_message,
    decode_notice,
    decode_queued,
    decode_run,
    decode_session,
    encode,
)
from headwater.store.words import snippet, text_of

_SESSION: Final = "(SELECT n FROM headwater.session WHERE owner = %s AND id = %s)"


class PostgresSessions(PostgresRuns):
    async def session(self, owner: str, session_id: str) -> Session | None:
        row = await self._one("SELECT record FROM headwater.session WHERE owner = %s AND id = %s", (owner, session_id))
        return None if row is None else decode_session(row[0])

    async def lock_session(self, owner: str, session_id: str) -> Session | None:
        # By its name, for one that is not there yet; and its row, against who adopts it.
        await self._lock("session", owner, session_id)
        row = await self._one(
            "SELECT record FROM headwater.session WHERE owner = %s AND id = %s FOR UPDATE", (owner, session_id)
        )
        return None if row is None else decode_session(row[0])

    async def put_session(self, session: Session) -> None:
        await self._do(
            """INSERT INTO headwater.session (owner, id, updated_at, hidden, record) VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT (owner, id) DO UPDATE
            SET updated_at = excluded.updated_at, hidden = excluded.hidden, record = excluded.record""",
            (session.owner, session.id, session.updated_at, session.hidden, encode(session)),
        )

    async def sessions(self, owner: str, page: Page) -> list[Session]:
        before = page.before or (float("inf"), "")
        rows = await self._all(
            """SELECT record FROM headwater.session WHERE owner = %s AND NOT hidden AND (updated_at, id) < (%s, %s)
            ORDER BY updated_at DESC, id DESC LIMIT %s""",
            (owner, *before, page.limit),
        )
        return [decode_session(record) for (record,) in rows]

    async def delete_session(self, owner: str, session_id: str) -> None:
        key = (owner, session_id)
        # In this order: whoever is just letting search learn of them is waited for.
        for table in ("unindexed", "found"):
            await self._do(
                f"""DELETE FROM headwater.{table}
                WHERE message IN (SELECT n FROM headwater.message WHERE session = {_SESSION})""",
                key,
            )
        for table in ("message", "notice", "queued", "shown"):
            await self._do(f"DELETE FROM headwater.{table} WHERE session = {_SESSION}", key)
        for (run_id,) in await self._all("SELECT id FROM headwater.run WHERE owner = %s AND session_id = %s", key):
            await self.delete_run(run_id)
        await self._do("DELETE FROM headwater.session WHERE owner = %s AND id = %s", key)

    async def rename_owner(self, owner: str, of: str) -> Adopted:
        sessions = await self._all(
            """SELECT n, record FROM headwater.session WHERE owner = %s
            AND id NOT IN (SELECT id FROM headwater.session WHERE owner = %s) ORDER BY id FOR UPDATE""",
            (of, owner),
        )
        for n, record in sessions:
            renamed = encode(replace(decode_session(record), owner=owner))
            await self._do("UPDATE headwater.session SET owner = %s, record = %s WHERE n = %s", (owner, renamed, n))
        runs = await self._all(
            """SELECT n, record FROM headwater.run WHERE owner = %s AND (session_id IS NULL
            OR session_id NOT IN (SELECT id FROM headwater.session WHERE owner = %s)) ORDER BY n FOR UPDATE""",
            (of, of),
        )
        for n, record in runs:
            renamed = encode(replace(decode_run(record), owner=owner))
            await self._do("UPDATE headwater.run SET owner = %s, record = %s WHERE n = %s", (owner, renamed, n))
        for (record,) in await self._all("DELETE FROM headwater.comparison WHERE owner = %s RETURNING record", (of,)):
            await self.put_group(replace(decode_group(record), owner=owner))
        left = await self._all("SELECT id FROM headwater.session WHERE owner = %s ORDER BY id", (of,))
        return Adopted(len(sessions), tuple(id for (id,) in left))

    # ------------------------------------------------------------- messages

    async def message(self, owner: str, session_id: str, message_id: str) -> SessionMessage | None:
        row = await self._one(
            f"SELECT record FROM headwater.message WHERE session = {_SESSION} AND id = %s",
            (owner, session_id, message_id),
        )
        return None if row is None else decode_message(row[0])

    async def messages(self, owner: str, session_id: str) -> list[SessionMessage]:
        rows = await self._all(
            f"SELECT record FROM headwater.message WHERE session = {_SESSION} ORDER BY n", (owner, session_id)
        )
        return [decode_message(record) for (record,) in rows]

    async def add_message(self, owner: str, session_id: str, message: SessionMessage) -> None:
        await self._do(
            f"""WITH message AS (
                INSERT INTO headwater.message (session, id, record) VALUES ({_SESSION}, %s, %s) RETURNING n)
            INSERT INTO headwater.unindexed SELECT n FROM message""",
            (owner, session_id, message.id, encode(message)),
        )
        await self._show(owner, session_id, message.id, message)

    async def _show(self, owner: str, session_id: str, by_id: str, message: SessionMessage) -> None:
        for hash in message.blobs:
            await self._do(
                f"INSERT INTO headwater.shown VALUES (%s, {_SESSION}, %s) ON CONFLICT DO NOTHING",
                (hash, owner, session_id, by_id),
            )

    async def notices(self, owner: str, session_id: str) -> list[SessionNotice]:
        rows = await self._all(
            f"SELECT record FROM headwater.notice WHERE session = {_SESSION} ORDER BY n", (owner, session_id)
        )
        return [decode_notice(record) for (record,) in rows]

    async def add_notice(self, owner: str, session_id: str, notice: SessionNotice) -> None:
        await self._do(
            f"INSERT INTO headwater.notice (session, record) VALUES ({_SESSION}, %s)",
            (owner, session_id, encode(notice)),
        )

    # ---------------------------------------------------------------- queue

    async def queue(self, owner: str, session_id: str) -> list[QueueEntry]:
        rows = await self._all(
            f"""SELECT run.record, queued.record, position
            FROM headwater.queued JOIN headwater.run ON run.n = queued.run
            WHERE session = {_SESSION} ORDER BY position""",
            (owner, session_id),
        )
        return [_entry(decode_run(run), decode_queued(body), position) for run, body, position in rows]

    async def put_queued(
        self, run: Run, messages: tuple[SessionMessage, ...], place: AtHead | Under, position: int
    ) -> None:
        assert run.session_id is not None, "only sessions have queues"
        await self.drop_queued(run.id)
        await self._do(
            f"INSERT INTO headwater.queued SELECT n, {_SESSION}, %s, %s FROM headwater.run WHERE id = %s",
            (run.owner, run.session_id, position, encode(QueuedBody(messages, place)), run.id),
        )
        for message in messages:
            await self._show(run.owner, run.session_id, run.id, message)

    async def drop_queued(self, run_id: str) -> None:
        await self._do(
            """WITH dropped AS (
                DELETE FROM headwater.queued WHERE run = (SELECT n FROM headwater.run WHERE id = %s) RETURNING session)
            DELETE FROM headwater.shown WHERE by_id = %s AND session IN (SELECT session FROM dropped)""",
            (run_id, run_id),
        )

    # ---------------------------------------------------- comparing, searching

    async def group(self, owner: str, group_id: str) -> Group | None:
        row = await self._one("SELECT record FROM headwater.comparison WHERE owner = %s AND id = %s", (owner, group_id))
        return None if row is None else decode_group(row[0])

    async def put_group(self, group: Group) -> None:
        await self._do(
            """INSERT INTO headwater.comparison VALUES (%s, %s, %s)
            ON CONFLICT (owner, id) DO UPDATE SET record = excluded.record""",
            (group.owner, group.id, encode(group)),
        )

    async def groups(self, owner: str) -> list[Group]:
        rows = await self._all("SELECT record FROM headwater.comparison WHERE owner = %s", (owner,))
        return [decode_group(record) for (record,) in rows]

    async def delete_group(self, owner: str, group_id: str) -> None:
        await self._do("DELETE FROM headwater.comparison WHERE owner = %s AND id = %s", (owner, group_id))

    async def sessions_named(self, owner: str, session_ids: Sequence[str]) -> list[Session]:
        rows = await self._all(
            "SELECT record FROM headwater.session WHERE owner = %s AND id = ANY(%s)", (owner, list(session_ids))
        )
        return [decode_session(record) for (record,) in rows]

    async def search(self, owner: str, words: str, limit: int) -> list[SearchHit]:
        wanted = query_of(words)
        if wanted is None:
            return []
        rows = await self._all(
            """SELECT session.record, message.record
            FROM headwater.found
            JOIN headwater.message ON message.n = found.message
            JOIN headwater.session ON session.n = message.session
            WHERE found.words @@ %s::tsquery AND session.owner = %s AND NOT session.hidden
            ORDER BY ts_rank(found.words, %s::tsquery) DESC, message.n DESC LIMIT %s""",
            (wanted, owner, wanted, limit),
        )
        return [_hit(decode_session(session), decode_message(message), words) for session, message in rows]


def _entry(run: Run, body: QueuedBody, position: int) -> QueueEntry:
    return QueueEntry(run=run, messages=body.messages, place=body.place, position=position)


def _hit(session: Session, message: SessionMessage, words: str) -> SearchHit:
    shown = snippet(text_of(message.message), words)
    return SearchHit(session.id, message.id, session.title, shown, message.created_at)
