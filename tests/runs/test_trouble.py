"""Whatever goes wrong: in the source, in a follower, in the store, in the process (C51)."""

import asyncio
import contextlib
import logging

import pytest
from msgspec.structs import replace

from headwater.clock import SystemClock
from headwater.errors import CallerError, StoreError
from headwater.events import (
    Completed,
    Entry,
    Failed,
    Interrupted,
    ProviderState,
    RunEnded,
    Stopped,
    encode_entry,
)
from headwater.lifecycle import RunState
from headwater.records import Run
from headwater.runs.unfollowed import Patience
from headwater.source import Ended, Sink, Suspended
from headwater.store.results import Batch, Committed, Ending, Queued, Start, Started
from headwater.store.tables import Transaction
from headwater.testing import ManualClock
from tests.runs.puppets import OWNER, MakeStore, Puppet, Stage, memory, new_id, stage

pytestmark = pytest.mark.anyio


def fail() -> None:
    raise RuntimeError("of the test")


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

    async def ask_stop(self, *args: object) -> object:
        if self.refuses:
            raise StoreError("the disk is full", trouble="full")
        return await self._store.ask_stop(*args)  # type: ignore[attr-defined]


class TestWhateverGoesWrong:
    """A run that has begun has an ending."""

    async def test_half_a_character_is_no_reason_to_stay_for_ever(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("ok \ud83d")
            puppet.end()
            assert await staged.outcome(run_id) == Completed("stop")
            assert await staged.words(run_id) == ["ok \ufffd"]

    async def test_what_cannot_be_kept_at_all_ends_without_it(
        self, make_store: MakeStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            with caplog.at_level(logging.ERROR), contextlib.suppress(Exception):
                puppet.emit(ProviderState("chat", {"never": object()}))
            puppet.end()
            outcome = await staged.outcome(run_id)
            assert isinstance(outcome, Failed)
            assert "could not be kept" in outcome.message
            assert isinstance(await staged.ask("Again", "s"), Started)

    async def test_a_stop_stands_also_if_the_sources_cleanup_raises(self, make_store: MakeStore) -> None:
        """C42, C71."""

        class Clumsy(Puppet):
            async def run(self, sink: Sink) -> Ended | Suspended:
                try:
                    return await super().run(sink)
                except asyncio.CancelledError:
                    raise ConnectionResetError("while cleaning up") from None

        async with stage(make_store) as staged:
            staged.next_puppet = Clumsy
            run_id, _ = await staged.begin()
            answer = await staged.runs.stop(OWNER, run_id)
            assert answer is not None
            assert answer.run.outcome == Stopped("user")
            assert answer.caused_by_this_call

    async def test_a_source_that_is_cancelled_from_within_has_failed(self, make_store: MakeStore) -> None:
        class Suicidal(Puppet):
            async def run(self, sink: Sink) -> Ended | Suspended:
                raise asyncio.CancelledError

        async with stage(make_store) as staged:
            staged.next_puppet = Suicidal
            result = await staged.ask()
            assert isinstance(result, Started)
            outcome = await staged.outcome(result.run.id)
            assert isinstance(outcome, Failed)
            assert outcome.reason == "agent_error"

    async def test_one_follower_that_breaks_keeps_nobody_from_the_news(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            reported: list[object] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
            run_id, puppet = await staged.begin()
            broken = staged.runs.follower(OWNER, run_id)
            broken.on_news(fail)
            words = asyncio.create_task(staged.words(run_id))
            await asyncio.sleep(0.01)
            puppet.say("x")
            puppet.end()
            assert await words == ["x"]
            assert reported
            broken.leave()

    async def test_a_run_that_nobody_has_is_ended(self, make_store: MakeStore) -> None:
        """The store says that it is ours and running; the answer that said so never arrived."""
        async with stage(make_store) as staged:
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=1.0)
            await staged.store.start(Start(run=run))
            await staged.runs._look()
            found = await staged.store.run(OWNER, run.id)
            assert found is not None
            assert found.outcome is None
            await staged.runs._look()
            assert await staged.outcome(run.id) == Interrupted("crash")

    async def test_a_start_whose_client_has_gone_begins_all_the_same(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            asking = asyncio.create_task(staged.ask(session_id="s"))
            await asyncio.sleep(0)
            asking.cancel()
            await staged.settled(lambda: bool(staged.puppets))

    async def test_a_stop_is_obeyed_also_if_it_cannot_be_kept(self) -> None:
        """What it costs must not go on."""
        refusing: list[Refusing] = []

        async def make() -> object:
            refusing.append(Refusing(await memory()()))
            return refusing[0]

        async with stage(make) as staged:  # type: ignore[arg-type]
            run_id, puppet = await staged.begin()
            refusing[0].refuses = True
            with pytest.raises(StoreError):
                await staged.runs.stop(OWNER, run_id)
            await staged.settled(lambda: puppet.cancelled == 1)
            refusing[0].refuses = False

    async def test_work_that_is_done_now_and_then_goes_on_after_a_fault(self) -> None:
        clock = ManualClock()
        async with stage(memory(), clock=clock) as staged:
            times = 0

            async def faulty() -> None:
                nonlocal times
                times += 1
                raise ValueError("of the test")

            task = asyncio.create_task(staged.runs._every(1.0, faulty))
            await clock.advance(5.5)
            task.cancel()
            assert times == 5

    async def test_no_new_work_while_shutting_down(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            _, puppet = await staged.begin("1", "s")
            queued = await staged.ask("2", "s", multitask="queue")
            assert isinstance(queued, Queued)
            staged.runs.drain()
            with pytest.raises(CallerError) as caught:
                await staged.ask("3")
            assert caught.value.status == 503
            puppet.say("x")
            puppet.end()
            await staged.runs.settle()
            await asyncio.sleep(0.01)
            assert queued.run.id not in staged.puppets
            found = await staged.store.run(OWNER, queued.run.id)
            assert found is not None
            assert found.state is RunState.QUEUED

    async def test_an_outcome_is_told_also_after_its_log_was_dropped(self, make_store: MakeStore) -> None:
        """C55."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            puppet.end()
            await staged.outcome(run_id)
            await asyncio.sleep(0.01)
            await staged.store.tidy(0.0)
            assert await staged.outcome(run_id) == Completed("stop")
            with pytest.raises(StoreError):
                await staged.runs.follower(OWNER, run_id).next()


async def die(staged: Stage) -> None:
    """Nothing is said, and nothing is cleaned up but what would outlive the test."""
    for run in list(staged.runs._live.values()):
        run.abandon()
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


async def fence(staged: Stage, worker_id: str) -> None:
    async def work(tx: Transaction) -> None:
        worker = await tx.tables.worker(worker_id)
        assert worker is not None
        await tx.tables.put_worker(replace(worker, fenced=True))

    await staged.store._write(work)  # type: ignore[attr-defined]


class TestTrouble:
    async def test_a_commit_that_fails_later_closes_the_upstream_too(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("shown")
            live = staged.runs.live(run_id)
            assert live is not None
            await staged.settled(lambda: live.log.shown_seq == live.log.last_seq)
            live._committed(live.log.shown_seq, StoreError("the disk is full", trouble="full"))
            await live.over
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
            await live.over
            assert live.lost
            assert await staged.outcome(run_id) == Stopped("user")
            assert await staged.words(run_id) == []
