"""Comparisons: the same words to several models, each in a session of its own that is hidden until it is picked.

Each pane is a run like any other, with `on_disconnect: cancel`: stopped by itself, and no other is disturbed (C80).
"""

from collections.abc import Sequence
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from headwater.conversation import Request
from headwater.records import Group, Session, SessionParameters
from headwater.server.guard import check_runs
from headwater.server.native.asking import (
    Wish,
    busy,
    check_request,
    first_or_again,
    messages_of,
    new_run,
    parameters_of,
    refused,
    request_of,
    run_shape,
    used,
)
from headwater.server.native.compared import (
    GroupIn,
    GroupPage,
    GroupSaidIn,
    GroupShape,
    GroupSummary,
    Pane,
    PaneSummary,
    PickIn,
)
from headwater.server.native.endpoint import Call, Endpoint, Nothing, Reply, endpoint
from headwater.server.native.pages import page_of, place_of
from headwater.server.native.shapes import MessageIn, PageQuery
from headwater.server.native.snapshot import time
from headwater.server.refusals import Refusal, not_found
from headwater.store.results import Busy, Compared, KeyMismatch, Missing, Page, Queued, Replayed, Start, Started


async def create(call: Call, body: GroupIn) -> Reply:
    return await first_or_again(call, lambda: _make(call, body), lambda group_id: _made(call, body, group_id))


async def _make(call: Call, body: GroupIn) -> Reply:
    check_runs(call.caller, call.services.runs, len(body.models))
    now = call.services.clock.unix_s()
    sessions = [_session(call, body, model, now) for model in body.models]
    ids = tuple(session.id for session in sessions)
    group = Group(id=call.services.make_id("grp"), owner=call.owner, created_at=now, session_ids=ids)
    starts = await _starts(call, body, _made_panes(sessions))
    result = await call.services.store.create_group(group, tuple(sessions), call.idempotency())
    match result:
        case None:
            return await _begin(call, group, starts)
        case Replayed(subject_id=group_id):
            return await _made(call, body, group_id)
        case KeyMismatch():
            raise refused(result)
        case unreachable:
            assert_never(unreachable)


async def _made(call: Call, body: GroupIn, group_id: str) -> Reply:
    group = await call.services.store.group(call.owner, group_id)
    if group is None:
        message = "This Idempotency-Key has made a comparison before, and that was deleted."
        raise Refusal(message, status=404, code="not_found")
    return await _begin_rest(call, group, body, _made_panes(await _sessions(call, group)))


async def say(call: Call, body: GroupSaidIn) -> Reply:
    group = await _group(call)
    sessions = await _sessions(call, group)
    panes = _said_panes(sessions)

    async def first() -> Reply:
        if not sessions:
            raise Refusal("All panes of this comparison were deleted.", status=409, code="no_panes")
        check_runs(call.caller, call.services.runs, len(sessions))
        await _check_idle(call, sessions)
        return await _begin(call, group, await _starts(call, body, panes))

    return await first_or_again(call, first, lambda _: _begin_rest(call, group, body, panes))


async def get(call: Call, query: Nothing) -> Reply:
    return Reply(await _shape(call, await _group(call)))


async def list_groups(call: Call, query: PageQuery) -> Reply:
    found = await call.services.store.groups(call.owner, page_of(query.limit, query.before))
    return Reply(GroupPage(groups=tuple(map(_summary, found.groups)), next=place_of(found.next)))


async def delete(call: Call, query: Nothing) -> Reply:
    result = await call.services.store.delete_group(call.owner, call.part("group_id"))
    match result:
        case Busy(active=active):
            raise busy(active)
        case Missing():
            raise refused(result)
        case None:
            return Reply(status=204)
        case unreachable:
            assert_never(unreachable)


async def pick(call: Call, body: PickIn) -> Reply:
    picked = await call.services.store.pick(call.owner, call.part("group_id"), body.session_id)
    if isinstance(picked, Missing):
        raise refused(picked)
    return Reply(await _shape(call, picked))


# -------------------------------------------------------------------------- making


def _session(call: Call, body: GroupIn, model: str, now: float) -> Session:
    given = body.parameters
    return Session(
        id=call.services.make_id("ses"),
        owner=call.owner,
        created_at=now,
        updated_at=now,
        parameters=SessionParameters(model, given.system, parameters_of(given)),
        hidden=True,
    )


class _ToAsk(Struct, frozen=True):
    session: Session
    part: str
    """Of the request's idempotency key: it tells this pane from the others."""


def _made_panes(sessions: Sequence[Session]) -> list[_ToAsk]:
    """The key itself is the comparison's."""
    return [_ToAsk(session, f"#{number}") for number, session in enumerate(sessions)]


def _said_panes(sessions: Sequence[Session]) -> list[_ToAsk]:
    """The first of them has the key itself: so it is good for nothing else."""
    return [_ToAsk(session, f"#{number}" if number else "") for number, session in enumerate(sessions)]


