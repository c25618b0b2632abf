"""Followers: every event from a cursor on, once, in order, wherever the run is (C40, C50)."""

import asyncio
import random

import pytest

from headwater.errors import StoreError
from headwater.events import (
    Completed,
    Entry,
    Event,
    RunEnded,
    RunStarted,
    TextDelta,
)
from headwater.runs.follow import ClosingError, Follower, GoneError
from headwater.runs.many import Came, Left
from headwater.store.results import Queued
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


class TestMany:
    async def test_all_of_all_runs_comes_in_order_and_where_each_stands_is_known(self, make_store: MakeStore) -> None:
        """C50."""
        async with stage(make_store) as staged:
            runs = [await staged.begin(f"number {n}") for n in range(3)]
            runs[0][1].say("before ")
            many = staged.runs.follow_many(OWNER, {run_id: -1 for run_id, _ in runs} | {"run_none": -1})
            found: dict[str, list[Entry]] = {run_id: [] for run_id, _ in runs}
            left: list[Left] = []

            async def read() -> None:
                while any(not seen or not isinstance(seen[-1].event, RunEnded) for seen in found.values()):
                    for news in await many.next():
                        if isinstance(news, Came):
                            found[news.run_id] += news.entries
                        else:
                            left.append(news)

            reading = asyncio.create_task(read())
            for n, (_, puppet) in enumerate(runs):
                puppet.say(*("word " for _ in range(5 + n)))
                await asyncio.sleep(0)
                puppet.end()
            async with asyncio.timeout(10):
                await reading
            for run_id, seen in found.items():
                assert [entry.seq for entry in seen] == list(range(len(seen)))
                assert [entry.event for entry in seen] == await staged.events(run_id)
                assert many.cursors[run_id] == len(seen) - 1
            assert [(one.run_id, type(one.error)) for one in left] == [("run_none", GoneError)]
            many.leave()

    async def test_followers_of_runs_that_wait_are_told_to_come_back_when_the_worker_ends(
        self, make_store: MakeStore
    ) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin("Hello", "s")
            queued = await staged.ask("And then?", "s", multitask="queue")
            assert isinstance(queued, Queued)
            puppet.suspend()
            await staged.settled(lambda: staged.runs.live(run_id) is None)
            followers = [staged.runs.follower(OWNER, one) for one in (run_id, queued.run.id)]
            reading = [asyncio.create_task(read_all(follower)) for follower in followers]
            many = staged.runs.follow_many(OWNER, {run_id: 1})
            waiting = asyncio.create_task(many.next())
            await staged.settled(lambda: followers[0].cursor >= 1)
            await staged.runs.close()
            async with asyncio.timeout(10):
                for task in reading:
                    with pytest.raises(ClosingError):
                        await task
                (news,) = await waiting
            assert isinstance(news, Left)
            assert isinstance(news.error, ClosingError)
            with pytest.raises(ClosingError):
                await read_all(staged.runs.follower(OWNER, run_id))
            # That they were told changes nothing.
            for one in (run_id, queued.run.id):
                found = await staged.store.run(OWNER, one)
                assert found is not None
                assert found.outcome is None


async def read_all(follower: Follower) -> None:
    while await follower.next():
        pass
