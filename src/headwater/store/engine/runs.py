"""Runs and their logs."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from headwater.clock import Clock
from headwater.errors import StoreError
from headwater.lifecycle import RunState
from headwater.records import Approval, IdempotencyKey, Run, RunBody, StopRequest
from headwater.store.base import READ_BYTES, Unwatch
from headwater.store.engine.core import Core
from headwater.store.engine.notes import Notes
from headwater.store.results import (
    Batch,
    Busy,
    Committed,
    Ending,
    EndResult,
    EndStands,
    KeyMismatch,
    LogSlice,
    Missing,
    Page,
    Replayed,
    RunList,
    RunQuestion,
    Start,
    Started,
    StartResult,
    StopStands,
)
from headwater.store.rules import runs
from headwater.store.tables import Database, Transaction

NOTE_S: Final = 0.05
"""Unrecorded runs are written behind by so much, together."""

_log = logging.getLogger("headwater.store")


class RunEngine(Core):
    def __init__(self, database: Database, worker_id: str, clock: Clock, entropy: Callable[[int], bytes]) -> None:
        super().__init__(database, worker_id, clock, entropy)
        # Without a frame of ours: it is called for each token.
        self.append: Callable[[Batch, Committed], None] = self._writer.append
        self._notes = Notes()
        self._noting: asyncio.Task[None] | None = None

    # ------------------------------------------------------- start to end

    async def start(self, ask: Start) -> StartResult:
        begun_s = time.perf_counter()
        result = await self._write(lambda tx: runs.start(tx, ask))
        if isinstance(result, Started):
            self._writer.own(result.run.id, -1)
        self._writer.tell_of_commit(begun_s)
        return result

    async def used(self, owner: str, key: IdempotencyKey) -> Replayed | KeyMismatch | None:
        async with self._database.reading() as tables:
            return runs.used(await tables.reservation(owner, key.key), key, self._clock.unix_s())

    async def claim(self, run_id: str) -> Started | None:
        async def work(tx: Transaction) -> tuple[Started | None, int]:
            return await runs.claim(tx, run_id), await tx.tables.last_seq(run_id)

        started, last_seq = await self._write(work)
        if started is not None:
            self._writer.own(run_id, last_seq)
        return started

    async def release(self, run_id: str, until: float | None = None, calls: Sequence[str] = ()) -> bool:
        await self._settle(run_id)
        released = await self._write(lambda tx: runs.release(tx, run_id, until, calls))
        self._writer.disown(run_id)
        return released

    async def end(self, ending: Ending) -> EndResult:
        whole = await self._whole(ending)
        begun_s = time.perf_counter()
        result = await self._write(lambda tx: runs.end(tx, whole))
        if isinstance(result, EndStands) or not self._goes_on(result.run):
            self._writer.disown(ending.run_id)
        if isinstance(result, EndStands) and result.next is not None:
            self._writer.own(result.next.run.id, -1)
        self._writer.tell_of_commit(begun_s)
        return result

    def _goes_on(self, run: Run | None) -> bool:
        """It was not to be ended, and is still ours."""
        return run is not None and run.state is RunState.RUNNING and run.worker_id == self.worker_id

    async def _whole(self, ending: Ending) -> Ending:
        """What was handed over comes first: committed before, or as one with the end where that is as good."""
        if not self._database.at_once:
            await self._settle(ending.run_id)
        elif (waiting := self._writer.waiting(ending.run_id)) is not None:
            return replace(ending, tail=waiting if ending.tail is None else _joined(waiting, ending.tail))
        return ending

    async def _settle(self, run_id: str) -> None:
        """What was handed over comes first. A run that is lost is told so by the rules."""
        trouble = await self._writer.settle(run_id)
        if trouble is not None and trouble.trouble != "lost":
            raise trouble

    def note(self, run: Run) -> None:
        self._notes.add(run)
        if self._noting is None:
            self._noting = asyncio.create_task(self._note_soon())

    async def _note_soon(self) -> None:
        # It paces work, and is seen by nobody: no `Clock`.
        await asyncio.sleep(NOTE_S)
        self._noting = None
        await self._write_notes()

    async def _write_notes(self) -> None:
        notes = self._notes.take()

        async def work(tx: Transaction) -> None:
            await tx.tables.add_notes(list(notes.values()))
            for run in notes.values():
                tx.news.of_run(run)

        try:
            if notes:
                await self._write(work)
        except StoreError as error:
            _log.warning("%d unrecorded runs are not in the list of runs: %s", len(notes), error)
        finally:
            self._notes.done(notes)

    async def delete_run(self, owner: str, run_id: str) -> Busy | Missing | None:
        return await self._write(lambda tx: runs.delete(tx, owner, run_id))

    # -------------------------------------------------------------- reading

    async def run(self, owner: str | None, run_id: str) -> Run | None:
        if (noted := self._notes.find(run_id)) is not None:
            return _visible(noted, owner)
        async with self._database.reading() as tables:
            return _visible(await tables.run(run_id), owner)

    async def body(self, owner: str | None, run_id: str) -> RunBody | None:
        if (noted := self._notes.find(run_id)) is not None:
            return None if _visible(noted, owner) is None else RunBody()
        async with self._database.reading() as tables:
            run = _visible(await tables.run(run_id), owner)
            return None if run is None else await tables.body(run_id) or RunBody()

    async def runs(
        self, owner: str | None, *, session_id: str | None = None, status: str | None = None, page: Page = Page()
    ) -> RunList:
        question = RunQuestion(owner, session_id, status, page)
        # First these: what is written while the others are read is not missed then.
        noted = self._notes.all()
        async with self._database.reading() as tables:
            found = await tables.runs(owner, session_id, status, page)
        return question.answer(question.of([*noted, *found]) if noted else found)

    async def read(
        self, owner: str | None, run_id: str, after: int = -1, limit_bytes: int = READ_BYTES
    ) -> LogSlice | None:
        if (noted := self._notes.find(run_id)) is not None:
            return None if _visible(noted, owner) is None else LogSlice(noted, (), noted.last_seq)
        found = await self._database.slice(run_id, after, limit_bytes)
        return found if found is not None and owner in (None, found.run.owner) else None

    def watch_run(self, run_id: str, told: Callable[[], None]) -> Unwatch:
        return self._hub.runs.add(run_id, told)

    # --------------------------------------------------------------- orders

    async def ask_stop(self, owner: str | None, run_id: str, stop: StopRequest) -> StopStands | None:
        if (noted := self._notes.find(run_id)) is not None:
            return None if _visible(noted, owner) is None else StopStands(noted, False)
        return await self._write(lambda tx: runs.ask_stop(tx, owner, run_id, stop))

    async def approve(
        self, owner: str, run_id: str, approval: Approval, key: IdempotencyKey | None = None
    ) -> Approval | Replayed | KeyMismatch | Missing:
        return await self._write(lambda tx: runs.approve(tx, owner, run_id, approval, key))

    async def approvals(self, run_id: str) -> tuple[Approval, ...]:
        async with self._database.reading() as tables:
            return tuple(await tables.approvals(run_id))

    def watch_orders(self, told: Callable[[str], None]) -> Unwatch:
        return self._hub.orders.add(self.worker_id, told)


def _joined(waiting: Batch, tail: Batch) -> Batch:
    """What is in both is there once: whoever takes what was handed over for refused brings it again."""
    again = tail.after(waiting.first_seq - 1)[: len(waiting.after(tail.first_seq - 1))]
    if list(again) != list(waiting.after(tail.first_seq - 1)) or tail.first_seq > waiting.last_seq + 1:
        raise ValueError(f"the log of {tail.run_id} goes on at {waiting.last_seq + 1}, not at {tail.first_seq}")
    before = waiting.entries[: max(0, tail.first_seq - waiting.first_seq)]
    return replace(tail, first_seq=tail.first_seq - len(before), entries=[*before, *tail.entries])


def _visible(run: Run | None, owner: str | None) -> Run | None:
    return run if run is not None and owner in (None, run.owner) else None
