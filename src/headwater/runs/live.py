"""A run while a worker has it: the source's events into the log, the log into the store, and one end.

Only this decides how a live run ends: by the first of what its source says and what somebody asked for. What was asked
for is noted before the source is cancelled; saving is nobody's to cancel.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from headwater.accumulate import Accumulator
from headwater.clock import Clock
from headwater.errors import CallerError, StoreError
from headwater.events import Event, Failed, Interrupted, Outcome, RunEnded, RunStarted, Stopped
from headwater.lifecycle import RunState
from headwater.records import Run
from headwater.runs.log import Log
from headwater.runs.observing import CURRENT, Nobody, Observer
from headwater.sessions.leavings import Left, answered_by, left
from headwater.source import Ended, Source, Straight, Suspended, emit
from headwater.store.base import Store
from headwater.store.news import report
from headwater.store.results import Batch, Ending, EndLost, EndStands, Started
from headwater.turn import dropped_calls

_log = logging.getLogger("headwater.runs")

MakeSource = Callable[[Run], Awaitable[Source]]
"""What a run pumps. Asked once the session's lock is held; raises `CallerError`."""

_RETRY_S: Final = 1.0

T = TypeVar("T")


class Habits(Struct, frozen=True, kw_only=True):
    """What all runs of a worker share."""

    store: Store
    clock: Clock
    make_id: Callable[[str], str]
    """A new id with this prefix."""
    tail_bytes: int = 64 * 1024
    unwind_s: float = 5.0
    """For so long a source that was cancelled may clean up; then it is left to itself."""
    begin_next: Callable[[Started], None] = lambda _: None
    """The next run of a queue is this worker's, and running: nobody else will begin it."""
    observer: Observer = Nobody()


