"""Workers: one that was declared dead writes nothing, and what it had is ended once by another."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from headwater.errors import StoreError
from headwater.events import Completed, Interrupted, Stopped
from headwater.lifecycle import RunState
from headwater.records import Approval, StopRequest
from headwater.store.results import Changed, EndLost, EndStands, Start
from headwater.testing.store_suite.making import (
    OWNER,
    Backend,
    a_run,
    a_session,
    answered,
    ended,
    ended_well,
    kept,
    logged,
    said,
    started,
    succeed,
    tail,
    tokens,
)

CRASH = Interrupted("crash")


async def refused(waiting: Any) -> None:
    with pytest.raises(StoreError) as raised:
        await waiting
    assert raised.value.trouble == "fenced"


class FencingTests:
    async def test_a_fenced_worker_can_write_nothing(self, backend: Backend) -> None:
        old = await backend.worker()
        run = (await started(old, session_id="s", messages=(said("one"),))).run
        await kept(old, tokens(run.id, 0))
        new = await succeed(backend)
        (trouble,) = await kept(old, tokens(run.id, 1))
        assert trouble is not None
        assert trouble.trouble == "fenced"
        await refused(old.start(Start(run=a_run())))
        await refused(old.beat())
        await refused(old.create_session(a_session()))
        await refused(ended(old, run.id))
        old.append(tokens(run.id, 1), lambda *_: None)
        await refused(ended(old, run.id))
        assert len(await logged(new, run.id)) == 1

    async def test_what_it_had_is_ended_once_by_whoever_finds_it(self, backend: Backend) -> None:
        """C51."""
        old = await backend.worker()
        run = (await started(old, session_id="s", messages=(said("one"),))).run
        await kept(old, tokens(run.id, 0))
        waiting = (await started(old)).run
        await old.release(waiting.id)
        await old.start(Start(run=a_run(session_id="s"), multitask="queue"))
        new = await succeed(backend)
        assert await new.abandoned() == (run,)
        partial = answered("t0 ", status="partial")
        result = await ended(new, run.id, CRASH, tail=tail(run.id, 1, CRASH), messages=(partial,))
        assert isinstance(result, EndStands)
        assert result.next is None
        assert await new.abandoned() == ()
        again = await ended(new, run.id, CRASH, tail=tail(run.id, 1, CRASH), messages=(partial,))
        assert isinstance(again, EndLost)
        transcript = await new.transcript(OWNER, "s")
        assert transcript is not None
        assert [message.id for message in transcript.messages[1:]] == [partial.id]
        assert (transcript.session.queue_paused, len(transcript.queue)) == (True, 1)
        still = await new.run(OWNER, waiting.id)
        assert still is not None
        assert still.state is RunState.WAITING

    async def test_a_worker_that_leaves_gives_up_what_it_had(self, backend: Backend) -> None:
        old = await backend.worker()
        run = (await started(old)).run
        old.append(tokens(run.id, 0), lambda *_: None)
        note = a_run(state=RunState.ENDED, outcome=Completed(), recorded=False)
        old.note(note)
        await old.close()
        new = await backend.worker()
        assert [found.id for found in await new.abandoned()] == [run.id]
        assert len(await logged(new, run.id)) == 1
        assert await new.run(OWNER, note.id) == note
        await ended_well(new, run.id, CRASH)

    async def test_one_that_was_fenced_can_still_be_closed(self, backend: Backend) -> None:
        old = await backend.worker()
        note = a_run(state=RunState.ENDED, outcome=Completed(), recorded=False)
        new = await succeed(backend)
        old.note(note)
        await old.close()
        assert await new.run(OWNER, note.id) is None

    async def test_the_dead_are_forgotten_once_nothing_is_left_of_them(self, backend: Backend) -> None:
        old = await backend.worker()
        run = (await started(old)).run
        new = await succeed(backend)
        await new.tidy(1e9)
        assert [(worker.id, worker.fenced) for worker in await new.workers()] == [
            (old.worker_id, True),
            (new.worker_id, False),
        ]
        await ended_well(new, run.id, CRASH)
        await new.tidy(1e9)
        assert [worker.id for worker in await new.workers()] == [new.worker_id]
        await refused(old.beat())

    async def test_a_living_worker_passes_its_check(self, backend: Backend) -> None:
        store = await backend.worker()
        await store.check()
        assert await store.fence_dead() == ()


class SharingTests:
    """Several that live at once."""

    async def test_who_beats_is_alive_and_who_does_not_is_fenced(self, backend: Backend) -> None:
        first, second, third = [await backend.worker() for _ in range(3)]
        for _ in range(2):
            await second.beat()
            assert await second.fence_dead() == ()
            await backend.clock.advance(10)
            await first.beat()
        assert [worker.id for worker in await second.fence_dead()] == [third.worker_id]
        await first.beat()
        await refused(third.beat())

    async def test_who_was_not_heard_of_itself_declares_nobody_dead(self, backend: Backend) -> None:
        """The store may have been away for everybody: those who live are heard of before a lease is over."""
        first, second = await backend.worker(), await backend.worker()
        await backend.clock.advance(100)
        await first.beat()
        assert await first.fence_dead() == ()
        await backend.clock.advance(5)
        await second.beat()
        await first.beat()
        await backend.clock.advance(10)
        assert await first.fence_dead() == ()
        await backend.clock.advance(10)
        assert await first.fence_dead() == ()
        await first.beat()
        for _ in range(2):
            assert await first.fence_dead() == ()
            await backend.clock.advance(10)
            await first.beat()
        assert [worker.id for worker in await first.fence_dead()] == [second.worker_id]

    async def test_clocks_of_other_machines_do_not_matter(self, backend: Backend) -> None:
        first, second = await backend.worker(), await backend.worker()
        async with backend.database.writing() as tables:
            for worker in await tables.workers():
                ahead_s = 1e6 if worker.id == second.worker_id else 0.0
                await tables.put_worker(replace(worker, beat_at=worker.beat_at - 1e6 + 2 * ahead_s))
        await first.beat()
        assert await first.fence_dead() == ()
        await backend.clock.advance(10)
        await first.beat()
        await backend.clock.advance(10)
        await first.beat()
        assert [worker.id for worker in await first.fence_dead()] == [second.worker_id]

    async def test_one_whose_process_is_known_to_have_ended_is_not_waited_for(self, backend: Backend) -> None:
        first, second, third = [await backend.worker() for _ in range(3)]
        known = (first.worker_id, second.worker_id, "wrk_unheard_of")
        assert [worker.id for worker in await third.fence_dead(known)] == [first.worker_id, second.worker_id]
        assert await third.fence_dead(known) == ()
        await refused(first.beat())

    async def test_a_run_of_a_living_worker_is_nobody_elses_to_end(self, backend: Backend) -> None:
        first, second = await backend.worker(), await backend.worker()
        run = (await started(first)).run
        assert await ended(second, run.id, CRASH) == EndLost(run)
        assert not await second.release(run.id)
        assert await second.abandoned() == ()
        assert isinstance(await ended(first, run.id), EndStands)

    async def test_two_that_want_the_same_waiting_run_do_not_both_get_it(self, backend: Backend) -> None:
        first, second = await backend.worker(), await backend.worker()
        run = (await started(first)).run
        await kept(first, tokens(run.id, 0))
        await first.release(run.id)
        found = await asyncio.gather(first.claim(run.id), second.claim(run.id))
        assert sum(one is not None for one in found) == 1

    async def test_two_that_tidy_up_at_once_drop_each_log_once(self, backend: Backend) -> None:
        first, second = await backend.worker(), await backend.worker()
        for _ in range(3):
            await ended_well(first, (await started(first)).run.id)
        assert sum(await asyncio.gather(first.tidy(0.0), second.tidy(0.0))) == 3

    async def test_a_run_can_be_followed_from_another_worker(self, backend: Backend) -> None:
        first, second = await backend.worker(), await backend.worker()
        run = (await started(first)).run
        told = asyncio.Event()
        second.watch_run(run.id, told.set)
        await kept(first, tokens(run.id, 0))
        await told.wait()
        assert len(await logged(second, run.id)) == 1

    async def test_who_follows_at_another_worker_is_known_to_the_one_that_has_the_run(self, backend: Backend) -> None:
        first, second = await backend.worker(), await backend.worker()
        run = (await started(first)).run
        other = (await started(second)).run
        leave = second.watch_run(run.id, lambda: None)
        second.watch_run(other.id, lambda: None)
        assert await first.followed_elsewhere() == frozenset()
        for _ in range(2):
            await second.tell_following()
            await first.tell_following()
            assert await first.followed_elsewhere() == {run.id}
            assert await second.followed_elsewhere() == frozenset()
        leave()
        await second.tell_following()
        assert await first.followed_elsewhere() == frozenset()
        second.watch_run(run.id, lambda: None)
        await second.tell_following()
        assert await first.followed_elsewhere() == {run.id}
        await first.fence_dead({second.worker_id})
        assert await first.followed_elsewhere() == frozenset()
        await ended_well(first, other.id, CRASH)
        await first.tidy(1e9)
        await ended_well(first, run.id)

    async def test_orders_travel_to_the_worker_that_has_the_run(self, backend: Backend) -> None:
        first, second = await backend.worker(), await backend.worker()
        run = (await started(first)).run
        orders: asyncio.Queue[str] = asyncio.Queue()
        first.watch_orders(orders.put_nowait)
        second.watch_orders(lambda _: pytest.fail("it has no run"))
        await second.ask_stop(OWNER, run.id, StopRequest("user", 1.0))
        assert await orders.get() == run.id
        await second.approve(OWNER, run.id, Approval(call_id="c", decision="yes", by=OWNER, at=1.0))
        assert await orders.get() == run.id
        assert (await first.mine())[0].stop == StopRequest("user", 1.0)
        await ended_well(first, run.id, Stopped("user"))

    async def test_changes_are_heard_of_everywhere(self, backend: Backend) -> None:
        first, second = await backend.worker(), await backend.worker()
        told: asyncio.Queue[Changed] = asyncio.Queue()
        second.watch_owner(OWNER, told.put_nowait)
        await first.create_session(a_session(id="s"))
        assert await told.get() == Changed("session", "s")
