"""Sessions, their messages, their queues and comparisons, in SQL."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from headwater.records import (
    AtHead,
    Group,
    QueueEntry,
    Run,
    Session,
    SessionMessage,
    SessionNotice,
    Under,
)
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
from headwater.store.sqlite.runs import SqliteRuns
from headwater.store.words import text_of

_SESSION: Final = "(SELECT n FROM session WHERE owner = ? AND id = ?)"
# The record says whose it is, too.
_RENAMED: Final = "owner = :new, record = CAST(json_set(CAST(record AS TEXT), '$.owner', :new) AS BLOB)"


class SqliteSessions(SqliteRuns):
    async def session(self, owner: str, session_id: str) -> Session | None:
        row = self._sql("SELECT record FROM session WHERE owner = ? AND id = ?", (owner, session_id)).fetchone()
        return None if row is None else decode_session(row[0])

    # `BEGIN IMMEDIATE` has locked everything.
    lock_session = session

    async def put_session(self, session: Session) -> None:
        self._sql(
            """INSERT INTO session (owner, id, updated_at, hidden, record) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (owner, id) DO UPDATE
            SET updated_at = excluded.updated_at, hidden = excluded.hidden, record = excluded.record""",
            (session.owner, session.id, session.updated_at, session.hidden, encode(session)),
        )

    async def sessions(self, owner: str, page: Page) -> list[Session]:
        before = page.before or (float("inf"), "")
        rows = self._sql(
            """SELECT record FROM session WHERE owner = ? AND hidden = 0 AND (updated_at, id) < (?, ?)
            ORDER BY updated_at DESC, id DESC LIMIT ?""",
            (owner, *before, page.limit),
        )
        return [decode_session(record) for (record,) in rows]

    async def delete_session(self, owner: str, session_id: str) -> None:
        key = (owner, session_id)
        self._forget(owner, session_id)
        for table in ("message", "notice", "queued", "shown"):
            self._sql(f"DELETE FROM {table} WHERE session = {_SESSION}", key)
        for (run_id,) in self._sql("SELECT id FROM run WHERE owner = ? AND session_id = ?", key).fetchall():
            await self.delete_run(str(run_id))
        self._sql("DELETE FROM session WHERE owner = ? AND id = ?", key)

    def _forget(self, owner: str, session_id: str) -> None:
        """Search must be told what it was told before: `text_of` can't change without a step that indexes anew."""
        rows: list[Any] = self._sql(
            f"SELECT n, record FROM message WHERE session = {_SESSION} AND n <= (SELECT message FROM indexed)",
            (owner, session_id),
        ).fetchall()
        for n, record in rows:
            text = text_of(decode_message(record).message)
            self._sql("INSERT INTO found (found, rowid, text) VALUES ('delete', ?, ?)", (n, text))
        self._sql("UPDATE indexed SET stale = stale OR ?", (bool(rows),))

    async def rename_owner(self, owner: str, of: str) -> Adopted:
        whose = {"new": owner, "old": of}
        self._sql(
            f"""UPDATE session SET {_RENAMED}
            WHERE owner = :old AND id NOT IN (SELECT id FROM session WHERE owner = :new)""",
            whose,
        )
        moved = self._sql("SELECT changes()").get
        self._sql(
            f"""UPDATE run SET {_RENAMED} WHERE owner = :old
            AND (session_id IS NULL OR session_id NOT IN (SELECT id FROM session WHERE owner = :old))""",
            whose,
        )
        self._sql(f"UPDATE comparison SET {_RENAMED} WHERE owner = :old", whose)
        left = tuple(id for (id,) in self._sql("SELECT id FROM session WHERE owner = :old ORDER BY id", whose))
        self._sql("INSERT OR REPLACE INTO blob_owner SELECT :new, hash, at FROM blob_owner WHERE owner = :old", whose)
        if not left:
            # What stays may show any of them.
            self._sql("DELETE FROM blob_owner WHERE owner = :old", whose)
        return Adopted(int(moved), left)

    # ------------------------------------------------------------- messages

    async def message(self, owner: str, session_id: str, message_id: str) -> SessionMessage | None:
        row = self._sql(
            f"SELECT record FROM message WHERE session = {_SESSION} AND id = ?", (owner, session_id, message_id)
        ).fetchone()
        return None if row is None else decode_message(row[0])

    async def messages(self, owner: str, session_id: str) -> list[SessionMessage]:
        rows = self._sql(f"SELECT record FROM message WHERE session = {_SESSION} ORDER BY n", (owner, session_id))
        return [decode_message(record) for (record,) in rows]

    async def add_message(self, owner: str, session_id: str, message: SessionMessage) -> None:
        self._sql(
            f"INSERT INTO message (session, id, record) VALUES ({_SESSION}, ?, ?)",
            (owner, session_id, message.id, encode(message)),
        )
        self._show(owner, session_id, message.id, message)

    def _show(self, owner: str, session_id: str, by_id: str, message: SessionMessage) -> None:
        for hash in message.blobs:
            self._sql(f"INSERT OR IGNORE INTO shown VALUES (?, {_SESSION}, ?)", (hash, owner, session_id, by_id))

    async def notices(self, owner: str, session_id: str) -> list[SessionNotice]:
        rows = self._sql(f"SELECT record FROM notice WHERE session = {_SESSION} ORDER BY n", (owner, session_id))
        return [decode_notice(record) for (record,) in rows]

    async def add_notice(self, owner: str, session_id: str, notice: SessionNotice) -> None:
        self._sql(f"INSERT INTO notice (session, record) VALUES ({_SESSION}, ?)", (owner, session_id, encode(notice)))

    # ---------------------------------------------------------------- queue

    async def queue(self, owner: str, session_id: str) -> list[QueueEntry]:
        rows = self._sql(
            f"""SELECT run.record, queued.record, position FROM queued JOIN run ON run.n = queued.run
            WHERE session = {_SESSION} ORDER BY position""",
            (owner, session_id),
        )
        return [_entry(decode_run(run), decode_queued(body), position) for run, body, position in rows]

    async def put_queued(
        self, run: Run, messages: tuple[SessionMessage, ...], place: AtHead | Under, position: int
    ) -> None:
        assert run.session_id is not None, "only sessions have queues"
        await self.drop_queued(run.id)
        self._sql(
            f"INSERT INTO queued SELECT n, {_SESSION}, ?, ? FROM run WHERE id = ?",
            (run.owner, run.session_id, position, encode(QueuedBody(messages, place)), run.id),
        )
        for message in messages:
            self._show(run.owner, run.session_id, run.id, message)

    async def drop_queued(self, run_id: str) -> None:
        self._sql(
            """DELETE FROM shown WHERE by_id = :run
            AND session = (SELECT session FROM queued JOIN run ON run.n = queued.run WHERE run.id = :run)""",
            {"run": run_id},
        )
        self._sql("DELETE FROM queued WHERE run = (SELECT n FROM run WHERE id = ?)", (run_id,))

    # ------------------------------------------------------------ comparing

    async def group(self, owner: str, group_id: str) -> Group | None:
        row = self._sql("SELECT record FROM comparison WHERE owner = ? AND id = ?", (owner, group_id)).fetchone()
        return None if row is None else decode_group(row[0])

    async def put_group(self, group: Group) -> None:
        self._sql("REPLACE INTO comparison VALUES (?, ?, ?)", (group.owner, group.id, encode(group)))

    async def groups(self, owner: str) -> list[Group]:
        rows = self._sql("SELECT record FROM comparison WHERE owner = ?", (owner,))
        return [decode_group(record) for (record,) in rows]

    async def delete_group(self, owner: str, group_id: str) -> None:
        self._sql("DELETE FROM comparison WHERE owner = ? AND id = ?", (owner, group_id))

    async def sessions_named(self, owner: str, session_ids: Sequence[str]) -> list[Session]:
        rows = self._sql(
            "SELECT record FROM session WHERE owner = ? AND id IN (SELECT value FROM json_each(?))",
            (owner, msgspec.json.encode(session_ids).decode()),
        )
        return [decode_session(record) for (record,) in rows]


def _entry(run: Run, body: QueuedBody, position: int) -> QueueEntry:
    return QueueEntry(run=run, messages=body.messages, place=body.place, position=position)