class LiveRun:
    """A `Sink`. `begin` it once; `task` is done when its end is kept."""

    def __init__(self, run: Run, habits: Habits, *, fold: Accumulator | None = None, last_seq: int = -1) -> None:
        self.run = run
        self.fold = fold or Accumulator()
        self.log = Log(last_seq, tail_bytes=habits.tail_bytes)
        self.trouble: StoreError | None = None
        """The store refuses: what followers are told until it takes the ending."""
        self.lost = False
        """It is not ours any more: what there is to know is in the store."""
        self.suspended = False
        """It waits for somebody, and is no worker's."""
        self.take_next = True
        """Whoever is next in the queue is begun by this worker; not while it shuts down."""
        self.reader: object = None
        """Who follows it, if it is not recorded."""
        self.upstream_closed: bool | Literal["unknown"] = True
        self.stopped_in_s: float | None = None
        """If it was stopped: how long its source took to close."""
        self._habits = habits
        self._clock = habits.clock
        self._store = habits.store
        started_at = run.started_at or run.created_at
        self._zero_s = habits.clock.now_s() - max(0.0, habits.clock.unix_s() - started_at)
        self._handed_seq = last_seq
        self._first_token_at = run.first_token_at
        self._asked: Stopped | Interrupted | None = None
        self._asked_s = 0.0
        self._closed = False
        self._paused = False
        self._source: Source | None = None
        self._work: asyncio.Task[Ended | Suspended] | None = None
        self._over: asyncio.Future[None] | None = None
        """While the source is waited for: it is done, or was given up."""
        self._told: list[Callable[[], None]] = []
        self._pour: Callable[[Sequence[Event]], None] | None = None
        self.straight: Straight | None = None
        """Of whoever it pours into, who opens it and closes it."""
        self._keeping: list[tuple[int, asyncio.Future[None]]] = []
        """Who waits for which entry to be committed."""
        self.task: asyncio.Task[None]

    def begin(self, make_source: MakeSource) -> None:
        self.task = asyncio.create_task(self._main(make_source), name=self.run.id)

    # ------------------------------------------------------------- as a sink

    def take(self, events: Sequence[Event]) -> None:
        if self._closed:
            # Of a source that was given up, and goes on all the same (C30).
            return
        if self._first_token_at is None and self.fold.delivered_anything:
            self._first_token_at = self._clock.unix_s()
        if self._pour is not None:
            self.log.skip(len(events))
            try:
                self._pour(events)
            except Exception as error:
                report(self._pour, error)
            return
        t_ms = (self._clock.now_s() - self._zero_s) * 1000
        if self.run.recorded:
            in_order = self._handed_seq == self.log.last_seq
            lines = self.log.write(events, t_ms)
            self._hand_over(lines if in_order else self.log.lines(self._handed_seq))
        else:
            self.log.append(events, t_ms)
            self.log.show(self.log.last_seq)
            self._tell()

    def _hand_over(self, lines: Sequence[bytes]) -> None:
        try:
            self._store.append(Batch(self.run.id, self._handed_seq + 1, lines), self._committed)
        except StoreError as trouble:
            self._refused(trouble)
        else:
            self._handed_seq = self.log.last_seq

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
            self._keeping.append((self.log.last_seq, waiting))
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
        """What comes goes to the one who follows a run that no store has, at once and past the log; but for its end."""
        assert not self.run.recorded
        self._pour, self.straight = into, None

    @property
    def followers(self) -> int:
        return len(self._told)

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

    def tick(self, now_s: float) -> None:
        own_s = None if self._source is None else self._source.unwind_s
        unwind_s = self._habits.unwind_s if own_s is None else own_s
        if self._asked is not None and now_s - self._asked_s > unwind_s:
            self._wake()

    def _wake(self, *_: object) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    async def _main(self, make_source: MakeSource) -> None:
        """The outermost frame of a run: whatever goes wrong in it, the run has an ending."""
        CURRENT.set(self.run)
        try:
            end = await self._pump(make_source)
            self._closed, self.straight = True, None
            if isinstance(end, Suspended):
                await self._release(end)
            else:
                await self._end(end.outcome)
        except asyncio.CancelledError:
            if self._work is not None and self._asked is None:
                self._work.cancel()
            raise
        except Exception as error:
            _log.error("%s: its end could not be kept as it was", self.run.id, exc_info=error)
            await self._end_bare()
        finally:
            self._tell()
            # A cancel's traceback holds the run that holds its task: until the next garbage collection.
            self._work = self._source = None

    async def _release(self, end: Suspended) -> None:
        until = end.until.timestamp() if end.until else None
        waiting = tuple(call.id for call in self.fold.calls if call.state == "waiting")
        released = await self._insist(lambda: self._store.release(self.run.id, until, waiting))
        self.suspended = bool(released)
        self.lost = True

    async def _pump(self, make_source: MakeSource) -> Ended | Suspended:
        if self.log.last_seq < 0:
            at = datetime.fromtimestamp(self.run.started_at or self.run.created_at, UTC)
            emit(self, RunStarted(self.run.id, self.run.model, at, self.run.session_id))
        if self._asked is not None:
            # Before it has begun (C48): nobody is asked anything.
            return Ended(self._asked)
        work = self._work = asyncio.create_task(self._drive(make_source))
        if not await self._done(work):
            self.upstream_closed = "unknown"
            work.add_done_callback(_retrieve)
            assert self._asked is not None
            return Ended(self._asked)
        if self._asked is not None:
            self.stopped_in_s = self._clock.now_s() - self._asked_s
        return self._end_of(work)

    def _end_of(self, work: asyncio.Task[Ended | Suspended]) -> Ended | Suspended:
        if self._asked is not None:
            # It was asked for first, whatever the source made of it: to many a library a cancel is an error.
            if not work.cancelled() and (error := work.exception()) is not None:
                _log.warning("%s: its source raised when it was stopped: %r", self.run.id, error)
            return Ended(self._asked)
        if work.cancelled():
            return Ended(Failed("agent_error", "What was to answer was cancelled from within."))
        failure = work.exception()
        if isinstance(failure, StoreError):
            _log.error("%s: the store failed its source: %s", self.run.id, failure)
            return Ended(Interrupted("store"))
        return work.result() if failure is None else Ended(self._raised(failure))

    async def _done(self, work: asyncio.Task[Ended | Suspended]) -> bool:
        """False: it was told to stop, was given its time, and goes on all the same."""
        # Not `asyncio.wait`: that takes a task more, for each run.
        self._over = asyncio.get_running_loop().create_future()
        work.add_done_callback(self._wake)
        await self._over
        return work.done()

    async def _drive(self, make_source: MakeSource) -> Ended | Suspended:
        self._source = await make_source(self.run)
        if self._paused:
            self._source.pause()
        return await self._source.run(self)

    def _raised(self, error: BaseException) -> Failed:
        if isinstance(error, CallerError):
            return Failed("refused", error.message, error.status)
        _log.error("%s: its source raised", self.run.id, exc_info=error)
        return Failed(
            "agent_error", f"What was to answer has failed ({type(error).__name__}); the server's log has more."
        )

    async def _end(self, outcome: Outcome) -> None:
        events = [*dropped_calls(outcome, self.fold), RunEnded(outcome)]
        for event in events:
            self.fold.apply(event)
        self.log.append(events, (self._clock.now_s() - self._zero_s) * 1000)
        if self.run.recorded:
            await self._keep(outcome)
        else:
            self.run = self._ended(outcome)
            self._store.note(self.run)
        if not self.lost:
            self.log.show(self.log.last_seq)

    async def _keep(self, outcome: Outcome) -> None:
        """The ending and all that the run leaves, as one; tried again for as long as it takes."""
        leaves = left(self.run, self.fold, outcome, now=self._clock.unix_s(), make_id=self._habits.make_id)
        result = await self._insist(lambda: self._store.end(self._ending(outcome, leaves)))
        match result:
            case EndStands(run=run, next=following):
                self.run = run
                if following is not None:
                    self._habits.begin_next(following)
            case EndLost(run=found):
                self.run, self.lost = found or self.run, True
            case None:
                self.lost = True

    def _ending(self, outcome: Outcome, leaves: Left) -> Ending:
        return Ending(
            run_id=self.run.id,
            outcome=outcome,
            tail=Batch(self.run.id, self._handed_seq + 1, self.log.lines(self._handed_seq)),
            messages=leaves.messages,
            notices=leaves.notices,
            output=leaves.output,
            usage=self.fold.usage,
            answered_by=answered_by(self.fold),
            first_token_at=self._first_token_at,
            take_next=self.take_next,
        )

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

    async def _end_bare(self) -> None:
        """An ending that can always be written, for a run whose log or messages can't."""
        failed = Failed("agent_error", "What came could not be kept; the server's log has more.")
        ending = Ending(run_id=self.run.id, outcome=failed, take_next=self.take_next)
        result = await self._insist(lambda: self._store.end(ending)) if self.run.recorded else None
        self._closed = self.lost = True
        if isinstance(result, EndStands) and result.next is not None:
            self._habits.begin_next(result.next)

    def _ended(self, outcome: Outcome) -> Run:
        return replace(
            self.run,
            state=RunState.ENDED,
            outcome=outcome,
            usage=self.fold.usage,
            answered_by=answered_by(self.fold),
            first_token_at=self._first_token_at,
            ended_at=self._clock.unix_s(),
            last_seq=self.log.last_seq,
        )


def _retrieve(work: asyncio.Task[Ended | Suspended]) -> None:
    """Of a source that was left to itself: what it comes to in the end is looked at by nobody."""
    if not work.cancelled() and work.exception() is not None:
        _log.warning("a source that ignored its stop has ended with %r", work.exception())
