"""A run while a worker has it: the source's events into the log, the log into the store, and one end.

Only this decides how a live run ends: by the first of what its source says and what somebody asked for. What was asked
for is noted before the source is cancelled; saving is nobody's to cancel.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeVar

from msgspec.structs import replace

from headwater.accumulate import Accumulator
from headwater.errors import StoreError
from headwater.events import PLAIN_TEXT, Event, Failed, Interrupted, RunEnded, RunStarted, Stopped
from headwater.lifecycle import RunState
from headwater.records import Run
from headwater.runs.ending import end_of_source, ended, ending, last_events, left_to_itself
from headwater.runs.habits import Habits, MakeSource
from headwater.runs.log import Log
from headwater.runs.observing import CURRENT, ids
from headwater.source import Ended, Source, Straight, Suspended, emit
from headwater.store.news import report
from headwater.store.results import Batch, Ending, EndLost, EndStands

_log = logging.getLogger("headwater.runs")

_RETRY_S: Final = 1.0
_POURED: Final = object()
"""Who reads a run that pours."""

T = TypeVar("T")


class LiveRun:
    """A `Sink`. `begin` it once; `over` is done when its end is kept.

    Its source has a task. It has none itself: it is told when that is done, and keeping the end of a run that a store
    has is a task again. One that no store has ends where it is told.
    """

    # What each begins with is the class's: to set it would take as long as all the rest of `__init__`.
    trouble: StoreError | None = None
    """The store refuses: what followers are told until it takes the ending."""
    lost = False
    """It is not ours any more: what there is to know is in the store."""
    suspended = False
    """It waits for somebody, and is no worker's."""
    take_next = True
    """Whoever is next in the queue is begun by this worker; not while it shuts down."""
    reader: object = None
    """Who follows it, if it is not recorded."""
    upstream_closed: bool | Literal["unknown"] = True
    stopped_in_s: float | None = None
    """If it was stopped: how long its source took to close."""
    straight: Straight | None = None
    """Into the log. Or, of a run that no store has, to whom it pours into: who opens it after a text, and whatever
    comes by here closes it."""
    over: asyncio.Future[None]
    """For `asyncio.wait`: whoever awaits it by itself and is cancelled would cancel it for all."""
    _asked: Stopped | Interrupted | None = None
    _asked_s = 0.0
    _closed = False
    _paused = False
    _source: Source | None = None
    _work: asyncio.Task[Ended | Suspended] | None = None
    _saving: asyncio.Task[None] | None = None
    _pour: Callable[[Sequence[Event]], None] | None = None
    _keeping: Sequence[tuple[int, asyncio.Future[None]]] = ()
    """Who waits for which entry to be committed."""

    def __init__(self, run: Run, habits: Habits, *, fold: Accumulator | None = None, last_seq: int = -1) -> None:
        self.run = run
        self.fold = fold or Accumulator()
        self.log = Log(last_seq, tail_bytes=habits.tail_bytes)
        self._habits = habits
        self._clock = habits.clock
        self._store = habits.store
        started_at = run.started_at or run.created_at
        self._zero_s = habits.clock.now_s() - max(0.0, habits.clock.unix_s() - started_at)
        self._handed_seq = last_seq
        self._first_token_at = run.first_token_at
        self._told: list[Callable[[], None]] = []
        if run.recorded:
            self.straight = Straight(*PLAIN_TEXT, self._keep_plain)

    def begin(self, make_source: MakeSource, on_over: Callable[["LiveRun"], None]) -> None:
        self._on_over = on_over
        self.over = asyncio.get_running_loop().create_future()
        try:
            if self.log.last_seq < 0:
                at = datetime.fromtimestamp(self.run.started_at or self.run.created_at, UTC)
                emit(self, RunStarted(self.run.id, self.run.model, at, self.run.session_id))
        except Exception as error:
            self._save(self._end_bare(error))
            return
        if self._asked is not None:
            # Before it has begun (C48): nobody is asked anything.
            self._conclude(Ended(self._asked))
        else:
            self._work = asyncio.create_task(self._drive(make_source), name=self.run.id)
            self._work.add_done_callback(self._on_done)

    def abandon(self) -> None:
        """This worker ends and keeps no more: whoever comes next finds the run as it stands in the store."""
        if self._saving is not None:
            self._saving.cancel()
            return
        if self._work is not None:
            self._work.remove_done_callback(self._on_done)
            if self._asked is None:
                self._work.cancel()
        self._finish()

    # ------------------------------------------------------------- as a sink

    def take(self, events: Sequence[Event]) -> None:
        if self._closed:
            # Of a source that was given up, and goes on all the same (C30).
            return
        self._note_first_token()
        if self.run.recorded:
            self._hand_over(self.log.write(events, (self._clock.now_s() - self._zero_s) * 1000))
        else:
            self._pass_on(events)

    def _note_first_token(self) -> None:
        if self._first_token_at is None and self.fold.delivered_anything:
            self._first_token_at = self._clock.unix_s()

    def _pass_on(self, events: Sequence[Event]) -> None:
        """Of a run that no store has: to whoever reads it, or will."""
        if self._pour is None:
            self.log.append(events, (self._clock.now_s() - self._zero_s) * 1000)
            self.log.show(self.log.last_seq)
            self._tell()
            return
        self.straight = None
        self.log.skip(len(events))
        try:
            self._pour(events)
        except Exception as error:
            report(self._pour, error)

    def _keep_plain(self, body: bytes) -> None:
        self._hand_over(self.log.write_plain(body, (self._clock.now_s() - self._zero_s) * 1000))

    def _hand_over(self, lines: Sequence[bytes]) -> None:
        """What was just written to the log; with it, what the store has refused before."""
        first_seq, last_seq = self._handed_seq + 1, self.log.last_seq
        if first_seq + len(lines) - 1 != last_seq:
            lines = self.log.lines(self._handed_seq)
        try:
            self._store.append(Batch(self.run.id, first_seq, lines), self._committed)
        except StoreError as trouble:
            self._refused(trouble)
        else:
            self._handed_seq = last_seq

    def _committed(self, kept_seq: int, trouble: StoreError | None) -> None:
        self.log.show(kept_seq)
        if self._keeping:
            self._wake_keeping()
        if trouble is not None:
            # What was refused goes with the ending.
            self._handed_seq = kept_seq
            self._refused(trouble)
        self._tell()

    def _refused(self, trouble: StoreError) -> None:
        """Nothing can be shown any more, so nothing more is to be asked for."""
        if trouble.trouble in ("fenced", "lost"):
            # Others end it, or have: followers find that in the store.
            self.lost = True
        else:
            self.trouble = trouble
        self.stop(Interrupted("store"))

    async def kept(self) -> None:
        if self.run.recorded and self.log.shown_seq < self.log.last_seq:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._keeping = [*self._keeping, (self.log.last_seq, waiting)]
            await waiting

    def _wake_keeping(self) -> None:
        for seq, waiting in self._keeping:
            if seq <= self.log.shown_seq and not waiting.done():
                waiting.set_result(None)
        self._keeping = [(seq, waiting) for seq, waiting in self._keeping if not waiting.done()]

    # ------------------------------------------------------------- followers

    def watch(self, told: Callable[[], None]) -> Callable[[], None]:
        """`told` whenever there is more to show, or something else to know. Gives back how to leave."""
        self._told.append(told)

        def leave() -> None:
            if told in self._told:
                self._told.remove(told)

        return leave

    def pour(self, into: Callable[[Sequence[Event]], None] | None) -> None:
        """What has come and what comes of a run that no store has goes there, at once and past the log, to its end.

        None: whom it was for has left, and nobody else will hear of it.
        """
        assert not self.run.recorded
        self._pour, self.straight, self.reader = into, None, _POURED
        if into is not None and (entries := self.log.after(self.log.first_seq - 1)):
            self.log.forget(self.log.last_seq)
            into([entry.event for entry in entries])

    @property
    def followers(self) -> int:
        return len(self._told) + (self._pour is not None)

    def _tell(self) -> None:
        for told in tuple(self._told):
            try:
                told()
            except Exception as error:
                # One that breaks keeps nobody else from being told, and is not the source's fault.
                report(told, error)

    def pause(self) -> None:
        self._paused = True
        if self._source is not None:
            self._source.pause()

    def resume(self) -> None:
        self._paused = False
        if self._source is not None:
            self._source.resume()

    # ------------------------------------------------------------------ ends

    @property
    def stopping(self) -> Stopped | Interrupted | None:
        """What was asked for: noted before the source is cancelled, which may read it here (C71)."""
        return self._asked

    def stop(self, asked: Stopped | Interrupted) -> bool:
        """Have it end so. False: too late, it is ending already."""
        if self._closed or self._asked is not None or (self._work is not None and self._work.done()):
            return False
        self._asked, self._asked_s = asked, self._clock.now_s()
        if self._work is not None:
            self._work.cancel()
        return True

    def adopted(self, owner: str) -> None:
        """By the store's account it is theirs."""
        if owner != self.run.owner:
            self.run = replace(self.run, owner=owner)

    def tick(self, now_s: float) -> None:
        if self._asked is None or self._closed or self._work is None or self._work.done():
            return
        own_s = None if self._source is None else self._source.unwind_s
        if now_s - self._asked_s > (self._habits.unwind_s if own_s is None else own_s):
            # It was given its time, and goes on all the same.
            self.upstream_closed = "unknown"
            self._work.remove_done_callback(self._on_done)
            self._work.add_done_callback(left_to_itself)
            self._conclude(Ended(self._asked))

    async def _drive(self, make_source: MakeSource) -> Ended | Suspended:
        CURRENT.set(self.run)
        self._source = await make_source(self.run)
        if self._paused:
            self._source.pause()
        end = await self._source.run(self)
        if self._asked is None and self._work is not None and not self._work.cancelling():
            # Here, and not a turn of the loop later: so the last words and the end can go out as one.
            self._conclude(end)
        elif isinstance(end, Ended):
            self.take(end.last)
            return Ended(end.outcome)
        return end

    def _on_done(self, work: asyncio.Task[Ended | Suspended]) -> None:
        if self._closed or self.over.done():
            # Concluded, or abandoned just now.
            return
        if self._asked is not None:
            self.stopped_in_s = self._clock.now_s() - self._asked_s
        elif work.cancelled() and self._habits.torn_down():
            self._finish()
            return
        try:
            end = end_of_source(work, self._asked, self.run)
        except Exception as error:
            # What it raised can't even be written to the log.
            report(self._on_done, error)
            end = Ended(self._asked or Failed("agent_error", "What was to answer has failed."))
        self._conclude(end)

    def _conclude(self, end: Ended | Suspended) -> None:
        """The outermost frame of a run, here and in `_keep_end`: whatever goes wrong, the run has an ending."""
        self._closed, self.straight = True, None
        if self.run.recorded or isinstance(end, Suspended):
            self._save(self._keep_end(end))
            return
        try:
            self._note_first_token()
            events = [*end.last, *last_events(self.fold, end.outcome)]
            now, last_seq = self._clock.unix_s(), self.log.last_seq + len(events)
            self.run = ended(self.run, self.fold, end.outcome, now, self._first_token_at, last_seq)
            self._store.note(self.run)
            self._pass_on(events)
        except Exception as error:
            self._save(self._end_bare(error))
        else:
            self._finish()

    def _save(self, work: Coroutine[Any, Any, None]) -> None:
        self._saving = asyncio.create_task(work, name=self.run.id)
        self._saving.add_done_callback(self._finish)

    async def _keep_end(self, end: Ended | Suspended) -> None:
        CURRENT.set(self.run)
        try:
            if isinstance(end, Suspended):
                await self._release(end)
            else:
                await self._keep(end)
        except Exception as error:
            await self._end_bare(error)

    def _finish(self, *_: object) -> None:
        self._tell()
        # These, and a cancel's traceback, hold the run that holds them: until the next garbage collection.
        self._work = self._saving = self._source = self.straight = None
        if not self.over.done():
            self.over.set_result(None)
            self._on_over(self)

    async def _release(self, end: Suspended) -> None:
        until = end.until.timestamp() if end.until else None
        waiting = tuple(call.id for call in self.fold.calls if call.state == "waiting")
        released = await self._insist(lambda: self._store.release(self.run.id, until, waiting))
        self.suspended = bool(released)
        self.lost = True

    async def _keep(self, came: Ended) -> None:
        """The ending and all that the run leaves, as one; tried again for as long as it takes."""
        self._note_first_token()
        events = [*came.last, *last_events(self.fold, came.outcome)]
        self.log.append(events, (self._clock.now_s() - self._zero_s) * 1000)
        end = ending(
            self.run,
            self.fold,
            came.outcome,
            now=self._clock.unix_s(),
            make_id=self._habits.make_id,
            first_token_at=self._first_token_at,
        )
        match await self._insist(lambda: self._store.end(self._with_tail(end))):
            case EndStands(run=run, next=following):
                self.run = run
                if following is not None:
                    self._habits.begin_next(following)
            case EndLost(run=found):
                self.run, self.lost = found or self.run, True
            case None:
                self.lost = True
        if not self.lost:
            self.log.show(self.log.last_seq)
            self._wake_keeping()

    def _with_tail(self, end: Ending) -> Ending:
        """What of the log is not committed, as of now: what was handed over may have been refused since."""
        lines = self.log.lines(self._handed_seq)
        return replace(end, tail=Batch(self.run.id, self._handed_seq + 1, lines), take_next=self.take_next)

    async def _insist(self, write: Callable[[], Awaitable[T]]) -> T | None:
        """Tried again for as long as it takes; followers are told of the trouble meanwhile. None: it is not ours."""
        while True:
            try:
                result = await write()
            except StoreError as error:
                if error.trouble in ("fenced", "lost"):
                    self.trouble = None
                    return None
                self.trouble = error
                self._tell()
                await self._clock.sleep(_RETRY_S)
            else:
                self.trouble = None
                return result

    async def _end_bare(self, error: Exception) -> None:
        """An ending that can always be written, for a run whose log or messages can't."""
        _log.error("%s: its end could not be kept as it was", self.run.id, exc_info=error, extra=ids(self.run))
        failed = Failed("agent_error", "What came could not be kept; the server's log has more.")
        if not self.run.recorded:
            self._closed = True
            self.run = replace(self.run, state=RunState.ENDED, outcome=failed, ended_at=self._clock.unix_s())
            self._pass_on([RunEnded(failed)])
            return
        ending = Ending(run_id=self.run.id, outcome=failed, take_next=self.take_next)
        result = await self._insist(lambda: self._store.end(ending))
        self._closed = self.lost = True
        if isinstance(result, EndStands) and result.next is not None:
            self._habits.begin_next(result.next)
