"""A disk that fills up, a file that turns read-only, a torn write, under a run: no success is told, the upstream is
closed, and after the repair every run has its ending."""

import asyncio
import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
import pytest

from headwater.errors import StoreError
from headwater.events import Completed, Interrupted, TextDelta
from headwater.store.engine import Engine
from headwater.store.sqlite.database import SqliteDatabase
from tests.runs.puppets import OWNER, Puppet, Stage, sqlite, stage

pytestmark = pytest.mark.anyio


def set_pragma(staged: Stage, name: str, value: int) -> None:
    writer_of(staged).pragma(name, value)


@pytest.mark.parametrize(("pragma", "broken", "mended"), [("max_page_count", 1, 1_000_000), ("query_only", 1, 0)])
async def test_a_store_that_takes_no_more(tmp_path: Path, pragma: str, broken: int, mended: int) -> None:
    async with stage(sqlite(tmp_path)) as staged:
        earlier, other = await staged.begin("Before", "s0")
        other.say("kept")
        other.end()
        await staged.outcome(earlier)
        run_id, puppet = await staged.begin("Hello", "s")
        puppet.say("shown ")
        follower = staged.runs.follower(OWNER, run_id)
        while follower.cursor < 2:
            await follower.next()
        set_pragma(staged, pragma, broken)
        with pytest.raises(StoreError):
            await talk_until_told(puppet, follower.next)
        await staged.settled(lambda: puppet.cancelled == 1)
        # Nobody is told of an ending, and what there was can still be read.
        run = await staged.store.run(OWNER, run_id)
        assert run is not None
        assert run.outcome is None
        assert await staged.words(earlier) == ["kept"]
        set_pragma(staged, pragma, mended)
        live = staged.runs.live(run_id)
        assert live is not None
        assert (await asyncio.wait({live.over}, timeout=10))[0]
        assert await staged.outcome(run_id) == Interrupted("store")
        words = await staged.words(run_id)
        assert words[0] == "shown "
        assert ("assistant", "".join(words), "partial") in await staged.transcript("s")
        follower.leave()


def writer_of(staged: Stage) -> apsw.Connection:
    assert isinstance(staged.store, Engine)
    database = staged.store._database
    assert isinstance(database, SqliteDatabase)
    return database._writer


async def shown(staged: Stage, run_id: str) -> None:
    live = staged.runs.live(run_id)
    assert live is not None
    await staged.settled(lambda: live.log.shown_seq == live.log.last_seq)


@pytest.mark.parametrize("seed", range(3))
async def test_after_a_torn_write_earlier_data_is_there_and_every_run_has_an_ending(tmp_path: Path, seed: int) -> None:
    """As after a power cut: the last page that was written is there by half (C51)."""
    async with stage(sqlite(tmp_path)) as staged:
        earlier, other = await staged.begin("Before", "s")
        other.say("kept")
        other.end()
        await staged.outcome(earlier)
        writer_of(staged).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        begun = [await staged.begin("Go on", f"s{n}") for n in range(4)]
        for n in range(5):
            for run_id, puppet in begun:
                puppet.say(f"w{n} ")
                await shown(staged, run_id)
        after = tmp_path / "after"
        after.mkdir()
        shutil.copy(tmp_path / "h.db", after)
        wal = (tmp_path / "h.db-wal").read_bytes()
        (after / "h.db-wal").write_bytes(wal[: -random.Random(seed).randrange(1, len(wal) // 2)])
    async with stage(sqlite(after)) as staged:
        assert await staged.words(earlier) == ["kept"]
        found = [run.id for run in (await staged.store.runs(OWNER)).runs]
        assert found
        for run_id in set(found) - {earlier}:
            assert await staged.outcome(run_id) == Interrupted("crash")
            words = await staged.words(run_id)
            assert words == [f"w{n} " for n in range(len(words))]
            session_id = f"s{[run_id for run_id, _ in begun].index(run_id)}"
            partials = [text for kind, text, _ in await staged.transcript(session_id) if kind == "assistant"]
            assert partials == ["".join(words)] * bool(words)
        again, puppet = await staged.begin("Again", "s")
        puppet.say("x")
        puppet.end()
        assert await staged.outcome(again) == Completed("stop")


async def test_one_whose_log_is_damaged_is_ended_without_what_it_said_and_keeps_no_other_from_its_ending(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage(sqlite(tmp_path)) as staged:
        begun = [await staged.begin("Go on", f"s{n}") for n in range(2)]
        for run_id, puppet in begun:
            puppet.say("said")
            await shown(staged, run_id)
        (damaged, _), (whole, _) = begun
        writer_of(staged).execute(
            "UPDATE batch SET data = x'ff' WHERE run = (SELECT n FROM run WHERE id = ?)", (damaged,)
        )
        shutil.copytree(tmp_path, tmp_path / "after", ignore=shutil.ignore_patterns("after", "*.lock", "*-shm"))
    async with stage(sqlite(tmp_path / "after")) as staged:
        for run_id in (damaged, whole):
            run = await staged.store.run(OWNER, run_id)
            assert run is not None
            assert run.outcome == Interrupted("crash")
        assert ("assistant", "said", "partial") in await staged.transcript("s1")
    assert f"the log of {damaged} can't be read" in caplog.text


async def talk_until_told(puppet: Puppet, following: Callable[[], Awaitable[object]]) -> None:
    """Words, until the follower gets an error instead of them."""
    for n in range(10_000):
        if not puppet.cancelled:
            puppet.emit(TextDelta(f"{n} " * 50))
        async with asyncio.timeout(10):
            await following()
