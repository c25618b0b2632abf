"""The end of a run: what its source has come to, and as its log and its store are given it.

The same for a run that is live and one that is found. What is kept, and when, is not decided here.
"""

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from headwater.accumulate import Accumulator
from headwater.errors import CallerError, StoreError
from headwater.events import Event, Failed, Interrupted, Outcome, RunEnded, Stopped
from headwater.lifecycle import RunState
from headwater.records import Run
from headwater.runs.observing import ids
from headwater.sessions.leavings import answered_by, left
from headwater.source import Ended, Suspended
from headwater.store.results import Batch, Ending
from headwater.turn import dropped_calls

_log = logging.getLogger("headwater.runs")


def end_of_source(
    work: asyncio.Task[Ended | Suspended], asked: Stopped | Interrupted | None, run: Run
) -> Ended | Suspended:
    """`asked`: what somebody wanted before it was done."""
    if asked is not None:
        # It was asked for first, whatever the source made of it: to many a library a cancel is an error.
        if not work.cancelled() and (error := work.exception()) is not None:
            _log.warning("%s: its source raised when it was stopped: %r", run.id, error, extra=ids(run))
        return Ended(asked)
    if work.cancelled():
        return Ended(Failed("agent_error", "What was to answer was cancelled from within."))
    match work.exception():
        case None:
            return work.result()
        case CallerError() as refusal:
            return Ended(Failed("refused", refusal.message, refusal.status))
        case StoreError() as trouble:
            _log.error("%s: the store failed its source: %s", run.id, trouble, extra=ids(run))
            return Ended(Interrupted("store"))
        case failure:
            _log.error("%s: its source raised", run.id, exc_info=failure, extra=ids(run))
            name = type(failure).__name__
            return Ended(Failed("agent_error", f"What was to answer has failed ({name}); the server's log has more."))


def left_to_itself(work: asyncio.Task[Ended | Suspended]) -> None:
    """Of a source that ignored its stop: what it comes to in the end is looked at by nobody."""
    if not work.cancelled() and work.exception() is not None:
        _log.warning("a source that ignored its stop has ended with %r", work.exception())


def last_events(fold: Accumulator, outcome: Outcome) -> list[Event]:
    """What the log ends with. The fold has seen it then."""
    events = [*dropped_calls(outcome, fold), RunEnded(outcome)]
    for event in events:
        fold.apply(event)
    return events


def ending(
    run: Run,
    fold: Accumulator,
    outcome: Outcome,
    *,
    now: float,
    make_id: Callable[[str], str],
    first_token_at: float | None,
    tail: Batch | None = None,
    idle: bool = False,
) -> Ending:
    leaves = left(run, fold, outcome, now=now, make_id=make_id)
    return Ending(
        run_id=run.id,
        outcome=outcome,
        tail=tail,
        messages=leaves.messages,
        notices=leaves.notices,
        output=leaves.output,
        usage=fold.usage,
        answered_by=answered_by(fold),
        first_token_at=first_token_at,
        idle=idle,
    )


def ended(
    run: Run, fold: Accumulator, outcome: Outcome, now: float, first_token_at: float | None, last_seq: int
) -> Run:
    """The row of a run that no store has had until now."""
    return replace(
        run,
        state=RunState.ENDED,
        outcome=outcome,
        usage=fold.usage,
        answered_by=answered_by(fold),
        first_token_at=first_token_at,
        ended_at=now,
        last_seq=last_seq,
    )
