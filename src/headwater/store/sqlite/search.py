"""Full-text search, and other questions that take too long for the event loop: each is asked of a connection alone.

The index is filled and cleaned in steps of a millisecond or two, so that nobody waits for it.
"""

from typing import Any, Final

import apsw

from headwater.records import Blob, SearchHit
from headwater.store.rows import decode_message, decode_session
from headwater.store.words import snippet, text_of, words_of

INDEXED_AT_ONCE: Final = 10
MERGED_PAGES: Final = 16


def index_some(connection: apsw.Connection) -> bool:
    """Let search learn of some messages. False: there were none."""
    rows: list[Any] = connection.execute(
        "SELECT n, record FROM message WHERE n > (SELECT message FROM indexed) ORDER BY n LIMIT ?", (INDEXED_AT_ONCE,)
    ).fetchall()
    for n, record in rows:
        text = text_of(decode_message(record).message)
        connection.execute("INSERT INTO found (rowid, text) VALUES (?, ?)", (n, text))
    if rows:
        connection.execute("UPDATE indexed SET message = ?", (rows[-1][0],))
    return bool(rows)


def forget_some(connection: apsw.Connection, *, going_on: bool) -> bool:
    """Take words of deleted messages out of the index: they are in it until its parts are merged. False: none are."""
    if not connection.execute("SELECT stale FROM indexed").get:
        return False
    before = connection.total_changes()
    # A negative number begins to merge all of it; positive ones go on with that.
    pages = MERGED_PAGES if going_on else -MERGED_PAGES
    connection.execute("INSERT INTO found (found, rank) VALUES ('merge', ?)", (pages,))
    if connection.total_changes() - before < 2:
        connection.execute("UPDATE indexed SET stale = 0")
    return True


def search(connection: apsw.Connection, owner: str, words: str, limit: int) -> list[SearchHit]:
    wanted = [f'"{word}"' for word in words_of(words)]
    if not wanted:
        return []
    rows: Any = connection.execute(
        """SELECT session.record, message.record
        FROM found JOIN message ON message.n = found.rowid JOIN session ON session.n = message.session
        WHERE found MATCH ? AND session.owner = ? AND session.hidden = 0 ORDER BY rank LIMIT ?""",
        (" ".join(wanted) + "*", owner, limit),
    )
    return [_hit(session, message, words) for session, message in rows]


def _hit(session_record: bytes, message_record: bytes, words: str) -> SearchHit:
    session, message = decode_session(session_record), decode_message(message_record)
    shown = snippet(text_of(message.message), words)
    return SearchHit(session.id, message.id, session.title, shown, message.created_at)


def read_blob(connection: apsw.Connection, owner: str, hash: str) -> Blob | None:
    row: Any = connection.execute(
        "SELECT blob.hash, media_type, data FROM blob JOIN blob_owner USING (hash) WHERE owner = ? AND hash = ?",
        (owner, hash),
    ).fetchone()
    return None if row is None else Blob(*row)
