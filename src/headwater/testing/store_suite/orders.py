"""What others want of a run: that it stops, that it may go on. And runs that wait for that."""

from headwater.events import Completed, Stopped
from headwater.lifecycle import RunState
from headwater.records import Approval, IdempotencyKey, StopRequest
from headwater.store.results import Busy, EndStands, KeyMismatch, Missing, Replayed, Start
from headwater.testing.store_suite.making import (
    OWNER,
    Backend,
    a_run,
    ended,
    ended_well,
    kept,
    logged,
    said,
    started,
    tail,
    tokens,
)

USER_STOP = StopRequest("user", 5.0)
YES = Approval(call_id="call_1", decision="yes", by=OWNER, at=5.0)


class StopTests:
    async def test_the_worker_that_has_the_run_is_told(self, backend: Backend) -> None:
        store = await backend.worker()
        orders: list[str] = []
        unwatch = store.watch_orders(orders.append)
        run = (await started(store)).run
        result = await store.ask_stop(OWNER, run.id, USER_STOP)
        assert result is not None
        assert (result.first, result.run.stop, orders) == (True, USER_STOP, [run.id])
        assert [run.stop for run in await store.mine()] == [USER_STOP]
        unwatch()

    async def test_a_second_one_changes_nothing(self, backend: Backend) -> None:
        """C47."""
        store = await backend.worker()
        run = (await started(store)).run
        await store.ask_stop(OWNER, run.id, USER_STOP)
        result = await store.ask_stop(OWNER, run.id, StopRequest("disconnect", 6.0))
        assert result is not None
        assert (result.first, result.run.stop) == (False, USER_STOP)

    async def test_after_the_end_it_is_told_the_outcome(self, backend: Backend) -> None:
        """C47, C49."""
        store = await backend.worker()
        run = (await started(store)).run
        await ended_well(store, run.id)
        result = await store.ask_stop(OWNER, run.id, USER_STOP)
        assert result is not None
        assert (result.first, result.run.outcome, result.run.stop) == (False, Completed(), None)

    async def test_one_that_is_sent_early_sticks_and_hits_no_other_run(self, backend: Backend) -> None:
        """C48: whoever takes the run up finds it."""
        store = await backend.worker()
        first = await started(store, session_id="s")
        queued = a_run(session_id="s")
        await store.start(Start(run=queued, messages=(said("two"),), multitask="queue"))
        await store.ask_stop(OWNER, queued.id, USER_STOP)
        result = await ended_well(store, first.run.id)
        assert result.next is not None
        assert (result.run.stop, result.next.run.stop) == (None, USER_STOP)

    async def test_of_another_owner_there_is_no_such_run(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        assert await store.ask_stop("bob", run.id, USER_STOP) is None
        assert await store.ask_stop(None, run.id, USER_STOP) is not None


class WaitingTests:
    async def test_one_that_waits_is_nobodys_and_can_be_taken_up_where_it_stood(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store, session_id="s")).run
        await kept(store, tokens(run.id, 0, 3))
        store.append(tokens(run.id, 3), lambda *_: None)
        assert await store.release(run.id, until=9.0)
        waiting = await store.run(OWNER, run.id)
        assert waiting is not None
        assert (waiting.state, waiting.worker_id, waiting.waits_until) == (RunState.WAITING, None, 9.0)
        assert await store.start(Start(run=a_run(session_id="s"))) == Busy(waiting)
        claimed = await store.claim(run.id)
        assert claimed is not None
        assert (claimed.run.worker_id, claimed.messages) == (store.worker_id, ())
        await kept(store, tokens(run.id, 4))
        await ended_well(store, run.id, tail=tail(run.id, 5))
        assert len(await logged(store, run.id)) == 6

    async def test_it_can_be_given_up_and_taken_up_only_once(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        assert await store.claim(run.id) is None
        assert await store.release(run.id)
        assert not await store.release(run.id)
        assert await store.claim(run.id) is not None
        assert await store.claim(run.id) is None
        assert await store.claim("run_none") is None

    async def test_a_stop_ends_it_at_once(self, backend: Backend) -> None:
        """C42: no worker has it, so whoever was asked ends it."""
        store = await backend.worker()
        run = (await started(store)).run
        await store.release(run.id)
        asked = await store.ask_stop(OWNER, run.id, USER_STOP)
        assert asked is not None
        assert asked.run.state is RunState.WAITING
        assert isinstance(await ended(store, run.id, Stopped("user")), EndStands)
        assert await store.claim(run.id) is None

    async def test_one_whose_time_is_over_or_that_is_to_stop_is_ready(self, backend: Backend) -> None:
        store = await backend.worker()
        late, stopped, patient = [(await started(store)).run for _ in range(3)]
        now = backend.clock.unix_s()
        await store.release(late.id, until=now + 10)
        await store.release(stopped.id, until=now + 100)
        await store.release(patient.id)
        assert await store.ready() == ()
        await backend.clock.advance(10)
        await store.ask_stop(OWNER, stopped.id, USER_STOP)
        assert {run.id for run in await store.ready()} == {late.id, stopped.id}


class ApprovalsTests:
    async def test_the_first_answer_stands(self, backend: Backend) -> None:
        store = await backend.worker()
        orders: list[str] = []
        store.watch_orders(orders.append)
        run = (await started(store)).run
        assert await store.approve(OWNER, run.id, YES) == YES
        no = Approval(call_id="call_1", decision="no", by=OWNER, at=6.0)
        assert await store.approve(OWNER, run.id, no) == YES
        other = Approval(call_id="call_2", decision="no", by=OWNER, at=7.0, remember="session")
        assert await store.approve(OWNER, run.id, other) == other
        assert await store.approvals(run.id) == (YES, other)
        assert orders == [run.id, run.id]

    async def test_one_that_is_sent_again_is_recognised(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        key = IdempotencyKey("k", "digest")
        assert await store.approve(OWNER, run.id, YES, key) == YES
        assert await store.approve(OWNER, run.id, YES, key) == Replayed("call_1")
        assert await store.approve(OWNER, run.id, YES, IdempotencyKey("k", "other")) == KeyMismatch("call_1")

    async def test_there_is_nothing_to_approve_of_anothers_run_or_one_that_has_ended(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        assert await store.approve("bob", run.id, YES) == Missing("run")
        await ended_well(store, run.id)
        assert await store.approve(OWNER, run.id, YES) == Missing("run")
        assert await store.approvals(run.id) == ()

    async def test_a_run_that_waits_is_told_through_the_log_of_whoever_takes_it_up(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        await store.release(run.id)
        assert await store.approve(OWNER, run.id, YES) == YES
        assert await store.claim(run.id) is not None
        assert await store.approvals(run.id) == (YES,)

    async def test_an_answer_makes_a_run_that_waits_ready_for_any_worker(self, backend: Backend) -> None:
        store = await backend.worker()
        run, silent = [(await started(store)).run for _ in range(2)]
        for one in (run, silent):
            assert await store.release(one.id, backend.clock.unix_s() + 100, ["call_1"])
        assert await store.ready() == ()
        await store.approve(OWNER, run.id, YES)
        # As another worker, or the next one, sees it.
        other = await backend.worker()
        assert [found.id for found in await other.ready()] == [run.id]
        assert await other.claim(run.id) is not None
        assert await other.ready() == ()

    async def test_an_answer_that_came_before_it_began_to_wait_is_not_slept_over(self, backend: Backend) -> None:
        store = await backend.worker()
        run, other = [(await started(store)).run for _ in range(2)]
        for one in (run, other):
            await store.approve(OWNER, one.id, YES)
        assert await store.release(run.id, backend.clock.unix_s() + 100, ["call_1"])
        # This one was answered, and waits for another now.
        assert await store.release(other.id, backend.clock.unix_s() + 100, ["call_2"])
        assert [found.id for found in await store.ready()] == [run.id]
