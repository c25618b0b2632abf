"""Runs: they outlive their followers, stop when told to, and end once (C40-C55)."""

import asyncio
import gc
import logging
import random
import weakref

import pytest
from msgspec.structs import replace

from headwater.clock import SystemClock
from headwater.errors import CallerError, StoreError
from headwater.events import (
    Completed,
    Entry,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Notice,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallStarted,
    encode_entry,
)
from headwater.lifecycle import RunState
from headwater.records import Run, StopRequest
from headwater.runs.recover import resumed
from headwater.runs.service import Patience
from headwater.source import Source
from headwater.store.results import Batch, Busy, Committed, Ending, Queued, Started
from headwater.testing import ManualClock
from tests.runs.puppets import OWNER, MakeStore, Puppet, Stage, memory, new_id, stage

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
        async with stage(make_store) as staged:
            result = await staged.ask()
            assert isinstance(result, Started)
            live = staged.runs.live(result.run.id)
            assert live is not None
            assert live.stop(Stopped("user"))
            assert await staged.outcome(result.run.id) == Stopped("user")
            assert not staged.puppets

    async def test_a_source_that_ignores_its_stop_is_left_to_itself(self, make_store: MakeStore) -> None:
        """C71."""
        async with stage(make_store, unwind_s=0.05) as staged:
            staged.next_puppet = lambda: Puppet(ignores_stops=True)
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("kept")
            await staged.runs.stop(OWNER, run_id)
            assert await staged.outcome(run_id) == Stopped("user")
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
            assert (answer.caused_by_this_call, answer.upstream_closed) == (False, False)
            puppet.end()
            await owner.outcome(run_id)

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


