"""Several messages to one session at once: refused, queued, or in the place of what runs (C52)."""

import pytest

from headwater.events import Failed, Incomplete, Outcome, Stopped
from headwater.lifecycle import RunState
from headwater.records import StopRequest
from headwater.store.results import Busy, EndStands, Queued, Start, Started
from headwater.testing.store_suite.making import (
    OWNER,
    Backend,
    a_notice,
    a_run,
    answered,
    ended,
    ended_well,
    kept,
    said,
    started,
    tokens,
)

USER_STOP = StopRequest("user", 5.0)
FAILED = Failed("upstream_error", "it broke")


class QueueTests:
    async def test_the_next_starts_in_order_when_the_active_one_completes(self, backend: Backend) -> None:
        """C52, `queue`: what was said enters the tree when its turn comes, behind the answer before it."""
        store = await backend.worker()
        first = await started(store, session_id="s", messages=(said("one"),))
        for n, text in enumerate(("two", "three")):
            ask = Start(run=a_run(session_id="s"), messages=(said(text),), multitask="queue")
            result = await store.start(ask)
            assert isinstance(result, Queued)
            assert (result.ahead, result.run.state) == (n, RunState.QUEUED)
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert len(transcript.messages) == 1
        answer = answered("yes")
        following = (await ended_well(store, first.run.id, messages=(answer,))).next
        assert following is not None
        assert following.run == (await store.transcript(OWNER, "s") or transcript).active
        assert [(m.parent_id, m.id) for m in following.messages] == [(answer.id, transcript.queue[0].messages[0].id)]
        assert await kept(store, tokens(following.run.id, 0)) == [None]
        last = (await ended_well(store, following.run.id, Incomplete("length"))).next
        assert last is not None
        assert last.run.id == transcript.queue[1].run.id

    @pytest.mark.parametrize("outcome", [Stopped("user"), FAILED])
    async def test_a_stop_or_failure_pauses_the_queue_until_somebody_resumes_it(
        self, backend: Backend, outcome: Outcome
    ) -> None:
        """C52: visibly."""
        store = await backend.worker()
        first = await started(store, session_id="s")
        queued = await store.start(Start(run=a_run(session_id="s"), multitask="queue"))
        assert isinstance(queued, Queued)
        assert (await ended_well(store, first.run.id, outcome)).next is None
        session = await store.session(OWNER, "s")
        assert session is not None
        assert session.queue_paused
        assert await store.ready() == ()
        assert await store.claim(queued.run.id) is None
        # Who wants to be part of the queue waits with it; who does not, does not.
        assert isinstance(await store.start(Start(run=a_run(session_id="s"), multitask="queue")), Queued)
        second = await started(store, session_id="s")
        assert (await ended_well(store, second.run.id)).next is None
        resumed = await store.resume_queue(OWNER, "s")
        assert isinstance(resumed, Started)
        assert resumed.run.id == queued.run.id
        assert await store.resume_queue(OWNER, "s") is None
        assert (await ended_well(store, resumed.run.id)).next is not None

    async def test_a_worker_that_shuts_down_leaves_the_queue_to_the_next(self, backend: Backend) -> None:
        """C51: queued runs are still queued."""
        store = await backend.worker()
        first = await started(store, session_id="s")
        queued = [await store.start(Start(run=a_run(session_id="s"), multitask="queue")) for _ in range(2)]
        ids = [result.run.id for result in queued if isinstance(result, Queued)]
        assert await store.claim(ids[0]) is None
        assert (await ended_well(store, first.run.id, take_next=False)).next is None
        assert [run.id for run in await store.ready()] == ids[:1]
        assert isinstance(await store.start(Start(run=a_run(session_id="s"))), Busy)
        assert await store.claim(ids[1]) is None
        claimed = await store.claim(ids[0])
        assert claimed is not None
        assert claimed.run.worker_id == store.worker_id
        assert await store.ready() == ()

    async def test_who_interrupts_comes_next_whatever_becomes_of_the_active_one(self, backend: Backend) -> None:
        """C52, `interrupt`."""
        store = await backend.worker()
        orders: list[str] = []
        store.watch_orders(orders.append)
        first = await started(store, session_id="s")
        await store.ask_stop(OWNER, first.run.id, USER_STOP)
        await store.start(Start(run=a_run(session_id="s"), multitask="queue"))
        result = await store.start(Start(run=a_run(session_id="s"), multitask="interrupt"))
        assert isinstance(result, Queued)
        assert result.stopping is not None
        assert result.stopping.id == first.run.id
        assert result.ahead == 0
        assert orders == [first.run.id, first.run.id]
        ending = await ended_well(store, first.run.id, FAILED)
        assert ending.next is not None
        assert ending.next.run.id == result.run.id
        # Nor is the rest of the queue held up.
        assert (await ended_well(store, result.run.id)).next is not None

    async def test_of_several_that_interrupt_the_last_one_wins(self, backend: Backend) -> None:
        """C52: who has not begun is replaced as the one that runs is. What is queued stays."""
        store = await backend.worker()
        first = await started(store, session_id="s")
        waiting = a_run(session_id="s")
        await store.start(Start(run=waiting, multitask="queue"))
        asked = [a_run(session_id="s") for _ in range(3)]
        results = [await store.start(Start(run=run, messages=(said("x"),), multitask="interrupt")) for run in asked]
        replaced = [[run.id for run in result.replaced] for result in results if isinstance(result, Queued)]
        assert replaced == [[], [asked[0].id], [asked[1].id, asked[0].id]]
        for run in asked[:2]:
            stops = await store.run(OWNER, run.id)
            assert stops is not None
            assert stops.stop is not None
            assert stops.stop.reason == "replaced"
            assert (await ended_well(store, run.id, Stopped("replaced"))).next is None
        ending = await ended_well(store, first.run.id, Stopped("replaced"))
        assert ending.next is not None
        assert ending.next.run.id == asked[2].id
        ending = await ended_well(store, asked[2].id)
        assert ending.next is not None
        assert ending.next.run.id == waiting.id
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert [message.run_id for message in transcript.messages] == [asked[2].id]

    async def test_a_pause_ends_with_the_last_of_the_queue(self, backend: Backend) -> None:
        """Else what is queued next would wait for nobody knows what."""
        store = await backend.worker()

        async def queue() -> str:
            result = await store.start(Start(run=a_run(session_id="s"), multitask="queue"))
            assert isinstance(result, Queued)
            return result.run.id

        first = await started(store, session_id="s")
        waiting = [await queue(), await queue()]
        await ended_well(store, first.run.id, FAILED)
        second = await started(store, session_id="s")
        await ended_well(store, waiting[0], Stopped("user"))
        session = await store.session(OWNER, "s")
        assert session is not None
        assert session.queue_paused
        interrupting = await store.start(Start(run=a_run(session_id="s"), multitask="interrupt"))
        assert isinstance(interrupting, Queued)
        await ended_well(store, waiting[1], Stopped("user"))
        assert (await ended_well(store, second.run.id, Stopped("replaced"))).next is not None
        waiting = [await queue()]
        assert (await ended_well(store, interrupting.run.id)).next is not None
        more = await queue()
        await ended_well(store, waiting[0], FAILED)
        await ended_well(store, more, Stopped("user"))
        last = await started(store, session_id="s")
        await queue()
        assert (await ended_well(store, last.run.id)).next is not None

    async def test_a_run_that_waits_for_a_person_makes_way_too(self, backend: Backend) -> None:
        store = await backend.worker()
        first = await started(store, session_id="s")
        await store.release(first.run.id)
        result = await store.start(Start(run=a_run(session_id="s"), multitask="interrupt"))
        assert isinstance(result, Queued)
        assert result.stopping is not None
        assert result.stopping.state is RunState.WAITING
        ending = await ended_well(store, first.run.id, Stopped("replaced"))
        assert ending.next is not None
        assert ending.next.run.id == result.run.id

    async def test_interrupting_nothing_is_a_start(self, backend: Backend) -> None:
        store = await backend.worker()
        assert isinstance(
            await store.start(Start(run=a_run(session_id="s"), create_session=True, multitask="interrupt")), Started
        )

    async def test_one_that_is_taken_out_of_the_queue_leaves_nothing_in_the_transcript(self, backend: Backend) -> None:
        """C42: stopped while it was queued."""
        store = await backend.worker()
        first = await started(store, session_id="s")
        queued = await store.start(Start(run=a_run(session_id="s"), messages=(said("no"),), multitask="queue"))
        assert isinstance(queued, Queued)
        asked = await store.ask_stop(OWNER, queued.run.id, USER_STOP)
        assert asked is not None
        assert asked.run.state is RunState.QUEUED
        assert isinstance(await ended(store, queued.run.id, Stopped("user"), notices=(a_notice(),)), EndStands)
        transcript = await store.transcript(OWNER, "s")
        assert transcript is not None
        assert (transcript.queue, transcript.messages, transcript.notices) == ((), (), ())
        assert (await ended_well(store, first.run.id)).next is None
