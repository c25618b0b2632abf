"""A disk that fills up and a file that turns read-only, under a run: no success is told, the upstream is closed, and
after the repair the run has its ending."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater.errors import StoreError
from headwater.events import Interrupted, TextDelta
from headwater.store.engine import Engine
from headwater.store.sqlite.database import SqliteDatabase
from tests.runs.puppets import OWNER, Puppet, Stage, sqlite, stage

pytestmark = pytest.mark.anyio


def set_pragma(staged: Stage, name: str, value: int) -> None:
    assert isinstance(staged.store, Engine)
    database = staged.store._database
    assert isinstance(database, SqliteDatabase)
    database._writer.pragma(name, value)


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
        await asyncio.wait_for(live.task, 10)
        assert await staged.outcome(run_id) == Interrupted("store")
        words = await staged.words(run_id)
        assert words[0] == "shown "
        assert ("assistant", "".join(words), "partial") in await staged.transcript("s")
        follower.leave()


async def talk_until_told(puppet: Puppet, following: Callable[[], Awaitable[object]]) -> None:
    """Words, until the follower gets an error instead of them."""
    for n in range(10_000):
        if not puppet.cancelled:
            puppet.emit(TextDelta(f"{n} " * 50))
        async with asyncio.timeout(10):
            await following()
