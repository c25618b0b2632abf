"""Group commit: what all runs have waiting is kept as one; then each is told, once.

The commit runs on the event loop, at most one a millisecond, the first after a pause at once
(docs/decisions/0001). The writer knows which runs are this worker's and where their logs stand; what is written, and
whether it may be, is the engine's.
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

Commit = Callable[[Sequence[Batch]], Mapping[str, StoreError]]
"""Keeps what it can, in one transaction; whose batch it does not keep, and why. Raises if it keeps none."""


class _Log(Struct):
    """Where the log of a run of ours stands."""

    kept_seq: int
    """The last that is committed."""
    waiting: list[bytes]
    committed: Committed


def _nobody(kept_seq: int, trouble: StoreError | None) -> None:
    """Nothing was appended yet."""


class GroupWriter:
    def __init__(self, commit: Commit, tell: Callable[[Sequence[str]], None]) -> None:
        self._commit = commit
        self._tell = tell
        self._logs: dict[str, _Log] = {}
        self._waiting: list[str] = []
        """Runs that have something waiting."""
        self._timer: asyncio.Handle | None = None
        self._free_s = 0.0

    def own(self, run_id: str, last_seq: int) -> None:
        """This worker has the run now, and its log stands there."""
        self._logs[run_id] = _Log(last_seq, [], _nobody)

    def disown(self, run_id: str) -> None:
        self._logs.pop(run_id, None)

    def append(self, batch: Batch, committed: Committed) -> None:
        log = self._logs.get(batch.run_id)
        if log is None:
            raise StoreError(f"{batch.run_id} is no run of this worker", trouble="lost")
        next_seq = log.kept_seq + len(log.waiting) + 1
        if batch.first_seq != next_seq:
            raise ValueError(f"the log of {batch.run_id} goes on at {next_seq}, not at {batch.first_seq}")
        if not log.waiting:
            self._waiting.append(batch.run_id)
        log.waiting += batch.entries
        log.committed = committed
        if self._timer is None:
            # It paces work, and is seen by nobody: no `Clock`.
            delay_s = max(0.0, self._free_s - time.perf_counter())
            self._timer = asyncio.get_running_loop().call_later(delay_s, self.flush)

    def flush(self) -> Mapping[str, StoreError]:
        """Commit what is waiting, now. Whose entries were refused, and why."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        found: list[_Log] = []
        batches: list[Batch] = []
        for run_id in waiting:
            log = self._logs.get(run_id)
            # One that was disowned meanwhile has ended, and its ending took all that there was.
            if log is not None and log.waiting:
                found.append(log)
                batches.append(Batch(run_id, log.kept_seq + 1, log.waiting))
        if not found:
            return {}
        troubles = self._try(batches)
        self._free_s = time.perf_counter() + GAP_S
        # All is in order before anybody is told: whoever is may append again.
        for log, batch in zip(found, batches, strict=True):
            log.kept_seq += 0 if batch.run_id in troubles else len(log.waiting)
            log.waiting = []
        for log, batch in zip(found, batches, strict=True):
            try:
                log.committed(log.kept_seq, troubles.get(batch.run_id))
            except Exception as error:
                report(log.committed, error)
        self._tell([batch.run_id for batch in batches if batch.run_id not in troubles])
        return troubles

    def _try(self, batches: Sequence[Batch]) -> Mapping[str, StoreError]:
        try:
            return self._commit(batches)
        except StoreError as error:
            return {batch.run_id: error for batch in batches}

    def __len__(self) -> int:
        """Runs that are this worker's."""
        return len(self._logs)
