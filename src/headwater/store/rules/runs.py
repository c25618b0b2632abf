"""The rules of runs: who may start, take up, stop and end one, and what that leaves.

Each function is one transaction's work. What is refused is refused before anything is written.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from headwater.events import Completed, Incomplete, Interrupted, Outcome, Stopped
from headwater.lifecycle import RunState, Signal, advance
from headwater.records import (
    Approval,
    AtHead,
    IdempotencyKey,
    QueueEntry,
    Reservation,
    Run,
    RunBody,
    Session,
    SessionMessage,
    StopRequest,
    Under,
)
from headwater.store.results import (
    Batch,
    Busy,
    Ending,
    EndLost,
    EndResult,
    EndStands,
    KeyMismatch,
    Missing,
    Queued,
    Replayed,
    Start,
    Started,
    StartResult,
    StopStands,
)
from headwater.store.tables import Transaction

ALL_BYTES: Final = 1 << 40
"""More than any log has."""


# -------------------------------------------------------------------- start


async def start(tx: Transaction, ask: Start) -> StartResult:
    run = ask.run
    if ask.idempotency and (used := await used_before(tx, run.owner, ask.idempotency)):
        return used
    if run.session_id is None:
        result: Started | Queued | Busy | Missing = await _start_alone(tx, ask)
    else:
        result = await _start_in_session(tx, ask, run.session_id)
    if isinstance(result, Started | Queued):
        tx.news.of_run(result.run)
        if ask.idempotency:
            await reserve(tx, run.owner, ask.idempotency, run.id)
    return result


async def used_before(tx: Transaction, owner: str, key: IdempotencyKey) -> Replayed | KeyMismatch | None:
    """Asked in order to use it: if it was not, nobody else does before this transaction is over."""
    return used(await tx.tables.lock_reservation(owner, key.key), key, tx.now)


def used(found: Reservation | None, key: IdempotencyKey, now: float) -> Replayed | KeyMismatch | None:
    if found is None or found.at <= now - key.keep_s:
        return None
    return Replayed(found.subject_id) if found.digest == key.digest else KeyMismatch(found.subject_id)


async def reserve(tx: Transaction, owner: str, key: IdempotencyKey, subject_id: str) -> None:
    await tx.tables.put_reservation(Reservation(owner, key.key, key.digest, subject_id, tx.now))


async def _start_alone(tx: Transaction, ask: Start) -> Started:
    run = _running(tx, ask.run, parent_id=None)
    await tx.tables.add_run(run, RunBody(ask.request, echo=ask.echo))
    return Started(run, ())


async def _start_in_session(tx: Transaction, ask: Start, session_id: str) -> Started | Queued | Busy | Missing:
    owner = ask.run.owner
    session = await tx.tables.lock_session(owner, session_id)
    if session is None and not ask.create_session:
        return Missing("session")
    under_id = ask.place.message_id if isinstance(ask.place, Under) else None
    if under_id is not None and await tx.tables.message(owner, session_id, under_id) is None:
        return Missing("message")
    if session is None:
        session = Session(id=session_id, owner=owner, created_at=tx.now, updated_at=tx.now)
    if session.title is None:
        session = replace(session, title=ask.title)
    active = await tx.tables.active_run(owner, session_id)
    queue = await tx.tables.queue(owner, session_id)
    if _may_begin(ask, session, active, queue):
        # It is written again by `begin`, which knows where it hangs.
        await tx.tables.add_run(ask.run, RunBody(ask.request, echo=ask.echo))
        _, started = await begin(tx, session, ask.run, ask.messages, ask.place)
        return started
    if ask.multitask == "reject":
        return Busy(active or queue[0].run)
    return await _enqueue(tx, ask, active, queue)


def _may_begin(ask: Start, session: Session, active: Run | None, queue: list[QueueEntry]) -> bool:
    """Nothing is running. A paused queue holds up only who wants to be part of it; another all but who interrupts."""
    if active is not None:
        return False
    if not queue or ask.multitask == "interrupt":
        return True
    return session.queue_paused and ask.multitask == "reject"


async def _enqueue(tx: Transaction, ask: Start, active: Run | None, queue: list[QueueEntry]) -> Queued:
    front = ask.multitask == "interrupt"
    run = replace(ask.run, state=RunState.QUEUED, interrupts=front)
    await tx.tables.add_run(run, RunBody(ask.request, echo=ask.echo))
    first, last = (queue[0].position, queue[-1].position) if queue else (0, 0)
    await tx.tables.put_queued(run, ask.messages, ask.place, first - 1 if front else last + 1)
    if not front or active is None:
        return Queued(run, len(queue))
    # Several at once: the last one wins, over those that have not begun as over the one that runs.
    replaced = [await _replace(tx, entry.run) for entry in queue if entry.run.interrupts]
    return Queued(run, 0, await _replace(tx, active), tuple(replaced))


async def _replace(tx: Transaction, run: Run) -> Run:
    """An earlier stop gives way: what comes next must not be held up by a pause."""
    run = replace(run, stop=StopRequest("replaced", tx.now))
    await _put_stop(tx, run)
    return run


def _running(tx: Transaction, run: Run, parent_id: str | None) -> Run:
    return replace(run, state=RunState.RUNNING, worker_id=tx.worker_id, started_at=tx.now, parent_id=parent_id)


async def begin(
    tx: Transaction, session: Session, run: Run, messages: tuple[SessionMessage, ...], place: AtHead | Under
) -> tuple[Session, Started]:
    """The run has the session now: what was said with it takes its place in the tree."""
    parent_id = session.head_id if isinstance(place, AtHead) else place.message_id
    placed = chain(messages, parent_id, run.id)
    tip = placed[-1].id if placed else parent_id
    if session.head_id != tip and not placed:
        run = replace(run, back_id=session.head_id)
    session = replace(session, head_id=tip, updated_at=tx.now)
    await tx.tables.put_session(session)
    for message in placed:
        await tx.tables.add_message(session.owner, session.id, message)
    run = _running(tx, run, tip)
    await tx.tables.put_run(run)
    tx.news.of_session(session.owner, session.id)
    return session, Started(run, placed)


def chain(messages: tuple[SessionMessage, ...], parent_id: str | None, run_id: str) -> tuple[SessionMessage, ...]:
    """Each behind the one before."""
    parents = (parent_id, *(message.id for message in messages))
    return tuple(
        replace(message, parent_id=parent, run_id=run_id) for message, parent in zip(messages, parents, strict=False)
    )


# -------------------------------------------------------------- claim, release


async def claim(tx: Transaction, run_id: str) -> Started | None:
    session, run = await lock(tx, run_id)
    if run is None:
        return None
    if run.state is RunState.WAITING:
        run = replace(run, state=RunState.RUNNING, worker_id=tx.worker_id, waits_until=None)
        await tx.tables.put_run(run)
        tx.news.of_run(run)
        return Started(run, ())
    if run.state is not RunState.QUEUED or session is None:
        return None
    queue = await tx.tables.queue(session.owner, session.id)
    if session.queue_paused or queue[0].run.id != run_id or await tx.tables.active_run(session.owner, session.id):
        return None
    _, started = await take_first(tx, session, queue)
    return started


async def take_first(tx: Transaction, session: Session, queue: list[QueueEntry]) -> tuple[Session, Started]:
    entry = queue[0]
    await tx.tables.drop_queued(entry.run.id)
    # A queue of which nothing is left holds up nobody.
    session = replace(session, queue_paused=session.queue_paused and len(queue) > 1)
    session, started = await begin(tx, session, entry.run, entry.messages, entry.place)
    tx.news.of_run(started.run)
    return session, started


async def release(tx: Transaction, run_id: str, until: float | None, calls: Sequence[str]) -> bool:
    _, run = await lock(tx, run_id)
    if run is None or run.state is not RunState.RUNNING or run.worker_id != tx.worker_id:
        return False
    if any(approval.call_id in calls for approval in await tx.tables.approvals(run_id)):
        # Said while the run was still on its way to bed: nobody else would wake it.
        until = tx.now
    state = advance(run.state, Signal.SUSPENDED)
    await tx.tables.put_run(replace(run, state=state, worker_id=None, waits_until=until))
    tx.news.of_run(run)
    return True


async def lock(tx: Transaction, run_id: str) -> tuple[Session | None, Run | None]:
    """A run to be changed, with its session: that one first, as everybody does."""
    seen = await tx.tables.run(run_id)
    while seen is not None:
        session = None if seen.session_id is None else await tx.tables.lock_session(seen.owner, seen.session_id)
        run = seen if tx.tables.exclusive else await tx.tables.lock_run(run_id)
        if run is None or run.owner == seen.owner:
            return session, run
        # It was adopted meanwhile, and its session with it.
        seen = run
    return None, None


# ---------------------------------------------------------------------- end


async def end(tx: Transaction, ending: Ending) -> EndResult:
    session, run = await lock(tx, ending.run_id)
    if run is None or run.outcome is not None or not await _may_end(tx, run):
        return EndLost(run)
    if ending.idle and run.state is RunState.RUNNING:
        return EndLost(run)
    abandoned = run.worker_id != tx.worker_id
    state = advance(run.state, _signal(ending.outcome, abandoned))
    last_seq = await tx.tables.last_seq(run.id)
    if ending.tail is not None:
        await _add_tail(tx, ending.tail, last_seq)
        last_seq = ending.tail.last_seq
    ended = replace(
        run,
        state=state,
        outcome=ending.outcome,
        usage=ending.usage,
        answered_by=ending.answered_by,
        first_token_at=ending.first_token_at,
        ended_at=tx.now,
        last_seq=last_seq,
    )
    await tx.tables.put_run(ended)
    tx.news.of_run(ended)
    if session is not None:
        return EndStands(ended, await _leave(tx, session, run, ending))
    if ending.output:
        await tx.tables.put_output(run.id, ending.output)
    return EndStands(ended)


async def _add_tail(tx: Transaction, tail: Batch, last_seq: int) -> None:
    """Entries that could not be told to be kept may have been all the same: they stand, and the tail goes on there."""
    there: list[bytes] = []
    if tail.first_seq <= last_seq:
        for batch in await tx.tables.batches(tail.run_id, tail.first_seq - 1, ALL_BYTES):
            there += batch.after(tail.first_seq - 1)
    if len(there) != last_seq + 1 - tail.first_seq or list(tail.entries[: len(there)]) != there:
        raise ValueError(f"the log of {tail.run_id} goes on at {last_seq + 1}, not at {tail.first_seq}")
    if len(there) < len(tail.entries):
        await tx.tables.add_batch(Batch(tail.run_id, last_seq + 1, tail.entries[len(there) :]))


async def _may_end(tx: Transaction, run: Run) -> bool:
    if run.state is not RunState.RUNNING or run.worker_id in (tx.worker_id, None):
        return True
    worker = await tx.tables.worker(run.worker_id)
    return worker is None or worker.fenced


def _signal(outcome: Outcome, abandoned: bool) -> Signal:
    if isinstance(outcome, Stopped):
        return Signal.STOPPED
    return Signal.ABANDONED if isinstance(outcome, Interrupted) and abandoned else Signal.FINISHED


async def _leave(tx: Transaction, session: Session, run: Run, ending: Ending) -> Started | None:
    """What the run leaves in its session, and who comes next."""
    tx.news.of_session(session.owner, session.id)
    if run.state is RunState.QUEUED:
        # It never began, so there is nothing behind which a notice could stand.
        await tx.tables.drop_queued(run.id)
        if session.queue_paused and not await tx.tables.queue(session.owner, session.id):
            await tx.tables.put_session(replace(session, queue_paused=False))
        return None
    placed = chain(ending.messages, run.parent_id, run.id)
    for message in placed:
        await tx.tables.add_message(session.owner, session.id, message)
    tip = placed[-1].id if placed else run.parent_id
    for notice in ending.notices:
        await tx.tables.add_notice(session.owner, session.id, replace(notice, after_id=tip, run_id=run.id))
    # Somebody may have turned to another branch meanwhile, and stays there.
    head_id = tip if session.head_id == run.parent_id else session.head_id
    if not placed and head_id == run.parent_id and run.back_id is not None:
        # It was to answer again, and has no answer: the one that there was is not hidden behind nothing.
        head_id = run.back_id
    session = replace(session, head_id=head_id, updated_at=tx.now)
    queue = await tx.tables.queue(session.owner, session.id)
    replaced = run.stop is not None and run.stop.reason == "replaced"
    if queue and not replaced and not isinstance(ending.outcome, Completed | Incomplete):
        session = replace(session, queue_paused=True)
    if queue and ending.take_next and (replaced or not session.queue_paused):
        _, started = await take_first(tx, session, queue)
        return started
    await tx.tables.put_session(session)
    return None


# ------------------------------------------------------------------- deleting


async def delete(tx: Transaction, owner: str, run_id: str) -> Busy | Missing | None:
    run = await tx.tables.lock_run(run_id)
    if run is None or run.owner != owner or run.session_id is not None:
        return Missing("run")
    if run.state is not RunState.ENDED:
        return Busy(run)
    await tx.tables.delete_run(run_id)
    tx.news.of_run(run)
    return None


async def drop_log(tx: Transaction, run_id: str) -> bool:
    """False: somebody else has, meanwhile."""
    run = await tx.tables.lock_run(run_id)
    if run is None or run.log_dropped:
        return False
    await tx.tables.drop_log(run_id)
    await tx.tables.put_run(replace(run, log_dropped=True))
    tx.news.of_run(run)
    return True


# -------------------------------------------------------------------- orders


async def ask_stop(tx: Transaction, owner: str | None, run_id: str, stop: StopRequest) -> StopStands | None:
    _, run = await lock(tx, run_id)
    if run is None or owner not in (None, run.owner):
        return None
    if run.outcome is not None or run.stop is not None:
        return StopStands(run, False)
    run = replace(run, stop=stop)
    await _put_stop(tx, run)
    return StopStands(run, True)


async def _put_stop(tx: Transaction, run: Run) -> None:
    await tx.tables.put_run(run)
    _order(tx, run)
    tx.news.of_run(run)


def _order(tx: Transaction, run: Run) -> None:
    if run.state is RunState.RUNNING and run.worker_id is not None:
        tx.news.orders.append((run.worker_id, run.id))


async def approve(
    tx: Transaction, owner: str, run_id: str, approval: Approval, key: IdempotencyKey | None
) -> Approval | Replayed | KeyMismatch | Missing:
    if key and (used := await used_before(tx, owner, key)):
        return used
    _, run = await lock(tx, run_id)
    if run is None or run.owner != owner or run.outcome is not None:
        return Missing("run")
    if key:
        await reserve(tx, owner, key, approval.call_id)
    for earlier in await tx.tables.approvals(run_id):
        if earlier.call_id == approval.call_id:
            return earlier
    await tx.tables.add_approval(run_id, approval)
    if run.state is RunState.WAITING:
        # Any worker may take it up now, also if the one that was told dies before it can.
        await tx.tables.put_run(replace(run, waits_until=tx.now))
    _order(tx, run)
    tx.news.of_run(run)
    return approval
