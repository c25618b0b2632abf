"""The rules of sessions: branches, forks, queues, comparisons, and what goes when one is deleted.

Each function is one transaction's work. What is refused is refused before anything is written.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from headwater.conversation import Request
from headwater.events import make_id
from headwater.lifecycle import RunState
from headwater.records import Group, IdempotencyKey, QueueEntry, Run, Session, SessionMessage, Transcript, path_to
from headwater.store.results import (
    Busy,
    Changed,
    Compared,
    KeyMismatch,
    Missing,
    Page,
    Replayed,
    SessionChange,
    Started,
)
from headwater.store.rules import runs
from headwater.store.tables import Tables, Transaction


async def create(tx: Transaction, session: Session) -> bool:
    if await tx.tables.lock_session(session.owner, session.id) is not None:
        return False
    await tx.tables.put_session(session)
    tx.news.of_session(session.owner, session.id)
    return True


async def transcript(tables: Tables, owner: str, session_id: str) -> Transcript | None:
    session = await tables.session(owner, session_id)
    if session is None:
        return None
    return Transcript(
        session,
        tuple(await tables.messages(owner, session_id)),
        tuple(await tables.notices(owner, session_id)),
        tuple(await tables.queue(owner, session_id)),
        await tables.active_run(owner, session_id),
    )


async def change(tx: Transaction, owner: str, session_id: str, change: SessionChange) -> Session | Missing:
    session = await tx.tables.lock_session(owner, session_id)
    if session is None:
        return Missing("session")
    for message_id in (change.head_id, change.read_id):
        if message_id is not None and await tx.tables.message(owner, session_id, message_id) is None:
            return Missing("message")
    fields = {name: getattr(change, name) for name in change.__struct_fields__}
    session = replace(session, **{name: value for name, value in fields.items() if value is not None})
    await tx.tables.put_session(session)
    tx.news.of_session(owner, session_id)
    return session


async def delete(tx: Transaction, owner: str, session_id: str) -> Busy | Missing | None:
    if await tx.tables.lock_session(owner, session_id) is None:
        return Missing("session")
    active = await tx.tables.active_run(owner, session_id)
    if active is not None and active.state is RunState.RUNNING:
        return Busy(active)
    waiting = [entry.run for entry in await tx.tables.queue(owner, session_id)]
    await tx.tables.delete_session(owner, session_id)
    for run in (*waiting, *([active] if active is not None else [])):
        # Whoever follows one of them would wait for ever.
        tx.news.of_run(run)
    tx.news.of_session(owner, session_id)
    return None


async def fork(tx: Transaction, owner: str, session_id: str, message_id: str, new_id: str) -> Session | Missing:
    session = await tx.tables.session(owner, session_id)
    if session is None:
        return Missing("session")
    path = path_to(await tx.tables.messages(owner, session_id), message_id)
    if not path:
        return Missing("message")
    copies = [replace(message, id=make_id("msg", int(tx.now * 1000), tx.entropy(16))) for message in path]
    forked = Session(
        id=new_id,
        owner=owner,
        created_at=tx.now,
        updated_at=tx.now,
        title=session.title,
        head_id=copies[-1].id,
        parameters=session.parameters,
        forked_from=session_id,
    )
    await tx.tables.put_session(forked)
    copied = {message.id: copy.id for message, copy in zip(path, copies, strict=True)}
    parents = (None, *(copy.id for copy in copies))
    for copy, parent in zip(copies, parents, strict=False):
        placed = replace(copy, parent_id=parent, continues=copied.get(copy.continues or ""))
        await tx.tables.add_message(owner, new_id, placed)
    for notice in await tx.tables.notices(owner, session_id):
        # What is said of a message goes with it: the model is told of calls that were dropped.
        if (after_id := copied.get(notice.after_id or "")) is not None:
            id = make_id("not", int(tx.now * 1000), tx.entropy(16))
            await tx.tables.add_notice(owner, new_id, replace(notice, id=id, after_id=after_id))
    tx.news.of_session(owner, new_id)
    return forked


# -------------------------------------------------------------------- queue


async def reorder(
    tx: Transaction, owner: str, session_id: str, run_ids: Sequence[str]
) -> tuple[QueueEntry, ...] | Missing:
    if await tx.tables.lock_session(owner, session_id) is None:
        return Missing("session")
    place = {run_id: n for n, run_id in enumerate(run_ids)}
    queue = await tx.tables.queue(owner, session_id)
    if not place.keys() <= {entry.run.id for entry in queue}:
        return Missing("run")
    queue.sort(key=lambda entry: place.get(entry.run.id, len(place)))
    entries = tuple(replace(entry, position=n) for n, entry in enumerate(queue))
    for entry in entries:
        await tx.tables.put_queued(entry.run, entry.messages, entry.place, entry.position)
    tx.news.of_session(owner, session_id)
    return entries


async def edit_queued(
    tx: Transaction, owner: str, run_id: str, messages: tuple[SessionMessage, ...], request: Request
) -> QueueEntry | Missing:
    session, run = await runs.lock(tx, run_id)
    if session is None or run is None or run.owner != owner or run.state is not RunState.QUEUED:
        return Missing("run")
    queue = await tx.tables.queue(owner, session.id)
    entry = replace(next(entry for entry in queue if entry.run.id == run_id), messages=messages)
    await tx.tables.put_queued(run, entry.messages, entry.place, entry.position)
    await tx.tables.put_request(run_id, request)
    tx.news.of_session(owner, session.id)
    return entry


async def resume(tx: Transaction, owner: str, session_id: str) -> Started | Missing | None:
    session = await tx.tables.lock_session(owner, session_id)
    if session is None:
        return Missing("session")
    session = replace(session, queue_paused=False)
    await tx.tables.put_session(session)
    tx.news.of_session(owner, session_id)
    queue = await tx.tables.queue(owner, session_id)
    if not queue or await tx.tables.active_run(owner, session_id) is not None:
        return None
    _, started = await runs.take_first(tx, session, queue)
    return started


async def ready(tables: Tables, now: float) -> list[Run]:
    """Those of nobody whose turn has come."""
    found: list[Run] = []
    seen: set[tuple[str, str]] = set()
    for run in await tables.unsettled():
        if run.state is RunState.WAITING:
            if run.stop is not None or (run.waits_until is not None and run.waits_until <= now):
                found.append(run)
            continue
        assert run.session_id is not None, "only sessions have queues"
        if (run.owner, run.session_id) in seen:
            continue
        seen.add((run.owner, run.session_id))
        session = await tables.session(run.owner, run.session_id)
        if session is None or session.queue_paused or await tables.active_run(run.owner, run.session_id):
            continue
        found.append((await tables.queue(run.owner, run.session_id))[0].run)
    return found


# -------------------------------------------------------------------- groups


async def create_group(
    tx: Transaction, group: Group, sessions: tuple[Session, ...], key: IdempotencyKey | None
) -> Replayed | KeyMismatch | None:
    if key is not None:
        if used := await runs.used_before(tx, group.owner, key):
            return used
        await runs.reserve(tx, group.owner, key, group.id)
    await tx.tables.put_group(group)
    for session in sessions:
        await tx.tables.put_session(replace(session, group_id=group.id, hidden=True))
    tx.news.changed.append((group.owner, Changed("group", group.id)))
    return None


async def compared(tables: Tables, owner: str, page: Page) -> list[Compared]:
    before = page.before or (float("inf"), "")
    made = [((group.created_at, group.id), group) for group in await tables.groups(owner)]
    newest = sorted((one for one in made if one[0] < before), key=lambda one: one[0], reverse=True)
    groups = [group for _, group in newest[: page.limit]]
    ids = [session_id for group in groups for session_id in group.session_ids]
    found = {session.id: session for session in await tables.sessions_named(owner, ids)}
    return [Compared(group, tuple(found[id] for id in group.session_ids if id in found)) for group in groups]


async def delete_group(tx: Transaction, owner: str, group_id: str) -> Busy | Missing | None:
    group = await tx.tables.group(owner, group_id)
    if group is None:
        return Missing("group")
    panes = [await tx.tables.lock_session(owner, pane_id) for pane_id in sorted(group.session_ids)]
    there = [pane for pane in panes if pane is not None]
    for pane in there:
        active = await tx.tables.active_run(owner, pane.id)
        if pane.hidden and active is not None and active.state is RunState.RUNNING:
            return Busy(active)
    for pane in there:
        if pane.hidden:
            await delete(tx, owner, pane.id)
        else:
            await tx.tables.put_session(replace(pane, group_id=None))
            tx.news.of_session(owner, pane.id)
    await tx.tables.delete_group(owner, group_id)
    tx.news.changed.append((owner, Changed("group", group_id)))
    return None


async def pick(tx: Transaction, owner: str, group_id: str, session_id: str) -> Group | Missing:
    group = await tx.tables.group(owner, group_id)
    if group is None:
        return Missing("group")
    if session_id not in group.session_ids:
        return Missing("session")
    # In one order, whatever the group's, so that no two wait for each other.
    for pane_id in sorted(group.session_ids):
        pane = await tx.tables.lock_session(owner, pane_id)
        if pane is not None:
            await tx.tables.put_session(replace(pane, hidden=pane_id != session_id))
            tx.news.of_session(owner, pane_id)
    group = replace(group, picked_id=session_id)
    await tx.tables.put_group(group)
    tx.news.changed.append((owner, Changed("group", group_id)))
    return group
