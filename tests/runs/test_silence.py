"""Postgres is there, and says nothing: to whom has runs, to whom follows them, to who comes."""

import asyncio

import pytest

from headwater.clock import SystemClock
from headwater.errors import StoreError
from headwater.events import Completed, Interrupted
from headwater.runs.follow import Follower
from headwater.runs.unfollowed import Patience
from headwater.store.postgres.listener import Pace
from headwater.testing.postgres import PostgresServer
from tests.runs.puppets import OWNER, Stage
from tests.store.postgres_backend import behind_proxy

pytestmark = pytest.mark.anyio


async def to_its_end(follower: Follower) -> None:
    while await follower.next():
        pass


async def until_refused(follower: Follower) -> None:
    with pytest.raises(StoreError):
        await to_its_end(follower)
    follower.leave()


async def test_upstreams_are_closed_followers_are_told_and_nothing_is_said_to_have_ended(
    postgres: PostgresServer,
) -> None:
    """And afterwards it is: with all that came, once (C43, C51)."""
    async with behind_proxy(postgres) as backend, asyncio.timeout(60):
        backend.pace = Pace(hearing_s=0.2, deaf_s=0.2)
        here, there = [Stage(await backend.worker(), SystemClock(), Patience(), 5.0) for _ in range(2)]
        await asyncio.gather(here.runs.open(), there.runs.open())
        run_id, puppet = await here.begin(session_id="s")
        puppet.say("shown ")
        followers = [stage.runs.follower(OWNER, run_id) for stage in (here, there)]
        for follower in followers:
            while follower.cursor < 2:
                await follower.next()

        backend.proxy.silent = True
        puppet.say("and not shown")
        await here.settled(lambda: puppet.cancelled == 1)
        await asyncio.gather(*map(until_refused, followers))
        with pytest.raises(StoreError):
            await there.ask()
        assert all(follower.cursor == 2 for follower in followers)
        assert here.runs.live(run_id) is not None

        backend.proxy.silent = False
        await here.settled(lambda: here.runs.live(run_id) is None)
        for stage in (here, there):
            assert await stage.runs.wait(OWNER, run_id) == Interrupted("store")
            assert await stage.words(run_id) == ["shown ", "and not shown"]
        assert await there.transcript("s") == [
            ("user", "Hello", "complete"),
            ("assistant", "shown and not shown", "partial"),
            ("notice", "interrupted", ""),
        ]
        again, other = await there.begin()
        other.say("x")
        other.end()
        assert await here.runs.wait(OWNER, again) == Completed("stop")
        await asyncio.gather(here.runs.close(), there.runs.close())