async def _starts(call: Call, body: GroupIn | GroupSaidIn, panes: Sequence[_ToAsk]) -> list[Start]:
    """Raises `CallerError` before anything is written."""
    request = request_of(await messages_of(call, (MessageIn(content=body.content, parts=body.parts),)), body.parameters)
    return [await _start(call, pane, request) for pane in panes]


async def _start(call: Call, pane: _ToAsk, request: Request) -> Start:
    wish = Wish(model=pane.session.parameters.model, on_disconnect="cancel")
    run = await new_run(call, wish)
    await check_request(call, run, request)
    start = call.services.sessions.said(replace(run, session_id=pane.session.id), request)
    return replace(start, idempotency=call.idempotency(pane.part))


async def _begin_rest(call: Call, group: Group, body: GroupIn | GroupSaidIn, panes: Sequence[_ToAsk]) -> Reply:
    """What the same request has not come to start before, it starts now."""
    left = [pane for pane in panes if await used(call, pane.part) is None]
    return await _begin(call, group, await _starts(call, body, left) if left else (), replayed=True)


async def _begin(call: Call, group: Group, starts: Sequence[Start], *, replayed: bool = False) -> Reply:
    for number, start in enumerate(starts):
        result = await _started(call, start)
        if isinstance(result, Busy) and number == 0 and not replayed:
            # Whoever has the first pane has them all: of two who speak at once, each would have some.
            raise refused(result)
        replayed = replayed or isinstance(result, Replayed)
    headers = {"location": f"{call.services.settings.server.base_path}/api/groups/{group.id}"}
    if replayed:
        headers["idempotency-replayed"] = "true"
    return Reply(await _shape(call, group), 201, headers)


async def _started(call: Call, start: Start) -> Started | Queued | Replayed | Busy:
    """A pane that got busy meanwhile shows what it is busy with."""
    result = await call.services.runs.start(start)
    match result:
        case Started() | Queued() | Replayed() | Busy():
            return result
        case KeyMismatch() | Missing():
            raise refused(result)
        case unreachable:
            assert_never(unreachable)


async def _check_idle(call: Call, sessions: Sequence[Session]) -> None:
    for session in sessions:
        transcript = await call.services.store.transcript(call.owner, session.id)
        if transcript is not None and transcript.active is not None:
            raise busy(transcript.active)


# ------------------------------------------------------------------------- looking


async def _group(call: Call) -> Group:
    group = await call.services.store.group(call.owner, call.part("group_id"))
    if group is None:
        raise not_found("group")
    return group


async def _sessions(call: Call, group: Group) -> list[Session]:
    """Those that were not deleted."""
    found = [await call.services.store.session(call.owner, session_id) for session_id in group.session_ids]
    return [session for session in found if session is not None]


async def _shape(call: Call, group: Group) -> GroupShape:
    panes = [await _pane(call, session) for session in await _sessions(call, group)]
    return GroupShape(id=group.id, created_at=time(group.created_at), picked_id=group.picked_id, panes=tuple(panes))


def _summary(compared: Compared) -> GroupSummary:
    group, sessions = compared.group, compared.sessions
    return GroupSummary(
        id=group.id,
        created_at=time(group.created_at),
        title=next((session.title for session in sessions if session.title is not None), None),
        picked_id=group.picked_id,
        panes=tuple(PaneSummary(session_id=session.id, model=session.parameters.model) for session in sessions),
    )


async def _pane(call: Call, session: Session) -> Pane:
    newest = await call.services.store.runs(call.owner, session_id=session.id, page=Page(1))
    run = await run_shape(call, newest.runs[0].id) if newest.runs else None
    return Pane(session_id=session.id, model=session.parameters.model, run=run)


_ONE: Final = "/api/groups/{group_id}"

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    endpoint(
        "POST",
        "/api/groups",
        create,
        GroupIn,
        GroupShape,
        "Ask several models side by side",
        status=201,
        once=True,
        also=(403, 409, 422),
    ),
    endpoint("GET", "/api/groups", list_groups, PageQuery, GroupPage, "Comparisons, the newest first"),
    endpoint(
        "DELETE",
        _ONE,
        delete,
        Nothing,
        None,
        "Forget a comparison and its panes, but for the one that was picked",
        status=204,
        also=(409,),
    ),
    endpoint("GET", _ONE, get, Nothing, GroupShape, "A comparison, and how far each pane has come"),
    endpoint(
        "POST",
        f"{_ONE}/messages",
        say,
        GroupSaidIn,
        GroupShape,
        "Say something to all of them",
        status=201,
        once=True,
        also=(403, 409, 422),
    ),
    endpoint("POST", f"{_ONE}/pick", pick, PickIn, GroupShape, "Go on with this pane's session; the others are hidden"),
)
