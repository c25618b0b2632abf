"""Disks that fill up, files that turn read-only, torn pages, killed processes.

Nothing that was acknowledged is lost, nothing that failed is said to be kept, and after the repair it goes on.
"""

import random
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from headwater.errors import StoreError
from headwater.events import Completed, Interrupted, decode_entry
from headwater.store.base import Store
from headwater.store.results import Batch, EndStands
from headwater.store.sqlite.database import SqliteDatabase
from headwater.testing.store_suite.making import (
    OWNER,
    answered,
    ended,
    entries,
    kept,
    logged,
    said,
    started,
    tail,
    tokens,
)
from tests.store.backends import SqliteBackend

pytestmark = pytest.mark.anyio


@pytest.fixture
def backend(tmp_path: Path) -> SqliteBackend:
    return SqliteBackend(tmp_path / "headwater.db")


def big(run_id: str, first_seq: int) -> Batch:
    return Batch(run_id, first_seq, [tokens(run_id, first_seq).entries[0] + b" " * 100_000])


def set_pragma(database: SqliteDatabase, name: str, value: int) -> int:
    """On the connection that writes: as near to a full or read-only disk as one gets without a disk."""
    return int(database._writer.pragma(name, value) or 0)


async def fill(backend: SqliteBackend, store: Store, run_id: str) -> int:
    """Until nothing more goes in; how many entries did."""
    set_pragma(backend.database, "max_page_count", 200)
    for seq in range(100):
        (trouble,) = await kept(store, big(run_id, seq))
        if trouble is not None:
            assert trouble.trouble == "full"
            return seq
    raise AssertionError("it never filled up")


async def test_a_full_disk_is_told_and_what_was_kept_before_stays_readable(backend: SqliteBackend) -> None:
    store = await backend.worker()
    run = (await started(store, session_id="s", messages=(said("one"),))).run
    number = await fill(backend, store, run.id)
    assert number > 0
    assert len(await logged(store, run.id)) == number
    with pytest.raises(StoreError, match="no room"):
        await ended(store, run.id, tail=big(run.id, number), messages=(answered("x" * 200_000),))
    # The ending is all or nothing.
    transcript = await store.transcript(OWNER, "s")
    assert transcript is not None
    assert (len(transcript.messages), transcript.active) == (1, run)


async def test_once_there_is_room_again_the_run_can_be_ended_with_all_it_had(backend: SqliteBackend) -> None:
    store = await backend.worker()
    run = (await started(store)).run
    number = await fill(backend, store, run.id)
    # What was refused is the tail's to bring.
    store.append(big(run.id, number), lambda *_: None)
    with pytest.raises(StoreError, match="no room"):
        await ended(store, run.id)
    set_pragma(backend.database, "max_page_count", 1_000_000)
    rest = Batch(run.id, number, [*big(run.id, number).entries, *tail(run.id, number + 1).entries])
    assert isinstance(await ended(store, run.id, tail=rest), EndStands)
    assert len(await logged(store, run.id)) == number + 2
    assert isinstance((await started(store)).run.id, str)


async def test_a_database_that_turns_read_only_refuses_and_can_still_be_read(backend: SqliteBackend) -> None:
    store = await backend.worker()
    run = (await started(store)).run
    await kept(store, tokens(run.id, 0))
    set_pragma(backend.database, "query_only", 1)
    (trouble,) = await kept(store, tokens(run.id, 1))
    assert trouble is not None
    assert trouble.trouble == "read_only"
    with pytest.raises(StoreError, match="can't be written to"):
        await store.check()
    with pytest.raises(StoreError):
        await started(store)
    assert len(await logged(store, run.id)) == 1
    set_pragma(backend.database, "query_only", 0)
    assert await kept(store, tokens(run.id, 1)) == [None]
    await store.check()


async def test_unrecorded_runs_that_can_not_be_noted_are_reported_and_harm_nobody(
    backend: SqliteBackend, caplog: pytest.LogCaptureFixture
) -> None:
    store = await backend.worker()
    run = (await started(store)).run
    set_pragma(backend.database, "query_only", 1)
    store.note(run)
    with pytest.raises(StoreError, match="can't be written to"):
        await store.close()
    assert "1 unrecorded runs" in caplog.text


@pytest.mark.parametrize("seed", range(8))
async def test_a_torn_wal_loses_at_most_its_end_and_never_the_middle(backend: SqliteBackend, seed: int) -> None:
    """As after a power cut: what is left is a prefix, and it can be gone on with."""
    chance = random.Random(seed)
    store = await backend.worker()
    # What the file itself has can't be torn by this.
    run = (await started(store, session_id="s", messages=(said("one"),))).run
    apsw.Connection(str(backend.path)).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for seq in range(40):
        await kept(store, tokens(run.id, seq))
    wal = backend.path.with_name("headwater.db-wal").read_bytes()
    cut = chance.randrange(len(wal))
    torn = wal[:cut] if seed % 2 else wal[:cut] + chance.randbytes(min(50, len(wal) - cut)) + wal[cut + 50 :]
    copy = SqliteBackend(backend.path.parent / "copy" / "headwater.db", seed=2)
    copy.path.parent.mkdir()
    copy.path.write_bytes(backend.path.read_bytes())
    copy.path.with_name("headwater.db-wal").write_bytes(torn)
    after = await copy.worker()
    assert [found.id for found in await after.abandoned()] == [run.id]
    left = [decode_entry(entry).seq for entry in await logged(after, run.id)]
    assert left == list(range(len(left)))
    crash = Interrupted("crash")
    assert isinstance(await ended(after, run.id, crash, tail=tail(run.id, len(left), crash)), EndStands)
    assert isinstance(await ended(after, (await started(after, session_id="s")).run.id), EndStands)


