"""All runs of a worker: started, followed, stopped, handed on, and found again.

Decisions about endings are `live`'s and the store's; this finds the run that is meant and tells it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Literal, TypeVar

from msgspec.structs import replace

from headwater.errors import CallerError, StoreError
from headwater.events import Event, Interrupted, Outcome, Stopped
from headwater.lifecycle import RunState
from headwater.records import Run, StopRequest
from headwater.runs.follow import Follower, GoneError
from headwater.runs.habits import Habits, MakeSource
from headwater.runs.live import LiveRun
from headwater.runs.many import ManyFollower
from headwater.runs.observing import ids
from headwater.runs.recover import end_abandoned, end_idle, resumed
from headwater.runs.stops import StopAnswer, upstream_closed
from headwater.runs.unfollowed import Patience, Unfollowed
from headwater.store.results import EndLost, EndStands, Missing, Queued, Start, Started, StartResult

_log = logging.getLogger("headwater.runs")

_SWEEP_S: Final = 0.25
_LOOK_S: Final = 1.0
"""Between two looks at what other workers, and lost messages, have left to do."""
_TIDY_S: Final = 3600.0

T = TypeVar("T")
Why = Literal["user", "disconnect", "replaced"]


class Runs:
    """One for each worker. `open` it, `close` it."""

    def __init__(self, habits: Habits, make_source: MakeSource, patience: Patience = Patience()) -> None:
        self._habits = habits = replace(
            habits,
            begin_next=lambda started: self._begin(started.run),
            torn_down=lambda: any(task.cancelling() for task in self._tasks),
        )
        self._store = habits.store
        self._clock = habits.clock
        self._make_source = make_source
        self._patience = patience
        self._live: dict[str, LiveRun] = {}
        self._unfollowed = Unfollowed(self._store, patience)
        self._tasks: list[asyncio.Task[None]] = []
        self._spawned: set[asyncio.Task[Any]] = set()
        self._early_orders: set[str] = set()
        """For runs that are on their way to us: `_take_up` looks at them."""
        self._orphans: set[str] = set()
        """Running and ours by the store's account, with nobody here who has them; as of the last look."""
        self._unwatch = self._store.watch_orders(self._on_order)
        self._draining = self._closed = False
        self._followers: set[Follower] = set()
        self.fenced = asyncio.Event()
        """Another worker has declared this one dead: nothing can be kept here any more."""

    # ---------------------------------------------------------------- opening

    async def open(self) -> None:
        """Ends what a dead worker left behind, takes up what waits for its turn, and keeps looking."""
        await self._look()
        self._tasks = [
            asyncio.create_task(self._every(_SWEEP_S, self._sweep), name="runs: sweep"),
            asyncio.create_task(self._every(_LOOK_S, self._look), name="runs: look"),
            asyncio.create_task(self._every(_LOOK_S, self._stop_unfollowed), name="runs: unfollowed"),
            asyncio.create_task(self._tidy_now_and_then(), name="runs: tidy"),
        ]

    def drain(self) -> None:
        """No new work: what is queued behind a run that ends is left to another worker, or to the next start."""
        self._draining = True
        for run in self._live.values():
            run.take_next = False

    async def settle(self, timeout_s: float | None = None) -> None:
        """Until all that is under way now has ended."""
        if live := {run.over for run in self._live.values()}:
            await asyncio.wait(live, timeout=timeout_s)

    async def close(self, drain_s: float = 0.0) -> None:
        """No new work. What runs may go on for a while; the rest ends as interrupted by the shutdown."""
        self.drain()
        await self.settle(drain_s)
        for run in list(self._live.values()):
            run.stop(Interrupted("shutdown"))
        await self.settle(self._habits.unwind_s + 1)
        left = [*self._tasks, *(run.over for run in self._live.values())]
        for task in self._tasks:
            task.cancel()
        for run in list(self._live.values()):
            run.abandon()
        await asyncio.gather(*left, return_exceptions=True)
        self._unwatch()
        self._closed = True
        for follower in tuple(self._followers):
            follower.close()

    # ---------------------------------------------------------------- starting

    async def start(self, ask: Start, make_source: MakeSource | None = None) -> StartResult:
        """A recorded run: committed first, then begun, also if whoever asks gives up in between.

        `make_source` is for this run alone, if it begins at once: one that is queued may have to outlive the process.
        """
        if self._draining:
            raise CallerError("The server is shutting down. Try again in a moment.", status=503, code="shutting_down")
        return await asyncio.shield(self._spawn(self._start(ask, make_source)))

    async def _start(self, ask: Start, make_source: MakeSource | None) -> StartResult:
        result = await self._store.start(ask)
        match result:
            case Started(run=run):
                self._begin(run, make_source)
            case Queued(stopping=Run() as active, replaced=replaced):
                for run in (active, *replaced):
                    await self._stop(run, "replaced")
            case _:
                pass
        return result

    def start_unrecorded(self, run: Run, make_source: MakeSource) -> LiveRun:
        """A run that only its creator follows, and that no store holds up: its row is written when it has ended."""
        return self._begin(run, make_source)

    async def resume_queue(self, owner: str, session_id: str) -> Missing | None:
        """A queue that was paused goes on, with its first if nothing is before it."""
        result = await self._store.resume_queue(owner, session_id)
        if isinstance(result, Started):
            self._begin(result.run)
            return None
        return result

    async def wake(self, run_id: str) -> None:
        """Take up a run that waits, if there is something for it to go on with: an answer came, or its time is over."""
        if not self._draining and any(run.id == run_id for run in await self._store.ready()):
            await self._claim(run_id)

    async def _claim(self, run_id: str) -> None:
        started = await self._store.claim(run_id)
        if started is not None:
            self._take_up(await resumed(self._habits, started.run))

    def running(self, owner: str | None = None) -> int:
        """How many this worker has: of this owner, or in all."""
        return len(self._live) if owner is None else sum(live.run.owner == owner for live in self._live.values())

    def is_busy(self, run: Run) -> bool:
        """Another run of its session is going on at this worker."""
        place = run.owner, run.session_id
        return run.session_id is not None and any(
            place == (live.run.owner, live.run.session_id) for live in self._live.values()
        )

    def unrecorded(self) -> list[Run]:
        """Those that this worker has, and no store."""
        return [live.run for live in self._live.values() if not live.run.recorded]

    def _begin(self, run: Run, make_source: MakeSource | None = None) -> LiveRun:
        return self._take_up(LiveRun(run, self._habits), make_source)

    def _take_up(self, live: LiveRun, make_source: MakeSource | None = None) -> LiveRun:
        self._live[live.run.id] = live
        self._unfollowed.begin(live.run.id, self._clock.now_s())
        if live.run.stop is not None:
            live.stop(Stopped(live.run.stop.reason))
        if live.run.id in self._early_orders:
            self._early_orders.discard(live.run.id)
            self._spawn(self._obey(live.run.id))
        live.begin(make_source or self._make_source, self._over)
        return live

    def _over(self, live: LiveRun) -> None:
        """Nothing of it stays here but what its followers hold (C53)."""
        if self._live.get(live.run.id) is live:
            del self._live[live.run.id]
            self._unfollowed.over(live.run.id)
        if live.run.outcome is not None and not live.lost:
            self._habits.observer.ended(live.run, live.stopped_in_s)
        if live.suspended:
            self._spawn(self._safely(lambda: self.wake(live.run.id)))

    # --------------------------------------------------------------- following

    def live(self, run_id: str) -> LiveRun | None:
        return self._live.get(run_id)

    def follower(self, owner: str | None, run_id: str, after: int = -1) -> Follower:
        follower = Follower(self, self._store, owner, run_id, after)
        self._followers.add(follower)
        if self._closed:
            follower.close()
        return follower

    def left(self, follower: Follower) -> None:
        self._followers.discard(follower)

    def follow_many(self, owner: str | None, cursors: Mapping[str, int]) -> ManyFollower:
        return ManyFollower([self.follower(owner, run_id, after) for run_id, after in cursors.items()])

    async def follow(self, owner: str | None, run_id: str, after: int = -1) -> AsyncIterator[Event]:
        """Typed events from the cursor on, to the end (C55)."""
        follower = self.follower(owner, run_id, after)
        try:
            while entries := await follower.next():
                for entry in entries:
                    yield entry.event
        finally:
            follower.leave()

    async def wait(self, owner: str | None, run_id: str) -> Outcome:
        """How it ends, however that is: nothing is raised for a stop or a failure (C55)."""
        live = self._live.get(run_id)
        if live is not None and not live.run.recorded and owner in (None, live.run.owner):
            await asyncio.wait({live.over})
            assert live.run.outcome is not None
            return live.run.outcome
        run = await self._store.run(owner, run_id)
        if run is not None and run.outcome is None:
            follower = self.follower(owner, run_id, await self._last_seq(owner, run_id))
            try:
                while await follower.next():
                    pass
            finally:
                follower.leave()
            run = await self._store.run(owner, run_id)
        if run is None or run.outcome is None:
            raise GoneError(run_id)
        return run.outcome

    async def _last_seq(self, owner: str | None, run_id: str) -> int:
        found = await self._store.read(owner, run_id, 1 << 60)
        return -1 if found is None else found.last_seq

    # ---------------------------------------------------------------- stopping

    async def stop(
        self,
        owner: str | None,
        run_id: str,
        reason: Why = "user",
        wait_s: float = 5.0,
    ) -> StopAnswer | None:
        """None: there is no such run. Kept before it is acted on; asking again changes nothing (C47, C48)."""
        live = self._live.get(run_id)
        theirs = live is not None and owner in (None, live.run.owner)
        if live is not None and not live.run.recorded:
            return await self._stop_unrecorded(live, reason, wait_s) if theirs else None
        try:
            # Whose it is, is the store's to say: it may have been adopted since.
            stands = await self._store.ask_stop(owner, run_id, StopRequest(reason, self._clock.unix_s()))
        except StoreError:
            # It can't be kept that it was asked for; what it costs must not go on all the same.
            if live is not None and theirs:
                live.stop(Stopped(reason))
            raise
        if stands is None:
            return None
        if stands.run.outcome is None:
            await self._stop(stands.run, reason)
            await self._until_ended(owner, run_id, wait_s)
        run = await self._store.run(owner, run_id) or stands.run  # One that was noted may not have been written.
        return StopAnswer(run, stands.first, upstream_closed(run, stands.run, live))

    def stop_soon(self, owner: str, run_id: str, reason: Why) -> None:
        """For somebody who does not wait for it."""
        self._spawn(self._safely(lambda: self.stop(owner, run_id, reason, wait_s=0.0)))

    async def _stop_unrecorded(self, live: LiveRun, reason: Why, wait_s: float) -> StopAnswer:
        first = live.stop(Stopped(reason))
        await asyncio.wait({live.over}, timeout=wait_s)
        return StopAnswer(live.run, first, live.run.outcome is not None and live.upstream_closed)

    async def _stop(self, run: Run, reason: Why) -> None:
        live = self._live.get(run.id)
        if live is not None:
            live.stop(Stopped(reason))
        elif run.state is not RunState.RUNNING:
            # Nobody has it: whoever comes first ends it.
            result = await end_idle(self._habits, run, Stopped(reason))
            if isinstance(result, EndStands):
                self._habits.observer.ended(result.run, None)
            if isinstance(result, EndStands) and result.next is not None:
                self._begin(result.next.run)
            elif isinstance(result, EndLost) and (begun := self._live.get(run.id)) is not None:
                # Its turn had come in the meantime.
                begun.stop(Stopped(reason))

    async def _until_ended(self, owner: str | None, run_id: str, wait_s: float) -> None:
        # A store in trouble keeps no ending: the answer is that there is none yet.
        with contextlib.suppress(TimeoutError, StoreError):
            async with asyncio.timeout(wait_s):
                await self.wait(owner, run_id)

    def _on_order(self, run_id: str) -> None:
        """Somebody, on whichever worker, wants something of a run that is ours."""
        if run_id in self._live:
            self._spawn(self._obey(run_id))
        else:
            self._early_orders.add(run_id)

    async def _obey(self, run_id: str) -> None:
        try:
            run = await self._store.run(None, run_id)
        except StoreError as error:
            # The next look finds it.
            self._on_trouble(error)
            return
        live = self._live.get(run_id)
        if run is not None and run.stop is not None and live is not None:
            live.stop(Stopped(run.stop.reason))

    # ----------------------------------------------------------- now and then

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._clock.sleep(seconds)
            await self._safely(work)

    async def _safely(self, work: Callable[[], Awaitable[object]]) -> None:
        """What is done now and then goes on being done, whatever went wrong this time."""
        try:
            await work()
        except StoreError as error:
            self._on_trouble(error)
        except Exception:
            _log.exception("%s failed", getattr(work, "__name__", work))

    def _on_trouble(self, error: StoreError) -> None:
        if error.trouble != "fenced":
            _log.warning("the store: %s", error)
            return
        # Others have ended our runs, or will: what they cost must not go on.
        if not self.fenced.is_set():
            _log.error("%s. Its %d runs are closed.", error, len(self._live))
        self.fenced.set()
        for live in list(self._live.values()):
            live.stop(Interrupted("crash"))

    async def _sweep(self) -> None:
        now_s = self._clock.now_s()
        for live in list(self._live.values()):
            live.tick(now_s)
        self._unfollowed.note(self._live, now_s)

    async def _stop_unfollowed(self) -> None:
        for live in await self._unfollowed.too_long(self._live, self._clock.now_s()):
            live.stop(Stopped("disconnect"))

    async def _look(self) -> None:
        """What news would have told, had it not been lost; what dead workers left; what is ready to begin."""
        await self._store.beat()
        for worker in await self._store.fence_dead():
            _log.warning("worker %s (%s) is dead; its runs are ended", worker.id, worker.address)
        for run in await self._store.abandoned():
            await self._end_abandoned(run)
        await self._look_at_ours()
        if not self._draining:
            for run in await self._store.ready():
                await self._claim(run.id)

    async def _look_at_ours(self) -> None:
        mine = await self._store.mine()
        orphans = {run.id for run in mine if run.id not in self._live}
        for run in mine:
            live = self._live.get(run.id)
            if live is not None:
                live.adopted(run.owner)
                if run.stop is not None:
                    live.stop(Stopped(run.stop.reason))
            elif run.id in self._orphans & orphans:
                # Its start or its turn was kept, and the answer to that was lost on the way to us.
                _log.warning("%s is running, and nobody has it: it is ended", run.id, extra=ids(run))
                await self._end_abandoned(run)
        self._orphans = orphans
        self._early_orders &= orphans

    async def _end_abandoned(self, run: Run) -> None:
        result = await end_abandoned(self._habits, run)
        if isinstance(result, EndStands):
            self._habits.observer.recovered(result.run)
            if result.next is not None:
                self._begin(result.next.run)

    async def _tidy_now_and_then(self) -> None:
        await self._safely(self._tidy)
        await self._every(_TIDY_S, self._tidy)

    async def _tidy(self) -> None:
        while await self._store.tidy(self._patience.keep_logs_s, self._patience.keep_keys_s):
            pass

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)
        return task
