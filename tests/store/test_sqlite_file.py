"""The file of an SQLite store: whose it is, who may read it, and what is said of one that can't be used."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import msgspec
import pytest

from headwater.clock import SystemClock
from headwater.conversation import Assistant, Request, Text, User
from headwater.errors import StoreError
from headwater.events import Completed, TextDelta
from headwater.lifecycle import RunState
from headwater.records import Key, RunBody
from headwater.store.framing import pack, unpack
from headwater.store.opening import open_store
from headwater.store.results import Batch
from headwater.store.sqlite import connection as connection_module
from headwater.store.sqlite import open_sqlite
from headwater.store.sqlite.connection import connect, prepare
from headwater.store.sqlite.database import SqliteDatabase
from headwater.store.sqlite.lock import FileLock
from headwater.store.sqlite.schema import APPLICATION_ID, MIGRATIONS, digest, migrate
from headwater.testing.store_suite.making import (
    OWNER,
    a_run,
    answered,
    ended,
    entries,
    kept,
    logged,
    said,
    started,
    tokens,
)
from tests.store.backends import SqliteBackend


def opened(path: Path) -> SqliteDatabase:
    return SqliteDatabase(path, address="127.0.0.1:8790", durability="process")


def trouble_with(path: Path) -> StoreError:
    with pytest.raises(StoreError) as raised:
        opened(path)
    assert str(path) in raised.value.message
    return raised.value


@pytest.mark.anyio
async def test_only_its_owner_may_read_the_files_and_their_folder(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "new" / "folder" / "headwater.db")
    store = await backend.worker()
    await started(store)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in backend.path.parent.iterdir()}
    names = [f"headwater.db{suffix}" for suffix in ("", "-shm", "-wal", ".lock")]
    assert modes == dict.fromkeys(names, 0o600)
    assert stat.S_IMODE(backend.path.parent.stat().st_mode) == 0o700
    await store.close()


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    path.touch(mode=0o644)
    opened(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_in_use_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    holder = opened(path)
    error = trouble_with(path)
    assert error.trouble == "locked"
    assert "127.0.0.1:8790" in error.message
    assert str(os.getpid()) in error.message
    assert holder is not None


HOLD = """
import sys
from pathlib import Path
from headwater.store.sqlite.database import SqliteDatabase
database = SqliteDatabase(Path(sys.argv[1]), address="there:1", durability="process")
print("open", flush=True)
sys.stdin.read()
"""


def test_the_lock_goes_with_its_process_however_that_ends(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        assert f"there:1 (process {process.pid})" in trouble_with(path).message
        process.kill()
        process.wait()
    opened(path)


def test_pragmas_are_what_they_were_set_to(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    for durability, synchronous in (("process", 0), ("power", 2)):
        found = connect(path, durability)  # type: ignore[arg-type]
        assert (found.pragma("journal_mode"), found.pragma("synchronous")) == ("wal", synchronous)
        found.close()


def test_a_pragma_that_does_not_take_is_no_secret() -> None:
    with pytest.raises(StoreError, match="journal_mode is 'memory'"):
        connect(Path(":memory:"), "process")


# -------------------------------------------------------------------- schema


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    connection = apsw.Connection(str(path))
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", len(MIGRATIONS) + 1)
    connection.execute("CREATE TABLE later (n)")
    connection.close()
    error = trouble_with(path)
    assert (error.trouble, "upgrade" in error.message) == ("newer", True)


def first_schema(path: Path) -> apsw.Connection:
    prepare(path)
    connection = connect(path, "process")
    with connection:
        connection.execute("CREATE TABLE migration (number INTEGER PRIMARY KEY, digest TEXT NOT NULL)")
        for statement in MIGRATIONS[0]:
            connection.execute(statement)
        connection.execute("INSERT INTO migration VALUES (1, ?)", (digest(MIGRATIONS[0]),))
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", 1)
    return connection


def test_a_command_beside_a_server_of_an_earlier_version_leaves_its_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    connection = first_schema(path)
    server = FileLock(path, "127.0.0.1:8790")
    with pytest.raises(StoreError, match=r"in use by the server at 127\.0\.0\.1:8790"):
        SqliteDatabase(path, address="a command", durability="process", beside=True)
    assert connection.pragma("user_version") == 1
    server.release()
    SqliteDatabase(path, address="a command", durability="process", beside=True)
    assert connection.pragma("user_version") == len(MIGRATIONS)
    # It has the file no longer than that took.
    FileLock(path, "127.0.0.1:8790").release()


@pytest.mark.anyio
async def test_a_file_of_the_first_schema_is_brought_up_to_date_and_says_what_it_said(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    connection = first_schema(path)
    run = a_run(state=RunState.ENDED, outcome=Completed())
    body = RunBody(Request((User((Text("Was it so?"),)),)), (Assistant((Text("It was so."),)),))
    connection.execute(
        """INSERT INTO run (id, owner, created_at, state, status, ended_at, has_log, record)
        VALUES (?, ?, 0, 'ended', 'completed', 0, 0, ?)""",
        (run.id, run.owner, msgspec.json.encode(run)),
    )
    connection.execute("INSERT INTO run_body SELECT n, ? FROM run", (msgspec.json.encode(body),))
    connection.close()
    store = await open_sqlite(path, address="127.0.0.1:8790", clock=SystemClock(), entropy=os.urandom)
    assert await store.body(run.owner, run.id) == body
    await store.close()


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (n)")
    connection.close()
    assert trouble_with(path).trouble == "corrupt"
    assert apsw.Connection(str(path)).execute("SELECT name FROM sqlite_schema").get == "theirs"


def test_a_schema_that_was_made_otherwise_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    connection = apsw.Connection(str(path))
    migrate(connection, str(path))
    connection.execute("UPDATE migration SET digest = 'another'")
    connection.close()
    assert "step 1" in trouble_with(path).message


def test_a_step_that_fails_leaves_nothing_of_itself(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "headwater.db"))
    connection.execute("CREATE TABLE worker (n)")
    connection.pragma("application_id", APPLICATION_ID)
    with pytest.raises(apsw.SQLError):
        migrate(connection, "x")
    assert connection.execute("SELECT name FROM sqlite_schema").get == "worker"
    assert connection.pragma("user_version") == 0


# ------------------------------------------------------------ unusable files


def test_what_is_no_database_is_said_to_be_none_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    path.write_bytes(b"A letter, and no database." * 100)
    assert trouble_with(path).trouble == "corrupt"
    assert path.read_bytes().startswith(b"A letter")


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    path.mkdir()
    assert trouble_with(path).trouble == "unreachable"


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert trouble_with(tmp_path / "file" / "headwater.db").trouble == "unreachable"


READ_ONLY = """
import os, sys
from pathlib import Path
from headwater.clock import SystemClock
from headwater.errors import StoreError
from headwater.store.sqlite.database import SqliteDatabase
if os.geteuid() == 0:
    os.setuid(65534)