KILLED = """
import asyncio, os, sys
from pathlib import Path
from headwater.clock import SystemClock
from headwater.store.sqlite import open_sqlite
from headwater.testing.store_suite.making import started, tokens

async def main():
    store = await open_sqlite(Path(sys.argv[1]), address="x", clock=SystemClock(), entropy=os.urandom)
    runs = [(await started(store)).run.id for _ in range(8)]
    next_seq = dict.fromkeys(runs, 0)

    def go_on(run_id, kept_seq, trouble):
        os.write(1, f"{run_id} {kept_seq}\\n".encode())
        give(run_id)

    def give(run_id):
        store.append(tokens(run_id, next_seq[run_id], 3), lambda *args: go_on(run_id, *args))
        next_seq[run_id] += 3

    for run_id in runs:
        give(run_id)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def killed(path: Path, lines: int) -> dict[str, int]:
    """What it had acknowledged of each run when it was killed, after so many lines."""
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        told += [line for line in process.stdout if line.endswith(b"\n")]
    return {run_id.decode(): int(kept_seq) for run_id, kept_seq in map(bytes.split, told)}


@pytest.mark.parametrize("lines", [10, 100, 777])
async def test_nothing_acknowledged_is_lost_when_the_process_is_killed(backend: SqliteBackend, lines: int) -> None:
    """C51: what a follower may have seen was committed."""
    acknowledged = killed(backend.path, lines)
    store = await backend.worker()
    abandoned = await store.abandoned()
    assert {run.id for run in abandoned} >= set(acknowledged)
    for run in abandoned:
        found = [decode_entry(entry).seq for entry in await logged(store, run.id)]
        assert found == list(range(len(found)))
        assert len(found) > acknowledged.get(run.id, -1)
        assert isinstance(await ended(store, run.id, Interrupted("crash"), tail=tail(run.id, len(found))), EndStands)


async def test_a_damaged_page_is_told_as_damage(backend: SqliteBackend) -> None:
    store = await backend.worker()
    run = (await started(store)).run
    for seq in range(20):
        await kept(store, big(run.id, seq))
    await ended(store, run.id, Completed(), tail=Batch(run.id, 20, entries(20)))
    await store.close()
    data = bytearray(backend.path.read_bytes())
    for place in range(4096, len(data) - 4096, 4096):
        data[place : place + 16] = b"\xff" * 16
    backend.path.write_bytes(data)
    with pytest.raises(StoreError) as raised:
        await logged(await backend.worker(), run.id)
    assert raised.value.trouble == "corrupt"


@pytest.mark.parametrize(
    ("change", "trouble"),
    [
        ("UPDATE run SET state = 'ended' WHERE id = ?", "lost"),
        ("UPDATE run SET worker_id = 'wrk_other' WHERE id = ?", "lost"),
        ("DELETE FROM run WHERE id = ?", "lost"),
        ("UPDATE worker SET fenced = 1 WHERE ? IS NOT NULL", "fenced"),
    ],
)
async def test_what_was_looked_up_is_looked_up_again_when_somebody_else_has_written(
    backend: SqliteBackend, change: str, trouble: str
) -> None:
    """A run, or a worker, that was there at the last commit may not be at the next. The others go on."""
    store = await backend.worker()
    ours, other = (await started(store)).run.id, (await started(store)).run.id
    assert await kept(store, tokens(ours, 0), tokens(other, 0)) == [None, None]
    with apsw.Connection(str(backend.path)) as beside:
        beside.execute(change, (ours,))
    refused, went = await kept(store, tokens(ours, 1), tokens(other, 1))
    assert refused is not None
    assert refused.trouble == trouble
    assert went is None if trouble == "lost" else went is not None


async def test_what_is_known_to_be_there_is_not_looked_up_again(backend: SqliteBackend) -> None:
    store = await backend.worker()
    run_id = (await started(store)).run.id
    assert await kept(store, tokens(run_id, 0)) == [None]
    asked: list[str] = []

    def note(_: apsw.Cursor, sql: str, __: object) -> bool:
        asked.append(sql)
        return True

    backend.database._writer.exec_trace = note
    assert await kept(store, tokens(run_id, 1)) == [None]
    assert not [sql for sql in asked if "FROM run" in sql or "FROM worker" in sql]


async def test_nor_is_it_believed_when_this_connection_has_changed_it(backend: SqliteBackend) -> None:
    store = await backend.worker()
    run_id = (await started(store)).run.id
    assert await kept(store, tokens(run_id, 0)) == [None]
    assert isinstance(await ended(store, run_id), EndStands)
    trouble = backend.database.commit(store.worker_id, [tokens(run_id, 9)])[run_id]
    assert trouble.trouble == "lost"
