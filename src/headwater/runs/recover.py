"""Runs that no worker has: what becomes of them is worked out from their logs, and kept once."""

from headwater.accumulate import Accumulator
from headwater.events import Entry, Interrupted, RunEnded, Stopped, decode_entry, encode_entry
from headwater.records import Run
from headwater.runs.live import Habits, LiveRun
from headwater.sessions.leavings import answered_by, left
from headwater.store.results import Batch, Ending, EndResult
from headwater.turn import dropped_calls


class _Folded:
    """A run's log, as far as it was committed."""

    def __init__(self) -> None:
        self.fold = Accumulator()
        self.last_seq = -1
        self.t_ms = 0.0
        self.first_token_ms: float | None = None

    def apply(self, entry: Entry) -> None:
        self.fold.apply(entry.event)
        self.last_seq, self.t_ms = entry.seq, entry.t
        if self.first_token_ms is None and self.fold.delivered_anything:
            self.first_token_ms = entry.t


async def end_abandoned(habits: Habits, run: Run) -> EndResult:
    """Its worker is dead, and can write nothing more."""
    # Also if a stop was asked for: nobody lived to obey it.
    return await _end(habits, run, Interrupted("crash"))


async def end_idle(habits: Habits, run: Run, outcome: Stopped) -> EndResult:
    """It was queued, or waits for somebody: nothing of it is under way, unless somebody has begun it meanwhile."""
    return await _end(habits, run, outcome, idle=True)


async def resumed(habits: Habits, run: Run) -> LiveRun:
    """A run that this worker has claimed, with what its log amounts to so far."""
    folded = await _fold(habits, run)
    return LiveRun(run, habits, fold=folded.fold, last_seq=folded.last_seq)


async def _end(habits: Habits, run: Run, outcome: Interrupted | Stopped, *, idle: bool = False) -> EndResult:
    folded = await _fold(habits, run)
    fold = folded.fold
    events = [*dropped_calls(outcome, fold), RunEnded(outcome)]
    for event in events:
        fold.apply(event)
    first_seq = folded.last_seq + 1
    lines = [encode_entry(Entry(seq, folded.t_ms, event)) for seq, event in enumerate(events, first_seq)]
    leaves = left(run, fold, outcome, now=habits.clock.unix_s(), make_id=habits.make_id)
    ending = Ending(
        run_id=run.id,
        outcome=outcome,
        tail=Batch(run.id, first_seq, lines),
        messages=leaves.messages,
        notices=leaves.notices,
        output=leaves.output,
        usage=fold.usage,
        answered_by=answered_by(fold),
        first_token_at=_first_token_at(run, folded),
        idle=idle,
    )
    return await habits.store.end(ending)


def _first_token_at(run: Run, folded: _Folded) -> float | None:
    if run.first_token_at is not None or folded.first_token_ms is None:
        return run.first_token_at
    return (run.started_at or run.created_at) + folded.first_token_ms / 1000


async def _fold(habits: Habits, run: Run) -> _Folded:
    folded = _Folded()
    while (found := await habits.store.read(None, run.id, folded.last_seq)) is not None and found.batches:
        for batch in found.batches:
            for line in batch.after(folded.last_seq):
                folded.apply(decode_entry(line))
    return folded