try:
    SqliteDatabase(Path(sys.argv[1]), address="here", durability="process")
except StoreError as error:
    print(error.trouble, error.message)
"""


def test_a_file_that_may_not_be_written_to(tmp_path: Path) -> None:
    """As a person without special rights, whoever runs the tests."""
    folder = Path("/tmp") / f"headwater-{os.getpid()}"
    folder.mkdir(mode=0o755)
    path = folder / "headwater.db"
    path.touch(mode=0o444)
    try:
        result = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(path)], capture_output=True, text=True, check=True, timeout=60
        )
    finally:
        path.unlink()
        folder.rmdir()
    assert result.stdout.startswith(f"read_only {path}")


@pytest.mark.parametrize(("kind", "trouble", "_"), connection_module._TROUBLES)
def test_what_sqlite_raises_is_said_in_our_words(kind: type[apsw.Error], trouble: str, _: str) -> None:
    with pytest.raises(StoreError, match=r"some\.db") as raised, connection_module.translated("some.db"):
        raise kind("of the test")
    assert raised.value.trouble == trouble


def test_preparing_twice_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    prepare(path)
    path.write_bytes(b"content")
    prepare(path)
    assert path.read_bytes() == b"content"


# ------------------------------------------------------------------- details


def test_a_batch_of_a_later_format_is_refused() -> None:
    assert unpack(pack([b"a", b"b"])) == [b"a", b"b"]
    for data in (b"", b"\x02a"):
        with pytest.raises(StoreError, match="can't read"):
            unpack(data)


@pytest.mark.anyio
async def test_it_opens_again_with_all_that_it_had(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    for number in range(3):
        store = await open_sqlite(path, address="here", clock=SystemClock(), entropy=os.urandom)
        assert len((await store.runs(OWNER)).runs) == number
        await started(store)
        await store.close()


@pytest.mark.anyio
async def test_a_command_can_work_on_the_file_beside_the_server_that_has_it(tmp_path: Path) -> None:
    path = tmp_path / "headwater.db"
    server = await open_sqlite(path, address="here", clock=SystemClock(), entropy=os.urandom)
    run = (await started(server)).run
    command = await open_sqlite(path, address="", clock=SystemClock(), entropy=os.urandom, beside=True)
    key = Key(id="key_1", owner=OWNER, hash="h", created_at=1.0)
    assert await server.fence_dead() == ()
    await command.put_key(key)
    assert await server.key("h") == key
    assert await kept(server, tokens(run.id, 0)) == [None]
    await command.close()
    await server.close()


@pytest.mark.anyio
@pytest.mark.parametrize("url", ["memory:", "sqlite:{}/new/headwater.db"])
async def test_a_store_is_opened_by_its_url(tmp_path: Path, url: str) -> None:
    store = await open_store(url.format(tmp_path), address="here", clock=SystemClock(), entropy=os.urandom)
    await store.check()
    await store.close()


@pytest.mark.anyio
@pytest.mark.parametrize("url", ["", "sqlite:", "mysql://x", "/some/path"])
async def test_a_url_of_no_store_is_refused(url: str) -> None:
    with pytest.raises(StoreError, match=r"store\.url"):
        await open_store(url, address="here", clock=SystemClock(), entropy=os.urandom)


@pytest.mark.anyio
async def test_search_learns_of_many_messages_in_steps(tmp_path: Path) -> None:
    store = await SqliteBackend(tmp_path / "headwater.db").worker()
    await started(store, session_id="s", messages=tuple(said(f"river {n}") for n in range(450)))
    assert len(await store.search(OWNER, "river", limit=1000)) == 450


@pytest.mark.anyio
async def test_what_raises_half_way_has_changed_nothing(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "headwater.db")
    store = await backend.worker()

    async def half_way() -> None:
        async with backend.database.writing() as tables:
            await tables.put_key(Key(id="key_1", owner=OWNER, hash="h", created_at=1.0))
            raise RuntimeError("of the test")

    with pytest.raises(RuntimeError):
        await half_way()
    assert await store.keys() == ()


@pytest.mark.anyio
async def test_not_a_word_of_a_deleted_session_is_left_in_the_file(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "headwater.db")
    store = await backend.worker()
    run = (await started(store, session_id="s", messages=(said("a zebrafish"),))).run
    await kept(store, Batch(run.id, 0, entries(0, TextDelta("another zebrafish"))))
    assert len(await store.search(OWNER, "zebrafish")) == 1
    await started(store, session_id="t", messages=(said("a stickleback"),))
    assert len(await store.search(OWNER, "stickleback")) == 1
    await ended(store, run.id, messages=(answered("a zebrafish, not indexed yet"),))
    await store.delete_session(OWNER, "s")
    assert len(await store.search(OWNER, "stickleback")) == 1
    await store.tidy(1e9)
    await store.close()
    assert b"ebrafis" not in backend.path.read_bytes()
    assert b"ticklebac" in backend.path.read_bytes()


@pytest.mark.anyio
async def test_a_reader_holds_nothing_between_two_questions(tmp_path: Path) -> None:
    """Else the WAL could never be folded back into the file."""
    backend = SqliteBackend(tmp_path / "headwater.db")
    store = await backend.worker()
    run = (await started(store)).run
    await kept(store, tokens(run.id, 0))
    assert len(await logged(store, run.id)) == 1
    busy, *_ = apsw.Connection(str(backend.path)).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
    assert busy == 0