class TestEnds:
    @pytest.mark.parametrize("outcome", [Incomplete("length"), Failed("upstream_error", "On fire.")])
    async def test_the_sources_outcome_stands(self, make_store: MakeStore, outcome: Incomplete | Failed) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("x")
            puppet.end(outcome)
            assert await staged.outcome(run_id) == outcome
            run = await staged.store.run(OWNER, run_id)
            assert run is not None
            assert (run.answered_by, run.outcome) == ("up/m", outcome)
            assert run.first_token_at is not None

    async def test_a_source_that_raises_has_failed(
        self, make_store: MakeStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C70: the traceback is in the server's log, and not in the client's message."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            with caplog.at_level(logging.ERROR):
                puppet.fail(ValueError("secret detail"))
                outcome = await staged.outcome(run_id)
            assert isinstance(outcome, Failed)
            assert outcome.reason == "agent_error"
            assert "secret" not in outcome.message
            assert "secret detail" in caplog.text

    async def test_a_source_that_cannot_be_made_is_a_refusal(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            staged.refuses = CallerError("No such model.", status=404)
            result = await staged.ask()
            assert isinstance(result, Started)
            assert await staged.outcome(result.run.id) == Failed("refused", "No such model.", 404)

    async def test_nothing_stays_in_memory(self, make_store: MakeStore) -> None:
        """C53."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            live = weakref.ref(staged.runs.live(run_id))
            task = asyncio.create_task(staged.words(run_id))
            puppet.say("x")
            puppet.end()
            await task
            await staged.outcome(run_id)
            staged.puppets.clear()
            del puppet, task
            await asyncio.sleep(0.01)
            gc.collect()
            assert staged.runs.live(run_id) is None
            assert live() is None


class TestQueues:
    """C52."""

    async def test_a_second_message_is_rejected(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, _ = await staged.begin(session_id="s")
            result = await staged.ask("More", "s")
            assert isinstance(result, Busy)
            assert result.active.id == run_id

    async def test_or_queued_and_begun_in_order(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            _, puppet = await staged.begin("1", "s")
            queued = [await staged.ask(text, "s", multitask="queue") for text in "23"]
            for result in queued:
                assert isinstance(result, Queued)
                assert result.run.id not in staged.puppets
                puppet.say("ok")
                puppet.end()
                puppet = await staged.puppet(result.run.id)
            puppet.say("ok")
            puppet.end()
            await staged.outcome(queued[-1].run.id)  # type: ignore[union-attr]
            texts = [text for kind, text, _ in await staged.transcript("s") if kind == "user"]
            assert texts == ["1", "2", "3"]

    async def test_or_takes_the_others_place(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            first, puppet = await staged.begin("1", "s")
            puppet.say("half")
            result = await staged.ask("2", "s", multitask="interrupt")
            assert isinstance(result, Queued)
            assert await staged.outcome(first) == Stopped("replaced")
            second = await staged.puppet(result.run.id)
            second.say("whole")
            second.end()
            assert await staged.outcome(result.run.id) == Completed("stop")

    async def test_a_failure_pauses_the_queue(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            first, puppet = await staged.begin("1", "s")
            queued = await staged.ask("2", "s", multitask="queue")
            assert isinstance(queued, Queued)
            puppet.end(Failed("upstream_error", "x"))
            await staged.outcome(first)
            await asyncio.sleep(0.02)
            assert queued.run.id not in staged.puppets
            session = await staged.store.session(OWNER, "s")
            assert session is not None
            assert session.queue_paused


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

    async def test_with_cancel_it_lingers(self) -> None:
        """C41."""
        clock = ManualClock()
        async with stage(memory(), clock=clock, patience=Patience(linger_s=15)) as staged:
            run_id, puppet = await staged.begin(on_disconnect="cancel")
            await clock.advance(14)
            assert puppet.cancelled == 0
            await clock.advance(2)
            assert await staged.outcome(run_id) == Stopped("disconnect")


class TestUnrecorded:
    async def test_it_is_shown_at_once_and_written_behind(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=0.0, recorded=False, on_disconnect="cancel")
            puppet = Puppet()

            async def make(_: Run) -> Source:
                return puppet

            live = staged.runs.start_unrecorded(run, make)
            await puppet.begun.wait()
            follower = staged.runs.follower(OWNER, run.id)
            puppet.say("now")
            entries = follower.take_nowait()
            assert entries is not None
            assert entries[-1].event == TextDelta("now")
            assert live.log.after(-1) is None
            live.pause()
            assert puppet.paused
            live.resume()
            assert not puppet.paused
            puppet.end()
            [last] = await follower.next()
            assert last.event == RunEnded(Completed("stop"))
            assert await follower.next() == ()
            follower.leave()
            await asyncio.sleep(0.2)
            assert await staged.store.run(OWNER, run.id) == live.run

    async def test_a_pause_before_the_source_is_there_holds(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=0.0, recorded=False)
            puppet = Puppet()

            async def make(_: Run) -> Source:
                return puppet

            live = staged.runs.start_unrecorded(run, make)
            live.pause()
            await puppet.begun.wait()
            assert puppet.paused
            live.resume()
            puppet.end()
            await live.task


async def die(staged: Stage) -> None:
    """Nothing is said, and nothing is cleaned up but what would outlive the test."""
    for run in list(staged.runs._live.values()):
        run.task.cancel()
        assert run._work is not None
        run._work.cancel()
    for task in list(staged.runs._tasks):
        task.cancel()
    await asyncio.sleep(0)
    await staged.store.close()


class TestCrashes:
    async def test_what_a_dead_worker_left_is_ended_once(self, make_store: MakeStore) -> None:
        """C51, for a worker that went without a word: its words are kept, its queue waits."""
        dead = Stage(await make_store(), SystemClock(), Patience(), 5.0)
        await dead.runs.open()
        run_id, puppet = await dead.begin("1", "s")
        queued = await dead.ask("2", "s", multitask="queue")
        assert isinstance(queued, Queued)
        puppet.say("half an ", "answer")
        live = dead.runs.live(run_id)
        assert live is not None
        await dead.settled(lambda: live.log.shown_seq == live.log.last_seq)
        await die(dead)
        async with stage(make_store) as staged:
            assert await staged.outcome(run_id) == Interrupted("crash")
            assert await staged.words(run_id) == ["half an ", "answer"]
            assert await staged.transcript("s") == [
                ("user", "1", "complete"),
                ("assistant", "half an answer", "partial"),
                ("notice", "interrupted", ""),
            ]
            again = await staged.runs.stop(OWNER, queued.run.id)
            assert again is not None
            assert again.run.outcome == Stopped("user")

    async def test_a_shutdown_lets_runs_finish_and_interrupts_the_rest(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            quick, puppet = await staged.begin()
            slow, other = await staged.begin(session_id="s")
            other.say("half")
            closing = asyncio.create_task(staged.runs.close(drain_s=0.2))
            await asyncio.sleep(0.01)
            puppet.say("x")
            puppet.end()
            await closing
            for run_id, outcome in ((quick, Completed("stop")), (slow, Interrupted("shutdown"))):
                run = await staged.store.run(OWNER, run_id)
                assert run is not None
                assert run.outcome == outcome


class Refusing:
    """A store that refuses to keep what it is handed, for as long as it is told to."""

    def __init__(self, store: object) -> None:
        self._store = store
        self.refuses = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def append(self, batch: Batch, committed: Committed) -> None:
        if self.refuses:
            raise StoreError("the disk is full", trouble="full")
        self._store.append(batch, committed)  # type: ignore[attr-defined]

    async def end(self, ending: object) -> object:
        if self.refuses:
            raise StoreError("the disk is full", trouble="full")
        return await self._store.end(ending)  # type: ignore[attr-defined]


async def test_a_store_that_refuses_closes_the_upstream_and_ends_nothing_until_it_can(make_store: MakeStore) -> None:
    refusing: list[Refusing] = []

    async def make() -> object:
        refusing.append(Refusing(await make_store()))
        return refusing[0]

    clock = ManualClock()
    async with stage(make, clock=clock) as staged:  # type: ignore[arg-type]
        run_id, puppet = await staged.begin(session_id="s")
        puppet.say("shown")
        follower = staged.runs.follower(OWNER, run_id)
        while follower.cursor < 2:
            await follower.next()
        refusing[0].refuses = True
        puppet.say(" and not shown")
        await clock.advance(0.1)
        assert puppet.cancelled == 1
        with pytest.raises(StoreError):
            await follower.next()
        run = await staged.store.run(OWNER, run_id)
        assert run is not None
        assert run.outcome is None
        refusing[0].refuses = False
        await clock.advance(1.1)
        assert await staged.outcome(run_id) == Interrupted("store")
        assert await staged.words(run_id) == ["shown", " and not shown"]
        follower.leave()


class TestTrouble:
    async def test_a_commit_that_fails_later_closes_the_upstream_too(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("shown")
            live = staged.runs.live(run_id)
            assert live is not None
            await staged.settled(lambda: live.log.shown_seq == live.log.last_seq)
            live._committed(live.log.shown_seq, StoreError("the disk is full", trouble="full"))
            await live.task
            assert await staged.outcome(run_id) == Interrupted("store")
            assert await staged.words(run_id) == ["shown"]

    async def test_a_run_that_was_ended_by_another_is_let_go(self) -> None:
        """A worker that was declared dead: what others have made of its run stands."""
        make_store = memory()
        clock = ManualClock()
        async with stage(make_store, clock=clock) as stale:
            run_id, puppet = await stale.begin(session_id="s")
            puppet.say("shown")
            follower = stale.runs.follower(OWNER, run_id)
            while follower.cursor < 2:
                await follower.next()
            async with stage(make_store) as other:
                await other.store.fence_dead()
                for worker in await other.store.workers():
                    if worker.id != other.store.worker_id:
                        await fence(other, worker.id)
                await other.runs._look()
                assert await other.outcome(run_id) == Interrupted("crash")
                await clock.advance(1.1)
                assert puppet.cancelled == 1
                rest = [entry.event for entry in await follower.next()]
                assert rest == [RunEnded(Interrupted("crash"))]
                assert await follower.next() == ()
                follower.leave()

    async def test_an_end_that_comes_too_late_finds_the_one_that_stands(self) -> None:
        make_store = memory()
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            live = staged.runs.live(run_id)
            assert live is not None
            await staged.settled(lambda: live.log.shown_seq == live.log.last_seq)
            tail = Batch(run_id, live.log.last_seq + 1, [encode_entry(Entry(2, 0.0, RunEnded(Stopped("user"))))])
            await staged.store.end(Ending(run_id=run_id, outcome=Stopped("user"), tail=tail))
            puppet.say("late")
            puppet.end()
            await live.task
            assert live.lost
            assert await staged.outcome(run_id) == Stopped("user")
            assert await staged.words(run_id) == []


async def fence(staged: Stage, worker_id: str) -> None:
    async with staged.store._write() as tx:  # type: ignore[attr-defined]
        worker = await tx.tables.worker(worker_id)
        await tx.tables.put_worker(replace(worker, fenced=True))


class TestSuspension:
    async def test_a_run_that_waits_is_no_workers_and_goes_on_from_its_log(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("before ")
            following = asyncio.create_task(staged.words(run_id))
            puppet.suspend()
            await staged.settled(lambda: staged.runs.live(run_id) is None)
            run = await staged.store.run(OWNER, run_id)
            assert run is not None
            assert run.state is RunState.WAITING
            del staged.puppets[run_id]
            started = await staged.store.claim(run_id)
            assert started is not None
            staged.runs._take_up(await resumed(staged.runs._habits, started.run))
            again = await staged.puppet(run_id)
            again.say("after")
            again.end()
            assert await staged.outcome(run_id) == Completed("stop")
            assert await following == ["before ", "after"]

    async def test_one_that_waits_can_be_stopped(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("half")
            puppet.suspend()
            await staged.settled(lambda: staged.runs.live(run_id) is None)
            answer = await staged.runs.stop(OWNER, run_id)
            assert answer is not None
            assert answer.run.outcome == Stopped("user")
            assert (answer.caused_by_this_call, answer.upstream_closed) == (True, True)
            assert await staged.transcript("s") == [
                ("user", "Hello", "complete"),
                ("assistant", "half", "partial"),
                ("notice", "stopped", ""),
            ]

    async def test_a_stop_in_the_moment_of_suspension_is_a_stop(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            puppet.suspend()
            live = staged.runs.live(run_id)
            assert live is not None
            await asyncio.sleep(0)
            live.stop(Stopped("user"))
            assert await staged.outcome(run_id) == Stopped("user")
