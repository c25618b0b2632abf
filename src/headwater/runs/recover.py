"""Runs that no worker has: what becomes of them is worked out from their logs, and kept once."""

import logging

from headwater.errors import StoreError
from headwater.events import Entry, Interrupted, Stopped, encode_entry
from headwater.records import Run
from headwater.runs.ending import ending, last_events
from headwater.runs.folded import Folded, folded
from headwater.runs.habits import Habits
from headwater.runs.live import LiveRun
from headwater.runs.observing import ids
from headwater.store.results import Batch, Ending, EndResult

_log = logging.getLogger("headwater.runs")


async def end_abandoned(habits: Habits, run: Run) -> EndResult:
    """Its worker is dead, and can write nothing more.

    One whose log can't be read is no reason to leave the others without an ending.
    """
    # Also if a stop was asked for: nobody lived to obey it.
    outcome = Interrupted("crash")
    try:
        return await _end(habits, run, outcome)
    except (StoreError, ValueError) as error:
        if isinstance(error, StoreError) and error.trouble not in ("corrupt", "newer"):
            raise
        message = "the log of %s can't be read; it is ended without what it said"
        _log.error(message, run.id, exc_info=error, extra=ids(run))
        return await habits.store.end(Ending(run_id=run.id, outcome=outcome))


async def end_idle(habits: Habits, run: Run, outcome: Stopped) -> EndResult:
    """It was queued, or waits for somebody: nothing of it is under way, unless somebody has begun it meanwhile."""
    return await _end(habits, run, outcome, idle=True)


async def resumed(habits: Habits, run: Run) -> LiveRun:
    """A run that this worker has claimed, with what its log amounts to so far."""
    so_far = await _amount(habits, run)
    return LiveRun(run, habits, fold=so_far.fold, last_seq=so_far.last_seq)


async def _end(habits: Habits, run: Run, outcome: Interrupted | Stopped, *, idle: bool = False) -> EndResult:
    so_far = await _amount(habits, run)
    first_seq = so_far.last_seq + 1
    events = enumerate(last_events(so_far.fold, outcome), first_seq)
    tail = Batch(run.id, first_seq, [encode_entry(Entry(seq, so_far.t_ms or 0.0, event)) for seq, event in events])
    return await habits.store.end(
        ending(
            run,
            so_far.fold,
            outcome,
            now=habits.clock.unix_s(),
            make_id=habits.make_id,
            first_token_at=_first_token_at(run, so_far),
            tail=tail,
            idle=idle,
        )
    )


def _first_token_at(run: Run, so_far: Folded) -> float | None:
    if run.first_token_at is not None or so_far.first_token_ms is None:
        return run.first_token_at
    return (run.started_at or run.created_at) + so_far.first_token_ms / 1000


async def _amount(habits: Habits, run: Run) -> Folded:
    found = await folded(habits.store, None, run.id)
    return Folded() if found is None else found[1]
