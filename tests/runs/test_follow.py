"""Followers: every event from a cursor on, once, in order, wherever the run is (C40, C50)."""

import asyncio
import random

import pytest

from headwater.errors import StoreError
from headwater.events import (
    Completed,
    Event,
    RunEnded,
    RunStarted,
    TextDelta,
)
from tests.runs.puppets import OWNER, MakeStore, stage

pytestmark = pytest.mark.anyio


class TestFollowing:
    async def test_replay_and_live_are_one(self, make_store: MakeStore) -> None:
        """C50."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            puppet.say("one ", "two ")
            early = asyncio.create_task(staged.words(run_id))
            await asyncio.sleep(0.01)
            puppet.say("three ")
            middle = asyncio.create_task(staged.events(run_id, after=2))
            await asyncio.sleep(0.01)
            puppet.say("four")
            puppet.end()
            assert await early == ["one ", "two ", "three ", "four"]
            assert [event.text for event in await middle if isinstance(event, TextDelta)] == ["two ", "three ", "four"]
            late = await staged.events(run_id)
            assert isinstance(late[0], RunStarted)
            assert late[-1] == RunEnded(Completed("stop"))
            assert late == await staged.events(run_id)

    async def test_a_follower_at_the_end_gets_nothing_and_waits_for_nothing(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            puppet.end()
            assert await staged.outcome(run_id) == Completed("stop")
            last = len(await staged.events(run_id)) - 1
            assert await staged.events(run_id, after=last) == []

    async def test_what_is_older_than_the_tail_is_read_back(self, make_store: MakeStore) -> None:
        """C50: the slow one holds a cursor, not a queue."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            words = [f"{n:04} " * 10 for n in range(300)]
            slow = staged.runs.follower(OWNER, run_id)
            first = await slow.next()
            for word in words:
                puppet.say(word)
                if random.random() < 0.2:
                    await asyncio.sleep(0.001)
            live = staged.runs.live(run_id)
            assert live is not None
            await staged.settled(lambda: live.log.shown_seq == live.log.last_seq)
            assert live.log.after(10) is None
            entries = [*first]
            puppet.end()
            while more := await slow.next():
                entries += more
            slow.leave()
            assert [entry.seq for entry in entries] == list(range(len(words) + 3))
            assert [entry.event.text for entry in entries if isinstance(entry.event, TextDelta)] == words

    async def test_nothing_is_shown_before_it_is_committed(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            follower = staged.runs.follower(OWNER, run_id)
            while (follower.cursor) < 1:
                await follower.next()
            puppet.say("soon")
            assert follower.take_nowait() == []
            [entry] = await follower.next()
            assert entry.event == TextDelta("soon")
            found = await staged.store.read(OWNER, run_id)
            assert found is not None
            assert found.last_seq == entry.seq
            follower.leave()

    async def test_another_owner_sees_nothing(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            puppet.end()
            await staged.outcome(run_id)
            with pytest.raises(StoreError):
                await staged.runs.follower("bob", run_id).next()
            assert await staged.runs.stop("bob", run_id) is None

    async def test_a_run_outlives_its_followers(self, make_store: MakeStore) -> None:
        """C40."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            follower = staged.runs.follower(OWNER, run_id)
            await follower.next()
            follower.leave()
            puppet.say("All ", "of it.")
            puppet.end()
            assert await staged.outcome(run_id) == Completed("stop")
            assert await staged.transcript("s") == [
                ("user", "Hello", "complete"),
                ("assistant", "All of it.", "complete"),
            ]

    async def test_news_without_a_task(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            follower = staged.runs.follower(OWNER, run_id)
            taken: list[Event] = []
            follower.on_news(lambda: taken.extend(entry.event for entry in follower.take_nowait() or ()))
            puppet.say("a")
            puppet.end()
            await staged.settled(lambda: bool(taken) and isinstance(taken[-1], RunEnded))
            assert TextDelta("a") in taken
            assert follower.ended
            follower.leave()

    async def test_a_follower_of_what_was_deleted_is_told(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.suspend()
            await staged.settled(lambda: staged.runs.live(run_id) is None)
            following = asyncio.create_task(staged.events(run_id))
            await asyncio.sleep(0.05)
            assert await staged.store.delete_session(OWNER, "s") is None
            with pytest.raises(StoreError):
                await following
