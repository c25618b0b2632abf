"""Logs: what is said to be kept can be read, from any place, once and in order."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from headwater.errors import StoreError
from headwater.events import Completed, Stopped, decode_entry
from headwater.lifecycle import RunState
from headwater.records import Run, RunBody, StopRequest
from headwater.store.base import Store
from headwater.store.results import Busy, EndLost, LogSlice, Missing, Page, StopStands
from headwater.testing.store_suite.making import (
    OWNER,
    Backend,
    a_run,
    ended,
    ended_well,
    kept,
    logged,
    started,
    tail,
    tokens,
)


class LogTests:
    async def test_what_was_told_to_be_kept_is_read_as_it_was_written(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        batch = tokens(run.id, 0, 3)
        assert await kept(store, batch) == [None]
        piece = await store.read(OWNER, run.id)
        assert piece is not None
        assert (piece.run, piece.last_seq) == (run, 2)
        assert [list(batch.entries) for batch in piece.batches] == [list(batch.entries)]

    async def test_it_is_read_from_any_cursor_in_pieces_of_any_size(self, backend: Backend) -> None:
        """C50."""
        store = await backend.worker()
        run = (await started(store)).run
        for first, number in ((0, 1), (1, 4), (5, 2), (7, 3)):
            await kept(store, tokens(run.id, first, number))
        for after in range(-1, 11):
            found = [decode_entry(entry).seq for entry in await logged(store, run.id, after)]
            assert found == list(range(after + 1, 10))

    async def test_what_comes_before_a_commit_is_one_batch_and_is_told_of_once(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        told: list[tuple[int, StoreError | None]] = []
        done = asyncio.Event()

        def committed(*args: Any) -> None:
            told.append(args)
            done.set()

        for n in range(3):
            store.append(tokens(run.id, n), committed)
        await done.wait()
        piece = await store.read(OWNER, run.id)
        assert piece is not None
        assert (told, len(piece.batches)) == ([(2, None)], 1)

    async def test_what_waits_when_a_run_ends_is_kept_once_and_before_its_last_words(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        await kept(store, tokens(run.id, 0, 2))
        told: list[int] = []
        store.append(tokens(run.id, 2, 3), lambda seq, trouble: told.append(seq))
        await ended_well(store, run.id, tail=tokens(run.id, 5, 2))
        assert [decode_entry(entry).seq for entry in await logged(store, run.id)] == list(range(7))
        piece = await store.read(OWNER, run.id, 10)
        assert piece is not None
        assert (piece.last_seq, piece.run.last_seq) == (6, 6)
        # Before the end, or not at all: the end says it of all that was handed over.
        before = list(told)
        await asyncio.sleep(0.01)
        assert (before, told) in (([], []), ([4], [4]))
        assert [decode_entry(entry).seq for entry in await logged(store, run.id)] == list(range(7))

    @pytest.mark.parametrize("first", range(5))
    async def test_what_waits_and_is_brought_again_is_there_once(self, backend: Backend, first: int) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        await kept(store, tokens(run.id, 0, 2))
        store.append(tokens(run.id, 2, 2), lambda *_: None)
        await ended_well(store, run.id, tail=tokens(run.id, first, 6 - first))
        assert await logged(store, run.id) == list(tokens(run.id, 0, 6).entries)

    @pytest.mark.parametrize(("first", "number"), [(0, 1), (1, 1), (1, 2), (5, 1)])
    async def test_an_end_that_leaves_out_what_waits_is_refused(
        self, backend: Backend, first: int, number: int
    ) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        store.append(tokens(run.id, 0, 4), lambda *_: None)
        with pytest.raises(ValueError, match="goes on at 4"):
            await ended(store, run.id, tail=tokens(run.id, first, number))
        await ended_well(store, run.id, tail=tokens(run.id, 4))
        assert await logged(store, run.id) == list(tokens(run.id, 0, 5).entries)

    async def test_an_end_that_does_not_stand_leaves_what_waits_to_be_kept(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        store.append(tokens(run.id, 0, 2), lambda *_: None)
        # It was meant for one that nobody has.
        assert isinstance(await ended(store, run.id, Stopped("user"), idle=True), EndLost)
        await ended_well(store, run.id, tail=tokens(run.id, 2))
        assert await logged(store, run.id) == list(tokens(run.id, 0, 3).entries)

    async def test_what_waits_is_kept_also_by_an_end_that_has_no_words_of_its_own(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        store.append(tokens(run.id, 0, 2), lambda *_: None)
        await ended_well(store, run.id)
        assert [decode_entry(entry).seq for entry in await logged(store, run.id)] == [0, 1]

    async def test_runs_that_write_at_the_same_time_keep_out_of_each_others_logs(self, backend: Backend) -> None:
        store = await backend.worker()
        found = [(await started(store)).run for _ in range(5)]
        for n in range(4):
            await kept(store, *(tokens(run.id, n) for run in found))
        for run in found:
            assert [decode_entry(entry).seq for entry in await logged(store, run.id)] == [0, 1, 2, 3]

    async def test_a_gap_is_refused_at_once(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        await kept(store, tokens(run.id, 0))
        for first in (0, 2):
            with pytest.raises(ValueError, match="goes on at 1"):
                store.append(tokens(run.id, first), lambda *_: None)

    async def test_a_run_that_is_not_this_workers_takes_nothing(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        await ended_well(store, run.id)
        for run_id in (run.id, "run_none"):
            with pytest.raises(StoreError) as raised:
                store.append(tokens(run_id, 0), lambda *_: None)
            assert raised.value.trouble == "lost"

    async def test_one_lost_run_does_not_fail_the_others(self, backend: Backend) -> None:
        store = await backend.worker()
        deleted, others, waiting, _ = found = [(await started(store)).run for _ in range(4)]
        async with backend.database.writing() as tables:
            await tables.delete_run(deleted.id)
            await tables.put_run(replace(others, worker_id="wrk_other"))
            await tables.put_run(replace(waiting, state=RunState.WAITING))
        troubles = await kept(store, *(tokens(run.id, 0) for run in found))
        assert [trouble and trouble.trouble for trouble in troubles] == ["lost", "lost", "lost", None]
        assert [len(await logged(store, run.id)) for run in found] == [0, 0, 0, 1]
        # Its worker finds out that there is nothing to be ended.
        store.append(tokens(deleted.id, 0), lambda *_: None)
        assert not await store.release(deleted.id)

    async def test_followers_are_told_after_every_commit_and_of_the_end(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        told: list[int] = []
        unwatch = store.watch_run(run.id, lambda: told.append(1))
        await kept(store, tokens(run.id, 0))
        assert len(told) == 1
        await ended_well(store, run.id, tail=tail(run.id, 1))
        assert len(told) == 2
        unwatch()
        unwatch()

    async def test_somebody_who_breaks_when_told_keeps_nobody_else_from_it(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        told: list[int] = []

        def broken() -> None:
            raise RuntimeError("of the test")

        store.watch_run(run.id, broken)
        store.watch_run(run.id, lambda: told.append(1))
        await kept(store, tokens(run.id, 0))
        assert (len(told), len(reported)) == (1, 1)

    async def test_anothers_log_is_not_there(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        await kept(store, tokens(run.id, 0))
        assert await store.read("bob", run.id) is None
        assert await store.run("bob", run.id) is None
        assert await store.body("bob", run.id) is None
        assert await store.read(None, run.id) is not None


class RetentionTests:
    async def test_logs_are_dropped_whole_when_their_time_is_over(self, backend: Backend) -> None:
        store = await backend.worker()
        old, young, running = [(await started(store)).run for _ in range(3)]
        for run in (old, running):
            await kept(store, tokens(run.id, 0))
        await ended_well(store, old.id, tail=tail(old.id, 1))
        await backend.clock.advance(100)
        await ended_well(store, young.id, tail=tail(young.id, 0))
        assert await store.tidy(keep_logs_s=100) == 1
        assert await store.tidy(keep_logs_s=100) == 0
        piece = await store.read(OWNER, old.id)
        assert piece is not None
        assert (piece.batches, piece.last_seq, piece.run.log_dropped) == ((), 1, True)
        assert piece.run.outcome == Completed()
        assert [len(await logged(store, run.id)) for run in (old, young, running)] == [0, 1, 1]


class ListingTests:
    async def test_newest_first_by_session_status_and_page(self, backend: Backend) -> None:
        store = await backend.worker()
        found = [(await started(store, created_at=float(n), session_id=f"s{n}")).run for n in range(5)]
        await started(store, owner="bob")
        ended = (await ended_well(store, found[1].id)).run
        page = await store.runs(OWNER, page=Page(3))
        assert [run.id for run in page.runs] == [run.id for run in found[:1:-1]]
        page = await store.runs(OWNER, page=Page(3, page.next))
        assert (page.runs, page.next) == ((ended, found[0]), None)
        assert (await store.runs(OWNER, session_id="s1")).runs == (ended,)
        assert (await store.runs(OWNER, status="completed")).runs == (ended,)
        assert len((await store.runs(OWNER, status="running")).runs) == 4
        assert len((await store.runs(None)).runs) == 6

    async def test_an_unrecorded_run_is_written_behind_and_seen_before(self, backend: Backend) -> None:
        store = await backend.worker()
        found = asyncio.Event()
        store.watch_owner(OWNER, lambda _: found.set())
        notes = [_unrecorded(created_at=n) for n in (1.0, 2.0)]
        for run in notes:
            store.note(run)
        async with backend.database.reading() as tables:
            assert await tables.run(notes[0].id) is None
        while not found.is_set():
            # Also while it is being written.
            await self._sees(store, notes)
            await asyncio.sleep(0)
        await self._sees(store, notes)
        async with backend.database.reading() as tables:
            assert await tables.run(notes[0].id) == notes[0]
        assert await store.delete_run(OWNER, notes[0].id) is None
        assert await store.body(OWNER, notes[0].id) is None

    async def _sees(self, store: Store, notes: list[Run]) -> None:
        run = notes[0]
        assert await store.run(OWNER, run.id) == run
        assert await store.read(OWNER, run.id) == LogSlice(run, (), run.last_seq)
        assert await store.body(OWNER, run.id) == RunBody()
        assert await store.ask_stop(OWNER, run.id, StopRequest("user", 3.0)) == StopStands(run, False)
        assert (await store.run("bob", run.id), await store.read("bob", run.id)) == (None, None)
        assert await store.body("bob", run.id) is None
        assert await store.ask_stop("bob", run.id, StopRequest("user", 3.0)) is None
        assert (await store.runs(OWNER)).runs == tuple(reversed(notes))

    async def test_those_that_are_not_written_yet_are_listed_in_their_places(self, backend: Backend) -> None:
        store = await backend.worker()
        first, third = [(await started(store, created_at=n)).run for n in (1.0, 3.0)]
        second, fourth = _unrecorded(created_at=2.0), _unrecorded(created_at=4.0, owner="bob")
        for run in (second, fourth):
            store.note(run)
        page = await store.runs(OWNER, page=Page(2))
        assert page.runs == (third, second)
        assert (await store.runs(OWNER, page=Page(2, page.next))).runs == (first,)
        assert (await store.runs(None)).runs == (fourth, third, second, first)
        assert (await store.runs(OWNER, status="completed")).runs == (second,)
        assert (await store.runs(OWNER, session_id="s")).runs == ()

    async def test_a_run_of_no_session_can_be_deleted_once_it_has_ended(self, backend: Backend) -> None:
        store = await backend.worker()
        run = (await started(store)).run
        await kept(store, tokens(run.id, 0))
        assert await store.delete_run(OWNER, run.id) == Busy(run)
        await ended_well(store, run.id)
        assert await store.delete_run("bob", run.id) == Missing("run")
        assert await store.body(OWNER, run.id) == RunBody()
        assert await store.delete_run(OWNER, run.id) is None
        assert (await store.run(None, run.id), await store.read(None, run.id)) == (None, None)
        assert await store.delete_run(OWNER, run.id) == Missing("run")


def _unrecorded(**fields: Any) -> Run:
    return a_run(**{"state": RunState.ENDED, "outcome": Completed(), "recorded": False, "last_seq": 7} | fields)
