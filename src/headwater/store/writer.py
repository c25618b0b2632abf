"""Group commit: what all runs have waiting is kept as one; then each is told, once.

One commit at a time, at most one a millisecond, the first after a pause at once (docs/decisions/0001). While one is
under way, what comes waits for the next: batches grow with the load. The writer knows which runs are this worker's
and where their logs stand; what is written, and whether it may be, is the engine's.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from headwater.errors import StoreError
from headwater.store.news import report
from headwater.store.results import Batch, Committed

GAP_S: Final = 0.001

Troubles = Mapping[str, StoreError]
"""Whose entries were not kept, and why."""
Commit = Callable[[Sequence[Batch]], Troubles | asyncio.Future[Troubles]]
"""Keeps what it can, in one transaction. Raises, or gives a future that does, if it keeps none.

An engine that is done before a task could be woken is done when it returns; one that has to wait gives a future.
"""


class _Log(Struct, eq=False):
    """Where the log of a run of ours stands."""

    run_id: str
    kept_seq: int
    """The last that is committed."""
    next_seq: int
    waiting: list[bytes]
    committed: Committed
    """Who is told of what waits."""
    under_way: int = 0
    """Entries behind `kept_seq`, and before those that wait, that are being committed."""


def _nobody(kept_seq: int, trouble: StoreError | None) -> None:
    """Nothing was appended yet."""


class GroupWriter:
    def __init__(self, commit: Commit, tell: Callable[[Sequence[str]], None]) -> None:
        self._commit = commit
        self._tell = tell
        self._logs: dict[str, _Log] = {}
        self._waiting: list[_Log] = []
        """Those that have something waiting."""
        self._under_way: list[tuple[_Log, Committed]] = []
        """Those that the commit that is under way has something of, and who is told of it."""
        self._settling: list[asyncio.Future[Troubles]] = []
        """Who wants to know of the next commit that is over."""
        self._timer: asyncio.Handle | None = None
        self._free_s = 0.0
        self._begun_s = 0.0
        self.told_of_commit: Callable[[float], None] | None = None
        """How long each took, of those that kept anything."""

    def tell_of_commit(self, begun_s: float) -> None:
        """That one is over which began then."""
        if self.told_of_commit is not None:
            self.told_of_commit(time.perf_counter() - begun_s)

    def own(self, run_id: str, last_seq: int) -> None:
        """This worker has the run now, and its log stands there."""
        self._logs[run_id] = _Log(run_id, last_seq, last_seq + 1, [], _nobody)

    def disown(self, run_id: str) -> None:
        if (log := self._logs.pop(run_id, None)) is not None:
            # It has ended, and its ending took all that there was.
            log.waiting = []

    def append(self, batch: Batch, committed: Committed) -> None:
        log = self._logs.get(batch.run_id)
        if log is None:
            raise StoreError(f"{batch.run_id} is no run of this worker", trouble="lost")
        entries, waiting = batch.entries, log.waiting
        if batch.first_seq != log.next_seq:
            raise ValueError(f"the log of {batch.run_id} goes on at {log.next_seq}, not at {batch.first_seq}")
        if not waiting:
            self._waiting.append(log)
        waiting += entries
        log.next_seq += len(entries)
        log.committed = committed
        if self._timer is None and not self._under_way:
            self._flush_soon()

    def waiting(self, run_id: str) -> Batch | None:
        """What was handed over of this run, and is in no commit yet."""
        log = self._logs.get(run_id)
        return Batch(run_id, log.kept_seq + 1, log.waiting) if log is not None and log.waiting else None

    async def settle(self, run_id: str) -> StoreError | None:
        """Until all that was handed over of this run is kept, or was refused: then, why."""
        while (log := self._logs.get(run_id)) is not None and (log.waiting or log.under_way):
            over: asyncio.Future[Troubles] = asyncio.get_running_loop().create_future()
            self._settling.append(over)
            if not self._under_way:
                self.flush()
            if trouble := (await over).get(run_id):
                return trouble
        return None

    async def settle_all(self) -> None:
        for run_id in list(self._logs):
            await self.settle(run_id)

    def flush(self) -> None:
        """Commit what is waiting, now. Not while a commit is under way."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        logs, self._waiting = self._waiting, []
        batches = []
        for log in logs:
            if log.waiting:
                batches.append(Batch(log.run_id, log.kept_seq + 1, log.waiting))
                self._under_way.append((log, log.committed))
                log.under_way, log.waiting = len(log.waiting), []
        if not batches:
            return
        self._begun_s = time.perf_counter()
        try:
            result = self._commit(batches)
        except StoreError as error:
            self._refused(error)
        else:
            if isinstance(result, asyncio.Future):
                result.add_done_callback(self._waited)
            else:
                self._over(result)

    def _flush_soon(self) -> None:
        # It paces work, and is seen by nobody: no `Clock`.
        delay_s = max(0.0, self._free_s - time.perf_counter())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.flush)

    def _waited(self, result: asyncio.Future[Troubles]) -> None:
        try:
            troubles = result.result()
        except StoreError as error:
            self._refused(error)
        else:
            self._over(troubles)

    def _refused(self, error: StoreError) -> None:
        self._over({log.run_id: error for log, _ in self._under_way})

    def _over(self, troubles: Troubles) -> None:
        now_s = time.perf_counter()
        self._free_s = now_s + GAP_S
        under_way, self._under_way = self._under_way, []
        settling, self._settling = self._settling, []
        if self.told_of_commit is not None and len(troubles) < len(under_way):
            self.told_of_commit(now_s - self._begun_s)
        # All is in order before anybody is told: whoever is may append again.
        for log, _ in under_way:
            if not troubles or log.run_id not in troubles:
                log.kept_seq += log.under_way
            log.under_way = 0
        kept = [log.run_id for log, _ in under_way]
        if troubles:
            kept = [run_id for run_id in kept if run_id not in troubles]
            under_way += self._dropped(under_way, troubles)
        for log, committed in under_way:
            try:
                committed(log.kept_seq, troubles.get(log.run_id) if troubles else None)
            except Exception as error:
                report(committed, error)
        for over in settling:
            if not over.done():
                over.set_result(troubles)
        if self._waiting and self._timer is None and not self._under_way:
            self._flush_soon()
        self._tell(kept)

    def _dropped(self, refused: list[tuple[_Log, Committed]], troubles: Troubles) -> list[tuple[_Log, Committed]]:
        """What came behind entries that are not there can't be kept either. Who is to be told of it besides."""
        besides = []
        for log, committed in refused:
            if log.run_id in troubles:
                if log.waiting and log.committed != committed:
                    besides.append((log, log.committed))
                log.waiting, log.next_seq = [], log.kept_seq + 1
        return besides

    def __len__(self) -> int:
        """Runs that are this worker's."""
        return len(self._logs)
