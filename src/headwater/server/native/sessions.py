"""Sessions: made, listed, changed, talked in, branched, searched, taken away."""

import re
from typing import Any, Final, assert_never

from msgspec import Struct

from headwater.records import Session, SessionParameters
from headwater.server.native.asking import (
    Wish,
    begin,
    busy,
    check_request,
    messages_of,
    new_run,
    once,
    parameters_of,
    parameters_shape,
    refused,
    request_of,
)
from headwater.server.native.endpoint import Call, Endpoint, Nothing, Reply, endpoint
from headwater.server.native.pages import page_of, place_of
from headwater.server.native.shapes import (
    AgainIn,
    Asked,
    ExportQuery,
    ForkIn,
    Hits,
    HitShape,
    MessageIn,
    Messages,
    MessagesQuery,
    PageQuery,
    SaidIn,
    SearchQuery,
    SessionIn,
    SessionNow,
    SessionPage,
    SessionParametersShape,
    SessionPatch,
    SessionShape,
)
from headwater.server.native.snapshot import time
from headwater.server.refusals import Refusal, not_found
from headwater.store.results import Busy, Missing, SessionChange

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


async def create(call: Call, body: SessionIn) -> Reply:
    now = call.services.clock.unix_s()
    session = Session(
        id=body.id or call.services.make_id("ses"),
        owner=call.owner,
        created_at=now,
        updated_at=now,
        title=body.title,
        parameters=kept_parameters(body.parameters),
    )
    if not await call.services.store.create_session(session):
        raise Refusal("There is a session of that id.", status=409, code="session_exists")
    return Reply(session_shape(session), 201, _location(call, session.id))


async def list_sessions(call: Call, query: PageQuery) -> Reply:
    found = await call.services.store.sessions(call.owner, page_of(query.limit, query.before))
    return Reply(SessionPage(sessions=tuple(map(session_shape, found.sessions)), next=place_of(found.next)))


async def get(call: Call, query: Nothing) -> Reply:
    return Reply(await _now(call, call.part("session_id")))


async def change(call: Call, body: SessionPatch) -> Reply:
    session_id = call.part("session_id")
    parameters = None if body.parameters is None else kept_parameters(body.parameters)
    change = SessionChange(title=body.title, parameters=parameters, head_id=body.head_id, read_id=body.read_id)
    changed = await call.services.sessions.change(call.owner, session_id, change)
    if isinstance(changed, Missing):
        raise refused(changed)
    return Reply(await _now(call, session_id))


async def delete(call: Call, query: Nothing) -> Reply:
    result = await call.services.store.delete_session(call.owner, call.part("session_id"))
    match result:
        case Busy(active=active):
            raise busy(active)
        case Missing():
            raise refused(result)
        case None:
            return Reply(status=204)
        case unreachable:
            assert_never(unreachable)


async def _now(call: Call, session_id: str) -> SessionNow:
    transcript = await call.services.store.transcript(call.owner, session_id)
    if transcript is None:
        raise not_found("session")
    active = transcript.active
    return SessionNow(
        **_fields(session_shape(transcript.session)),
        active_run_id=None if active is None else active.id,
        queued=len(transcript.queue),
    )


# ------------------------------------------------------------------------- talking


async def messages(call: Call, query: MessagesQuery) -> Reply:
    view = await call.services.sessions.view(call.owner, call.part("session_id"), query.head_id)
    if isinstance(view, Missing):
        raise refused(view)
    if query.head_id is not None and not view.items:
        raise not_found("message")
    return Reply(view)


@once
async def say(call: Call, body: SaidIn) -> Reply:
    run = await new_run(call, _wish(body), call.part("session_id"))
    said = await messages_of(call, (MessageIn(content=body.content, parts=body.parts),))
    request = request_of(said, body.parameters)
    await check_request(call, run, request)
    return await begin(call, call.services.sessions.said(run, request), body.multitask)


@once
async def edit(call: Call, body: SaidIn) -> Reply:
    run = await new_run(call, _wish(body), call.part("session_id"))
    said = await messages_of(call, (MessageIn(content=body.content, parts=body.parts),))
    request = request_of(said, body.parameters)
    await check_request(call, run, request)
    ask = await call.services.sessions.edited(run, request, call.part("message_id"))
    return await begin(call, ask, body.multitask)


