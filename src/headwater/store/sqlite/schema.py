"""The tables, as numbered steps. A step that was released never changes; the next one is added behind it.

A record is kept whole, as JSON, beside the columns that it is looked up by. What has a name of any length is
referred to by a number (`n`). A log's rows go to the end of one table, with a narrow index beside it: clustered by
run, a commit of 1,000 runs would touch 1,000 pages, and took 6.5 µs an event instead of 2.6.
"""

import hashlib
from typing import Final

import apsw

from headwater.errors import StoreError

APPLICATION_ID: Final = 0x48445752
"""`HDWR`, so that `file` knows it and nobody else's database is taken for one."""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE worker (id TEXT PRIMARY KEY, fenced INTEGER NOT NULL, record BLOB NOT NULL)""",
        """CREATE TABLE run (
            n INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            owner TEXT NOT NULL,
            session_id TEXT,
            state TEXT NOT NULL,
            status TEXT NOT NULL,
            worker_id TEXT,
            created_at REAL NOT NULL,
            ended_at REAL,
            has_log INTEGER NOT NULL,
            record BLOB NOT NULL)""",
        """CREATE INDEX run_by_time ON run (created_at, id)""",
        """CREATE INDEX run_by_owner ON run (owner, created_at, id)""",
        """CREATE INDEX run_by_status ON run (status, owner, created_at, id)""",
        """CREATE INDEX run_by_session ON run (owner, session_id, created_at, id) WHERE session_id IS NOT NULL""",
        # The session's lock: there can't be two.
        """CREATE UNIQUE INDEX run_active ON run (owner, session_id)
            WHERE session_id IS NOT NULL AND state IN ('running', 'waiting')""",
        """CREATE INDEX run_open ON run (state, worker_id) WHERE state <> 'ended'""",
        """CREATE INDEX run_logged ON run (ended_at) WHERE state = 'ended' AND has_log""",
        """CREATE TABLE run_body (run INTEGER PRIMARY KEY, record BLOB NOT NULL)""",
        """CREATE TABLE batch (
            run INTEGER NOT NULL,
            first_seq INTEGER NOT NULL,
            last_seq INTEGER NOT NULL,
            data BLOB NOT NULL,
            PRIMARY KEY (run, first_seq))""",
        """CREATE TABLE approval (
            n INTEGER PRIMARY KEY,
            run INTEGER NOT NULL,
            call_id TEXT NOT NULL,
            record BLOB NOT NULL,
            UNIQUE (run, call_id))""",
        """CREATE TABLE reservation (
            owner TEXT NOT NULL,
            key TEXT NOT NULL,
            at REAL NOT NULL,
            record BLOB NOT NULL,
            PRIMARY KEY (owner, key)) WITHOUT ROWID""",
        """CREATE TABLE session (
            n INTEGER PRIMARY KEY AUTOINCREMENT,
            owner TEXT NOT NULL,
            id TEXT NOT NULL,
            updated_at REAL NOT NULL,
            hidden INTEGER NOT NULL,
            record BLOB NOT NULL,
            UNIQUE (owner, id))""",
        """CREATE INDEX session_by_time ON session (owner, updated_at, id) WHERE hidden = 0""",
        # Search knows what it has seen by the greatest `n`, which therefore must never be given twice.
        """CREATE TABLE message (
            n INTEGER PRIMARY KEY AUTOINCREMENT,
            session INTEGER NOT NULL,
            id TEXT NOT NULL,
            record BLOB NOT NULL,
            UNIQUE (session, id))""",
        """CREATE TABLE notice (n INTEGER PRIMARY KEY, session INTEGER NOT NULL, record BLOB NOT NULL)""",
        """CREATE INDEX notice_by_session ON notice (session)""",
        """CREATE TABLE queued (
            run INTEGER PRIMARY KEY, session INTEGER NOT NULL, position INTEGER NOT NULL, record BLOB NOT NULL)""",
        """CREATE INDEX queued_by_session ON queued (session, position)""",
        """CREATE TABLE comparison (
            owner TEXT NOT NULL, id TEXT NOT NULL, record BLOB NOT NULL, PRIMARY KEY (owner, id)) WITHOUT ROWID""",
        """CREATE TABLE blob (hash TEXT PRIMARY KEY, media_type TEXT NOT NULL, data BLOB NOT NULL)""",
        """CREATE TABLE blob_owner (
            owner TEXT NOT NULL, hash TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (owner, hash)) WITHOUT ROWID""",
        # Which message, in the tree or in a queue, shows which blob.
        """CREATE TABLE shown (
            hash TEXT NOT NULL, session INTEGER NOT NULL, by_id TEXT NOT NULL, PRIMARY KEY (hash, session, by_id)
            ) WITHOUT ROWID""",
        """CREATE INDEX shown_by_session ON shown (session, by_id)""",
        """CREATE TABLE key (
            id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, record BLOB NOT NULL)""",
        """CREATE VIRTUAL TABLE found USING fts5 (text, content = '')""",
        # What search has seen, and whether words of deleted messages may still be in it.
        """CREATE TABLE indexed (message INTEGER NOT NULL, stale INTEGER NOT NULL)""",
        """INSERT INTO indexed VALUES (0, 0)""",
    ),
    # Of a body, what comes with the end: so what was asked need not be read and written again then. A table of its own:
    # a server that is older than the command beside it goes on writing bodies as it knows them.
    ("""CREATE TABLE run_output (run INTEGER PRIMARY KEY, record BLOB NOT NULL)""",),
)


def digest(step: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join(step).encode()).hexdigest()


def is_behind(connection: apsw.Connection) -> bool:
    """A step is still to be taken."""
    return int(connection.pragma("user_version")) < len(MIGRATIONS)


def migrate(connection: apsw.Connection, path: str) -> None:
    """Bring it up to this version, each step as a whole. Refuses what is not ours, newer, or not what we made it."""
    done = connection.pragma("user_version")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if tables and connection.pragma("application_id") != APPLICATION_ID:
        raise StoreError(f"{path} is a database, but not one of Headwater's; give another store.url", trouble="corrupt")
    if done > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a later version of Headwater (its schema is {done}, this one knows "
            f"{len(MIGRATIONS)}); upgrade Headwater, or give another store.url",
            trouble="newer",
        )
    for number, step in enumerate(MIGRATIONS, 1):
        if number > done:
            _apply(connection, number, step)
        elif connection.execute("SELECT digest FROM migration WHERE number = ?", (number,)).get != digest(step):
            raise StoreError(f"{path}: its schema is not what step {number} makes; restore a backup", trouble="corrupt")


def _apply(connection: apsw.Connection, number: int, step: tuple[str, ...]) -> None:
    with connection:
        connection.execute("CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY, digest TEXT NOT NULL)")
        for statement in step:
            connection.execute(statement)
        connection.execute("INSERT INTO migration VALUES (?, ?)", (number, digest(step)))
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", number)
