"""The tables, as numbered steps. A step that was released never changes; the next one is added behind it.

A record is kept whole, as JSON, beside the columns that it is looked up by. What has a name of any length is
referred to by a number (`n`). Names compare by their bytes, whatever the database's language.

A step says which workers can go on beside it. While machines are upgraded one by one, old and new ones work on the
same tables: so a step adds, and only a later one takes away what no living worker uses.
"""

import hashlib
from typing import Final

from msgspec import Struct

from headwater.errors import StoreError
from headwater.store.postgres.connection import Address

LOCK: Final = 0x48445752
"""`HDWR`: whoever changes the tables has this advisory lock."""


class Step(Struct, frozen=True):
    statements: tuple[str, ...]
    works_from: int
    """Workers that know the steps up to this one can go on when it is done."""


MIGRATIONS: Final[tuple[Step, ...]] = (
    Step(
        (
            """CREATE TABLE headwater.worker (
                n bigint GENERATED ALWAYS AS IDENTITY,
                id text COLLATE "C" PRIMARY KEY,
                fenced boolean NOT NULL,
                record bytea NOT NULL)""",
            """CREATE TABLE headwater.run (
                n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                id text COLLATE "C" NOT NULL UNIQUE,
                owner text COLLATE "C" NOT NULL,
                session_id text COLLATE "C",
                state text NOT NULL,
                status text NOT NULL,
                worker_id text COLLATE "C",
                created_at double precision NOT NULL,
                ended_at double precision,
                has_log boolean NOT NULL,
                stopping boolean NOT NULL,
                record bytea NOT NULL)""",
            """CREATE INDEX run_by_time ON headwater.run (created_at, id)""",
            """CREATE INDEX run_by_owner ON headwater.run (owner, created_at, id)""",
            """CREATE INDEX run_by_status ON headwater.run (status, owner, created_at, id)""",
            """CREATE INDEX run_by_session ON headwater.run (owner, session_id, created_at, id)
                WHERE session_id IS NOT NULL""",
            # The session's lock: there can't be two.
            """CREATE UNIQUE INDEX run_active ON headwater.run (owner, session_id)
                WHERE session_id IS NOT NULL AND state IN ('running', 'waiting')""",
            """CREATE INDEX run_open ON headwater.run (state, worker_id) WHERE state <> 'ended'""",
            """CREATE INDEX run_logged ON headwater.run (ended_at) WHERE state = 'ended' AND has_log""",
            """CREATE TABLE headwater.run_body (run bigint PRIMARY KEY, record bytea NOT NULL)""",
            """CREATE TABLE headwater.batch (
                run bigint NOT NULL,
                first_seq integer NOT NULL,
                last_seq integer NOT NULL,
                data bytea NOT NULL,
                PRIMARY KEY (run, first_seq))""",
            """CREATE TABLE headwater.approval (
                n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                run bigint NOT NULL,
                call_id text COLLATE "C" NOT NULL,
                record bytea NOT NULL,
                UNIQUE (run, call_id))""",
            """CREATE TABLE headwater.reservation (
                owner text COLLATE "C" NOT NULL,
                key text COLLATE "C" NOT NULL,
                at double precision NOT NULL,
                record bytea NOT NULL,
                PRIMARY KEY (owner, key))""",
            """CREATE TABLE headwater.session (
                n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                owner text COLLATE "C" NOT NULL,
                id text COLLATE "C" NOT NULL,
                updated_at double precision NOT NULL,
                hidden boolean NOT NULL,
                record bytea NOT NULL,
                UNIQUE (owner, id))""",
            """CREATE INDEX session_by_time ON headwater.session (owner, updated_at, id) WHERE NOT hidden""",
            """CREATE TABLE headwater.message (
                n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                session bigint NOT NULL,
                id text COLLATE "C" NOT NULL,
                record bytea NOT NULL,
                UNIQUE (session, id))""",
            """CREATE TABLE headwater.notice (
                n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session bigint NOT NULL, record bytea NOT NULL)""",
            """CREATE INDEX notice_by_session ON headwater.notice (session)""",
            """CREATE TABLE headwater.queued (
                run bigint PRIMARY KEY, session bigint NOT NULL, position integer NOT NULL, record bytea NOT NULL)""",
            """CREATE INDEX queued_by_session ON headwater.queued (session, position)""",
            """CREATE TABLE headwater.comparison (
                owner text COLLATE "C" NOT NULL,
                id text COLLATE "C" NOT NULL,
                record bytea NOT NULL,
                PRIMARY KEY (owner, id))""",
            """CREATE TABLE headwater.blob (
                hash text COLLATE "C" PRIMARY KEY, media_type text NOT NULL, data bytea NOT NULL)""",
            """CREATE TABLE headwater.blob_owner (
                owner text COLLATE "C" NOT NULL,
                hash text COLLATE "C" NOT NULL,
                at double precision NOT NULL,
                PRIMARY KEY (owner, hash))""",
            """CREATE INDEX blob_owner_by_hash ON headwater.blob_owner (hash)""",
            # Which message, in the tree or in a queue, shows which blob.
            """CREATE TABLE headwater.shown (
                hash text COLLATE "C" NOT NULL,
                session bigint NOT NULL,
                by_id text COLLATE "C" NOT NULL,
                PRIMARY KEY (hash, session, by_id))""",
            """CREATE INDEX shown_by_session ON headwater.shown (session, by_id)""",
            """CREATE TABLE headwater.key (
                n bigint GENERATED ALWAYS AS IDENTITY,
                id text COLLATE "C" PRIMARY KEY,
                hash text COLLATE "C" NOT NULL UNIQUE,
                owner text COLLATE "C" NOT NULL,
                record bytea NOT NULL)""",
            # What search has yet to learn of. Numbers are no help: a lower one may be committed after a higher one.
            """CREATE TABLE headwater.unindexed (message bigint PRIMARY KEY)""",
            """CREATE TABLE headwater.found (message bigint PRIMARY KEY, words tsvector NOT NULL)""",
            """CREATE INDEX found_by_words ON headwater.found USING gin (words)""",
        ),
        works_from=1,
    ),
    Step(
        (
            # Which runs are followed at which worker. One that knows only the first step tells nothing of its own.
            """CREATE TABLE headwater.following (
                worker_id text COLLATE "C" NOT NULL,
                run_id text COLLATE "C" NOT NULL,
                PRIMARY KEY (worker_id, run_id))""",
            """CREATE INDEX following_by_run ON headwater.following (run_id)""",
        ),
        works_from=1,
    ),
)