@once
async def regenerate(call: Call, body: AgainIn) -> Reply:
    run = await new_run(call, _wish(body), call.part("session_id"))
    request = request_of((), body.parameters)
    await check_request(call, run, request)
    ask = await call.services.sessions.regenerated(run, request, call.part("message_id"))
    return await begin(call, ask, body.multitask)


def _wish(body: AgainIn) -> Wish:
    return Wish(model=body.model, on_disconnect=body.on_disconnect, multitask=body.multitask)


# ----------------------------------------------------------------------- elsewhere


async def fork(call: Call, body: ForkIn) -> Reply:
    forked = await call.services.sessions.fork(call.owner, call.part("session_id"), body.message_id)
    if isinstance(forked, Missing):
        raise refused(forked)
    return Reply(session_shape(forked), 201, _location(call, forked.id))


async def search(call: Call, query: SearchQuery) -> Reply:
    found = await call.services.store.search(call.owner, query.q, query.limit)
    hits = [HitShape(**(_fields(hit) | {"created_at": time(hit.created_at)})) for hit in found]
    return Reply(Hits(hits=tuple(hits)))


async def export(call: Call, query: ExportQuery) -> Reply:
    session_id = call.part("session_id")
    exported = await call.services.sessions.export(call.owner, session_id, query.format)
    if isinstance(exported, Missing):
        raise refused(exported)
    name = f"{_UNSAFE.sub('_', session_id)}.{query.format}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Reply(exported.body, headers=headers, media_type=exported.media_type)


# -------------------------------------------------------------------------- shapes


def session_shape(session: Session) -> SessionShape:
    given = session.parameters
    return SessionShape(
        id=session.id,
        title=session.title,
        created_at=time(session.created_at),
        updated_at=time(session.updated_at),
        parameters=parameters_shape(given.system, given.model, given.request),
        head_id=session.head_id,
        read_id=session.read_id,
        group_id=session.group_id,
        forked_from=session.forked_from,
        queue_paused=session.queue_paused,
    )


def kept_parameters(given: SessionParametersShape) -> SessionParameters:
    return SessionParameters(given.model, given.system, parameters_of(given))


def _fields(struct: Struct) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _location(call: Call, session_id: str) -> dict[str, str]:
    return {"location": f"{call.services.settings.server.base_path}/api/sessions/{session_id}"}


SEARCH: Final = "/api/sessions/search"
_ONE: Final = "/api/sessions/{session_id}"
_MESSAGES: Final = f"{_ONE}/messages"
_MESSAGE: Final = f"{_MESSAGES}/{{message_id}}"

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    endpoint(
        "GET", SEARCH, search, SearchQuery, Hits, "Messages that have all the words; without `q`, a session's name"
    ),
    endpoint("POST", "/api/sessions", create, SessionIn, SessionShape, "Begin a conversation", status=201, also=(409,)),
    endpoint("GET", "/api/sessions", list_sessions, PageQuery, SessionPage, "Conversations, the newest first"),
    endpoint("GET", _ONE, get, Nothing, SessionNow, "A conversation, without its messages"),
    endpoint("PATCH", _ONE, change, SessionPatch, SessionNow, "Its title, parameters, branch, and what was read"),
    endpoint("DELETE", _ONE, delete, Nothing, None, "Delete it with all that is in it", status=204, also=(409,)),
    endpoint("GET", _MESSAGES, messages, MessagesQuery, Messages, "What was said, on the branch that is shown"),
    endpoint("POST", _MESSAGES, say, SaidIn, Asked, "Say something", status=201, once=True, also=(403, 409, 422)),
    endpoint(
        "PUT",
        _MESSAGE,
        edit,
        SaidIn,
        Asked,
        "Say something else in its place: a new branch",
        status=201,
        once=True,
        also=(403, 409, 422),
    ),
    endpoint(
        "POST",
        f"{_MESSAGE}/regenerate",
        regenerate,
        AgainIn,
        Asked,
        "Have it answered again: a new branch",
        status=201,
        once=True,
        also=(403, 409, 422),
    ),
    endpoint("POST", f"{_ONE}/fork", fork, ForkIn, SessionShape, "A new one, up to a message", status=201),
    endpoint("GET", f"{_ONE}/export", export, ExportQuery, "text/markdown", "To take away: Markdown, or JSON"),
)
