"""Plain texts, and what comes with the end: kept before they are shown, once, whichever way they came."""

import asyncio

import pytest

from headwater.events import AttemptEnded, Completed, Interrupted, RunEnded, Stopped, TextDelta, decode_entry
from headwater.records import Run
from headwater.testing.store_suite.making import logged
from tests.runs.puppets import OWNER, MakeStore, Puppet, new_id, stage
from tests.runs.test_ends import make
from tests.runs.test_trouble import Refusing

pytestmark = pytest.mark.anyio


async def at_once(store: Refusing) -> Refusing:
    return store


class TestPlainTexts:
    async def test_nobody_sees_one_before_it_is_committed(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("first ")
            follower = staged.runs.follower(OWNER, run_id)
            while follower.cursor < 2:
                await follower.next()
            puppet.say_plainly("second ", "third")
            assert follower.take_plain() == []
            assert follower.take_nowait() == []
            live = staged.runs.live(run_id)
            assert live is not None
            await live.kept()
            kept = [decode_entry(line).event for line in await logged(staged.store, run_id)]
            assert kept[-2:] == [TextDelta("second "), TextDelta("third")]
            assert follower.take_plain() == [b"second ", b"third"]
            assert follower.take_plain() == []
            puppet.say("\n")
            await live.kept()
            assert follower.take_plain() is None
            assert [entry.event for entry in follower.take_nowait() or ()] == [TextDelta("\n")]
            follower.leave()
            puppet.end()
            await staged.outcome(run_id)
            assert await staged.words(run_id) == ["first ", "second ", "third", "\n"]
            assert (await staged.transcript("s"))[-1] == ("assistant", "first second third\n", "complete")

    async def test_who_waits_for_one_to_be_kept_hears_of_the_end_that_has_taken_it_along(
        self, make_store: MakeStore
    ) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            live = staged.runs.live(run_id)
            assert live is not None
            await live.kept()
            puppet.say("last")
            waiting = asyncio.ensure_future(live.kept())
            await asyncio.sleep(0)
            puppet.end()
            assert await staged.outcome(run_id) == Completed()
            await asyncio.wait_for(waiting, 5)
            assert await staged.words(run_id) == ["last"]

    async def test_one_that_the_store_refuses_is_kept_with_the_end(self, make_store: MakeStore) -> None:
        store = Refusing(await make_store())
        async with stage(lambda: at_once(store)) as staged:  # type: ignore[arg-type, return-value]
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("first ")
            live = staged.runs.live(run_id)
            assert live is not None
            await live.kept()
            store.refuses = True
            puppet.say_plainly("second ")
            follower = staged.runs.follower(OWNER, run_id, 2)
            follower.on_news(lambda: None)
            assert follower.take_plain() is None
            follower.leave()
            store.refuses = False
            await asyncio.wait({live.over})
            assert await staged.outcome(run_id) == Interrupted("store")
            assert await staged.words(run_id) == ["first ", "second "]

    async def test_one_that_the_store_refuses_is_kept_with_the_next(self, make_store: MakeStore) -> None:
        store = Refusing(await make_store())
        async with stage(lambda: at_once(store)) as staged:  # type: ignore[arg-type, return-value]
            run_id, puppet = await staged.begin()
            puppet.say("first ")
            store.refuses = True
            puppet.say_plainly("second ")
            store.refuses = False
            puppet.say_plainly("third ")
            live = staged.runs.live(run_id)
            assert live is not None
            await asyncio.wait({live.over})
            assert await staged.words(run_id) == ["first ", "second ", "third "]

    async def test_none_comes_after_the_end(self, make_store: MakeStore) -> None:
        """C30."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            puppet.say("first ")
            live = staged.runs.live(run_id)
            assert live is not None
            assert live.straight is not None
            puppet.end()
            await staged.outcome(run_id)
            assert live.straight is None


class TestWithTheEnd:
    """What a source gives back with its end."""

    async def test_it_is_one_batch_with_the_end(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            live = staged.runs.live(run_id)
            assert live is not None
            await live.kept()
            puppet.end(Completed("stop"), TextDelta("All at once."), AttemptEnded(200))
            assert await staged.outcome(run_id) == Completed("stop")
            found = await staged.store.read(OWNER, run_id)
            assert found is not None
            last = [decode_entry(line).event for line in found.batches[-1].entries]
            assert last == [TextDelta("All at once."), AttemptEnded(200), RunEnded(Completed("stop"))]
            assert found.run.first_token_at is not None
            assert (await staged.transcript("s"))[-1] == ("assistant", "All at once.", "complete")

    async def test_a_stop_that_comes_first_loses_none_of_it(self, make_store: MakeStore) -> None:
        """C43, C47: a source that takes no notice of the cancel, and is done."""
        async with stage(make_store) as staged:
            staged.next_puppet = lambda: Puppet(ignores_stops=True)
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("Some, ")
            stopping = asyncio.create_task(staged.runs.stop(OWNER, run_id))
            await staged.settled(lambda: puppet.cancelled == 1)
            puppet.end(Completed("stop"), TextDelta("and the rest."))
            answer = await stopping
            assert answer is not None
            assert answer.run.outcome == Stopped("user")
            assert await staged.words(run_id) == ["Some, ", "and the rest."]
            assert ("assistant", "Some, and the rest.", "partial") in await staged.transcript("s")

    async def test_a_cancel_from_elsewhere_repeats_none_of_it(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            staged.next_puppet = lambda: Puppet(ignores_stops=True)
            run_id, puppet = await staged.begin()
            [work] = [task for task in asyncio.all_tasks() if task.get_name() == run_id]
            work.cancel()
            await staged.settled(lambda: puppet.cancelled == 1)
            puppet.end(Completed("stop"), TextDelta("once"))
            assert await staged.outcome(run_id) == Completed("stop")
            assert await staged.words(run_id) == ["once"]

    async def test_whoever_a_run_pours_into_gets_it_as_one(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=0.0, recorded=False, on_disconnect="cancel")
            puppet = Puppet()
            live = staged.runs.start_unrecorded(run, make(puppet))
            await puppet.begun.wait()
            poured: list[object] = []
            live.pour(poured.append)
            puppet.end(Completed("stop"), TextDelta("All at once."))
            await live.over
            assert poured[1:] == [[TextDelta("All at once."), RunEnded(Completed("stop"))]]
            assert live.run.first_token_at is not None