# Only if they are not there: a role that may do no more than read and write can start, too.
_FIRST: Final = (
    """DO $$ BEGIN IF to_regnamespace('headwater') IS NULL THEN CREATE SCHEMA headwater; END IF; END $$""",
    """DO $$ BEGIN IF to_regclass('headwater.migration') IS NULL THEN
        CREATE TABLE headwater.migration (
            number integer PRIMARY KEY, digest text NOT NULL, works_from integer NOT NULL);
    END IF; END $$""",
)


def digest(step: Step) -> str:
    return hashlib.sha256("\n".join(step.statements).encode()).hexdigest()


async def migrate(address: Address, steps: tuple[Step, ...] = MIGRATIONS) -> None:
    """Bring the tables up to these steps, as a whole. Refuses what is newer than they are, or not what they make."""
    with address.translated():
        async with await address.connect() as connection, connection.transaction():
            # One of those that start at the same time does it; the others find it done.
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            for statement in _FIRST:
                await connection.execute(statement)
            cursor = await connection.execute("SELECT number, digest, works_from FROM headwater.migration")
            done = {number: (found, works_from) for number, found, works_from in await cursor.fetchall()}
            _check(address, done, steps)
            for number, step in enumerate(steps, 1):
                if number not in done:
                    for statement in step.statements:
                        await connection.execute(statement)
                    await connection.execute(
                        "INSERT INTO headwater.migration VALUES (%s, %s, %s)", (number, digest(step), step.works_from)
                    )


def _check(address: Address, done: dict[int, tuple[str, int]], steps: tuple[Step, ...]) -> None:
    known = len(steps)
    for number, (found, works_from) in sorted(done.items()):
        if number > known and works_from > known:
            raise StoreError(
                f"{address.name} was changed by a later version of Headwater (its schema is {max(done)}, this one "
                f"knows {known}, and that needs {works_from}); upgrade Headwater, or give another store.url",
                trouble="newer",
            )
        if number <= known and found != digest(steps[number - 1]):
            raise StoreError(
                f"{address.name}: its schema is not what step {number} makes; restore a backup", trouble="corrupt"
            )
