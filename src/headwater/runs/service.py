"""All runs of a worker: started, followed, stopped, handed on, and found again.

Decisions about endings are `live`'s and the store's; this finds the run that is meant and tells it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final, Literal

from msgspec import Struct

from headwater.errors import StoreError
from headwater.events import Event, Interrupted, Outcome, Stopped
from headwater.lifecycle import RunState
from headwater.records import Run, StopRequest
from headwater.runs.follow import Follower, GoneError, follow
from headwater.runs.live import Habits, LiveRun, MakeSource
from headwater.runs.recover import end_abandoned, end_idle, resumed
from headwater.store.results import Queued, Start, Started, StartResult

_log = logging.getLogger("headwater.runs")

_SWEEP_S: Final = 0.25
_LOOK_S: Final = 1.0
"""Between two looks at what other workers, and lost messages, have left to do."""
_TIDY_S: Final = 3600.0


class Patience(Struct, frozen=True, kw_only=True):
    """How long runs go on with nobody there."""

    max_unfollowed_s: float = 3600.0
    linger_s: float = 15.0
    """With `on_disconnect: cancel`."""
    keep_logs_s: float = 7 * 86_400.0


class StopAnswer(Struct, frozen=True):
    run: Run
    """As it stands now: ended, or, where its worker has not confirmed in time, not yet."""
    caused_by_this_call: bool
    upstream_closed: bool | Literal["unknown"]


class Runs:
    """One for each worker. `open` it, `close` it."""

    def __init__(self, habits: Habits, make_source: MakeSource, patience: Patience = Patience()) -> None:
        self._habits = habits
        self._store = habits.store
        self._clock = habits.clock
        self._make_source = make_source
        self._patience = patience
        self._live: dict[str, LiveRun] = {}
        self._unfollowed_since_s: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._unwatch = self._store.watch_orders(self._on_order)
        self._draining = False

    # ---------------------------------------------------------------- opening

    async def open(self) -> None:
        """Ends what a dead worker left behind, takes up what waits for its turn, and keeps looking."""
        await self._look()
        self._tasks = [
            asyncio.create_task(self._every(_SWEEP_S, self._sweep), name="runs: sweep"),
            asyncio.create_task(self._every(_LOOK_S, self._look), name="runs: look"),
            asyncio.create_task(self._every(_TIDY_S, self._tidy), name="runs: tidy"),
        ]

    async def close(self, drain_s: float = 0.0) -> None:
        """No new work. What runs may go on for a while; the rest ends as interrupted by the shutdown."""
        self._draining = True
        live = {run.task for run in self._live.values()}
        if live:
            await asyncio.wait(live, timeout=drain_s)
        for run in list(self._live.values()):
            run.stop(Interrupted("shutdown"))
        if self._live:
            await asyncio.wait({run.task for run in self._live.values()}, timeout=self._habits.unwind_s + 1)
        for task in (*self._tasks, *(run.task for run in self._live.values())):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._unwatch()

    # ---------------------------------------------------------------- starting

    async def start(self, ask: Start, make_source: MakeSource | None = None) -> StartResult:
        """A recorded run: committed first, then begun.

        `make_source` is for this run alone, if it begins at once: one that is queued may have to outlive the process.
        """
        result = await self._store.start(ask)
        match result:
            case Started(run=run):
                self._begin(run, make_source)
            case Queued(stopping=Run() as active):
                await self._stop(active, "replaced")
            case _:
                pass
        return result

    def start_unrecorded(self, run: Run, make_source: MakeSource) -> LiveRun:
        """A run that only its creator follows, and that no store holds up: its row is written when it has ended."""
        return self._begin(run, make_source)

    def _begin(self, run: Run, make_source: MakeSource | None = None) -> LiveRun:
        return self._take_up(LiveRun(run, self._habits), make_source)

    def _take_up(self, live: LiveRun, make_source: MakeSource | None = None) -> LiveRun:
        self._live[live.run.id] = live
        self._unfollowed_since_s[live.run.id] = self._clock.now_s()
        if live.run.stop is not None:
            live.stop(Stopped(live.run.stop.reason))
        live.begin(make_source or self._make_source)
        live.task.add_done_callback(lambda _: self._over(live))
        return live

    def _over(self, live: LiveRun) -> None:
        """Nothing of it stays here but what its followers hold (C53)."""
        if self._live.get(live.run.id) is live:
            del self._live[live.run.id]
            self._unfollowed_since_s.pop(live.run.id, None)
        if live.next is not None:
            self._begin(live.next.run)

    # --------------------------------------------------------------- following

    def live(self, run_id: str) -> LiveRun | None:
        return self._live.get(run_id)

    def follower(self, owner: str | None, run_id: str, after: int = -1) -> Follower:
        return Follower(self, self._store, owner, run_id, after)

    def follow(self, owner: str | None, run_id: str, after: int = -1) -> AsyncIterator[Event]:
        """Typed events from the cursor on, to the end (C55)."""
        return follow(self.follower(owner, run_id, after))

    async def wait(self, owner: str | None, run_id: str) -> Outcome:
        """How it ends, however that is: nothing is raised for a stop or a failure (C55)."""
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
        reason: Literal["user", "disconnect", "replaced"] = "user",
        wait_s: float = 5.0,
    ) -> StopAnswer | None:
        """None: there is no such run. Kept before it is acted on; asking again changes nothing (C47, C48)."""
        stands = await self._store.ask_stop(owner, run_id, StopRequest(reason, self._clock.unix_s()))
        if stands is None:
            return None
        ours = stands.first
        if stands.run.outcome is None:
            await self._stop(stands.run, reason)
            await self._until_ended(owner, run_id, wait_s)
        run = await self._store.run(owner, run_id)
        assert run is not None
        caused = ours and isinstance(run.outcome, Stopped)
        return StopAnswer(run, caused, self._closed(run, stands.run))

    async def _stop(self, run: Run, reason: Literal["user", "disconnect", "replaced"]) -> None:
        live = self._live.get(run.id)
        if live is not None:
            live.stop(Stopped(reason))
        elif run.state is not RunState.RUNNING:
            # Nobody has it: whoever comes first ends it.
            following = await end_idle(self._habits, run, Stopped(reason))
            if following is not None:
                self._begin(following.run)

    async def _until_ended(self, owner: str | None, run_id: str, wait_s: float) -> None:
        # A store in trouble keeps no ending: the answer is that there is none yet.
        with contextlib.suppress(TimeoutError, StoreError):
            async with asyncio.timeout(wait_s):
                await self.wait(owner, run_id)

    def _closed(self, run: Run, before: Run) -> bool | Literal["unknown"]:
        if before.state is not RunState.RUNNING:
            return True
        if run.outcome is None:
            return False
        return "unknown" if isinstance(run.outcome, Interrupted) else True

    def _on_order(self, run_id: str) -> None:
        """Somebody, on whichever worker, wants something of a run that is ours."""
        if run_id in self._live:
            self._spawn(self._obey(run_id))

    async def _obey(self, run_id: str) -> None:
        run = await self._store.run(None, run_id)
        live = self._live.get(run_id)
        if run is not None and run.stop is not None and live is not None:
            live.stop(Stopped(run.stop.reason))

    # ----------------------------------------------------------- now and then

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._clock.sleep(seconds)
            try:
                await work()
            except StoreError as error:
                self._on_trouble(error)

    def _on_trouble(self, error: StoreError) -> None:
        if error.trouble != "fenced":
            _log.warning("the store: %s", error)
            return
        # Others have ended our runs, or will: what they cost must not go on.
        _log.error("%s. Its %d runs are closed.", error, len(self._live))
        for live in list(self._live.values()):
            live.stop(Interrupted("crash"))

    async def _sweep(self) -> None:
        now_s = self._clock.now_s()
        for run_id, live in list(self._live.items()):
            live.tick(now_s)
            if live.followers:
                self._unfollowed_since_s[run_id] = now_s
                continue
            alone_s = now_s - self._unfollowed_since_s[run_id]
            cancels = live.run.on_disconnect == "cancel" and live.run.recorded
            if alone_s > (self._patience.linger_s if cancels else self._patience.max_unfollowed_s):
                live.stop(Stopped("disconnect"))

    async def _look(self) -> None:
        """What news would have told, had it not been lost; what dead workers left; what is ready to begin."""
        await self._store.beat()
        for worker in await self._store.fence_dead():
            _log.warning("worker %s (%s) is dead; its runs are ended", worker.id, worker.address)
        for run in await self._store.abandoned():
            following = await end_abandoned(self._habits, run)
            if following is not None:
                self._begin(following.run)
        for run in await self._store.mine():
            live = self._live.get(run.id)
            if live is not None and run.stop is not None:
                live.stop(Stopped(run.stop.reason))
        if not self._draining:
            for run in await self._store.ready():
                started = await self._store.claim(run.id)
                if started is not None:
                    self._take_up(await resumed(self._habits, started.run))

    async def _tidy(self) -> None:
        await self._store.tidy(self._patience.keep_logs_s)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)
