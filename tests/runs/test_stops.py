"""Stops: they close the source, keep the words, and stick (C41-C48)."""

import asyncio

import pytest

from headwater.events import (
    Completed,
    Interrupted,
    Notice,
    ReasoningDelta,
    RunEnded,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallStarted,
)
from headwater.records import Run, StopRequest
from headwater.runs.unfollowed import Patience
from headwater.store.results import Queued
from headwater.testing import ManualClock
from tests.runs.puppets import OWNER, MakeStore, Puppet, memory, new_id, stage

pytestmark = pytest.mark.anyio


class TestStops:
    @pytest.mark.parametrize("words", [[], ["Half an ", "answer"]])
    async def test_a_stop_closes_the_source_and_keeps_the_words(self, make_store: MakeStore, words: list[str]) -> None:
        """C42, C43, C44, C45."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say(*words)
            answer = await staged.runs.stop(OWNER, run_id)
            assert answer is not None
            assert answer.run.outcome == Stopped("user")
            assert (answer.caused_by_this_call, answer.upstream_closed) == (True, True)
            assert puppet.cancelled == 1
            kept = [("assistant", "".join(words), "partial")] if words else []
            assert await staged.transcript("s") == [("user", "Hello", "complete"), *kept, ("notice", "stopped", "")]
            assert await staged.words(run_id) == words

    async def test_reasoning_alone_leaves_no_message(self, make_store: MakeStore) -> None:
        """C44."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.emit(ReasoningDelta("Hm."))
            await staged.runs.stop(OWNER, run_id)
            assert await staged.transcript("s") == [("user", "Hello", "complete"), ("notice", "stopped", "")]

    async def test_a_torn_call_is_dropped_by_a_stop(self, make_store: MakeStore) -> None:
        """C26, C45."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.emit(TextDelta("Let me."), ToolCallStarted(0, "c1", "write"), ToolArgsDelta(0, '{"a'))
            await staged.runs.stop(OWNER, run_id)
            [notice] = [event for event in await staged.events(run_id) if isinstance(event, Notice)]
            assert notice.code == "tool_call_dropped"

    async def test_stops_are_idempotent_and_the_loser_is_told(self, make_store: MakeStore) -> None:
        """C47."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            puppet.say("x")
            first, second = await asyncio.gather(staged.runs.stop(OWNER, run_id), staged.runs.stop(OWNER, run_id))
            assert first is not None
            assert second is not None
            assert [first.caused_by_this_call, second.caused_by_this_call].count(True) == 1
            third = await staged.runs.stop(OWNER, run_id)
            assert third is not None
            assert third.run.outcome == Stopped("user")
            assert not third.caused_by_this_call
            assert puppet.cancelled == 1

    async def test_a_stop_after_the_end_changes_nothing(self, make_store: MakeStore) -> None:
        """C47, C49."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            puppet.say("x")
            puppet.end()
            await staged.outcome(run_id)
            answer = await staged.runs.stop(OWNER, run_id)
            assert answer is not None
            assert answer.run.outcome == Completed("stop")
            assert not answer.caused_by_this_call

    async def test_a_stop_of_a_run_that_is_not_there(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            assert await staged.runs.stop(OWNER, "run_none") is None

    async def test_a_run_that_was_adopted_is_its_new_owners_to_stop_and_to_follow(self, make_store: MakeStore) -> None:
        """At once, though the worker that has it learns of it with its next look."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            other_id, other = await staged.begin()
            await staged.store.adopt("ben", OWNER)
            puppet.say("one ")
            other.say("two ")
            assert await staged.runs.stop(OWNER, run_id) is None
            answer = await staged.runs.stop("ben", run_id)
            assert answer is not None
            assert (answer.run.outcome, answer.caused_by_this_call) == (Stopped("user"), True)
            assert puppet.cancelled == 1
            await staged.settled(lambda: staged.runs.running(OWNER) == 0)
            assert staged.runs.running("ben") == 1
            follower = staged.runs.follower("ben", other_id)
            words = [entry.event.text for entry in await follower.next() if isinstance(entry.event, TextDelta)]
            assert words == ["two "]
            follower.leave()

    async def test_a_stop_and_an_end_at_the_same_moment_leave_one_ending_and_one_save(
        self, make_store: MakeStore
    ) -> None:
        """C47: raced."""
        async with stage(make_store) as staged:
            outcomes = set()
            for n in range(500):
                session = f"s{n}"
                run_id, puppet = await staged.begin(session_id=session)
                puppet.say("some ", "words")

                async def finish(puppet: Puppet, steps: int) -> None:
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    puppet.end()

                async def stop(run_id: str, steps: int) -> None:
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    await staged.runs.stop(OWNER, run_id)

                await asyncio.gather(finish(puppet, n % 7), stop(run_id, n % 5))
                outcome = await staged.outcome(run_id)
                outcomes.add(type(outcome))
                events = await staged.events(run_id)
                assert [event for event in events if isinstance(event, RunEnded)] == [RunEnded(outcome)]
                items = await staged.transcript(session)
                saved = [item for item in items if item[0] == "assistant"]
                status = "complete" if isinstance(outcome, Completed) else "partial"
                assert saved == [("assistant", "".join(await staged.words(run_id)), status)]
                assert ("notice", "stopped", "") in items or isinstance(outcome, Completed)
            assert outcomes == {Completed, Stopped}

    async def test_a_stop_before_the_beginning_sticks(self, make_store: MakeStore) -> None:
        """C48: the source is never asked for."""
        async with stage(make_store) as staged:
            first, puppet = await staged.begin(session_id="s")
            queued = await staged.ask("Then this", "s", multitask="queue")
            assert isinstance(queued, Queued)
            answer = await staged.runs.stop(OWNER, queued.run.id)
            assert answer is not None
            assert answer.run.outcome == Stopped("user")
            third = await staged.ask("And this", "s", multitask="queue")
            assert isinstance(third, Queued)
            puppet.say("x")
            puppet.end()
            await staged.puppet(third.run.id)
            assert queued.run.id not in staged.puppets
            assert isinstance(await staged.outcome(first), Completed)

    async def test_a_stop_that_comes_with_the_claim_is_obeyed_at_once(self, make_store: MakeStore) -> None:
        """C48."""
        async with stage(make_store) as staged:
            stop = StopRequest("user", 1.0)
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=0.0, recorded=False, stop=stop)
            live = staged.runs.start_unrecorded(run, staged._source)
            assert await staged.runs.wait(OWNER, run.id) == Stopped("user")
            assert live.run.outcome == Stopped("user")
            assert not staged.puppets

    async def test_a_stop_in_the_moment_of_its_turn_is_not_lost(self, make_store: MakeStore) -> None:
        """C48: the one before has just ended, and this one is on its way to the worker."""
        async with stage(make_store) as staged:
            for turns in range(8):
                session = f"s{turns}"
                _, puppet = await staged.begin("1", session)
                queued = await staged.ask("2", session, multitask="queue")
                assert isinstance(queued, Queued)
                puppet.say("x")
                puppet.end()
                for _ in range(turns):
                    await asyncio.sleep(0)
                async with asyncio.timeout(0.8):
                    answer = await staged.runs.stop(OWNER, queued.run.id)
                assert answer is not None
                assert answer.run.outcome == Stopped("user")

    async def test_a_source_that_ignores_its_stop_is_left_to_itself(self, make_store: MakeStore) -> None:
        """C71."""
        async with stage(make_store, unwind_s=0.05) as staged:
            staged.next_puppet = lambda: Puppet(ignores_stops=True)
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("kept")
            stopped = await staged.runs.stop(OWNER, run_id)
            assert stopped is not None
            assert stopped.upstream_closed == "unknown"
            assert await staged.outcome(run_id) == Stopped("user")
            answer = await staged.runs.stop(OWNER, run_id)
            assert answer is not None
            puppet.say("late")
            puppet.fail(RuntimeError("late, too"))
            await asyncio.sleep(0.01)
            assert await staged.words(run_id) == ["kept"]

    async def test_a_stop_that_another_worker_was_asked_for_is_obeyed(self) -> None:
        make_store = memory()
        async with stage(make_store) as owner, stage(make_store) as other:
            run_id, puppet = await owner.begin()
            puppet.say("x")
            answer = await other.runs.stop(OWNER, run_id)
            assert answer is not None
            assert answer.run.outcome == Stopped("user")
            assert answer.caused_by_this_call
            assert puppet.cancelled == 1

    async def test_a_worker_that_does_not_confirm_is_not_waited_for_for_ever(self) -> None:
        make_store = memory()
        async with stage(make_store, unwind_s=60) as owner, stage(make_store) as other:
            owner.next_puppet = lambda: Puppet(ignores_stops=True)
            run_id, puppet = await owner.begin()
            answer = await other.runs.stop(OWNER, run_id, wait_s=0.05)
            assert answer is not None
            assert answer.run.outcome is None
            # It is what was asked for first, and nothing else stands yet.
            assert (answer.caused_by_this_call, answer.upstream_closed) == (True, False)
            again = await owner.runs.stop(OWNER, run_id, wait_s=0)
            assert again is not None
            assert (again.run.outcome, again.caused_by_this_call) == (None, False)
            puppet.end()
            await owner.outcome(run_id)

    async def test_a_stop_that_came_too_late_has_caused_nothing(self, make_store: MakeStore) -> None:
        """C47: also if nobody had asked before, and the run was still going on."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            live = staged.runs.live(run_id)
            assert live is not None
            live.stop(Interrupted("shutdown"))
            answer = await staged.runs.stop(OWNER, run_id)
            assert answer is not None
            assert (answer.run.outcome, answer.caused_by_this_call) == (Interrupted("shutdown"), False)
            assert puppet.cancelled == 1

    async def test_a_lost_order_is_found_by_a_look(self) -> None:
        make_store = memory()
        clock = ManualClock()
        async with stage(make_store, clock=clock) as staged:
            run_id, puppet = await staged.begin()
            staged.runs._unwatch()
            await staged.store.ask_stop(OWNER, run_id, StopRequest("user", 0.0))
            assert puppet.cancelled == 0
            await clock.advance(1.1)
            assert await staged.outcome(run_id) == Stopped("user")


class TestPatience:
    async def test_a_run_that_nobody_follows_is_stopped_in_time(self) -> None:
        clock = ManualClock()
        async with stage(memory(), clock=clock, patience=Patience(max_unfollowed_s=60)) as staged:
            run_id, puppet = await staged.begin()
            puppet.say("x")
            follower = staged.runs.follower(OWNER, run_id)
            follower.on_news(lambda: None)
            await clock.advance(100)
            assert puppet.cancelled == 0
            follower.leave()
            await clock.advance(59)
            assert puppet.cancelled == 0
            await clock.advance(2)
            assert await staged.outcome(run_id) == Stopped("disconnect")

    async def test_who_follows_from_another_worker_counts(self) -> None:
        """C41."""
        clock, make_store = ManualClock(), memory()
        patience = Patience(linger_s=15)
        async with (
            stage(make_store, clock=clock, patience=patience) as owner,
            stage(make_store, clock=clock, patience=patience) as other,
        ):
            run_id, puppet = await owner.begin(on_disconnect="cancel")
            follower = other.runs.follower(OWNER, run_id)
            follower.on_news(lambda: None)
            await clock.advance(60)
            assert puppet.cancelled == 0
            follower.leave()
            await clock.advance(14)
            assert puppet.cancelled == 0
            await clock.advance(4)
            assert await owner.outcome(run_id) == Stopped("disconnect")

    async def test_with_cancel_it_lingers(self) -> None:
        """C41."""
        clock = ManualClock()
        async with stage(memory(), clock=clock, patience=Patience(linger_s=15)) as staged:
            run_id, puppet = await staged.begin(on_disconnect="cancel")
            await clock.advance(14)
            assert puppet.cancelled == 0
            await clock.advance(2)
            assert await staged.outcome(run_id) == Stopped("disconnect")
