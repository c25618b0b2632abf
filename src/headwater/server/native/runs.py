"""Runs: asked for, looked at, followed, stopped, gone on with, approved."""

import contextlib
from functools import partial
from typing import Final, assert_never

from msgspec.structs import replace

from headwater.errors import CallerError
from headwater.events import ApprovalAsked, decode_entry
from headwater.records import Approval, Scope
from headwater.server.native.asking import (
    Wish,
    as_sent,
    begin,
    check_request,
    messages_of,
    new_run,
    once,
    refused,
    request_of,
)
from headwater.server.native.endpoint import Call, Endpoint, Nothing, Reply, Stream, endpoint
from headwater.server.native.pages import page_of, place_of
from headwater.server.native.shapes import (
    ApprovalIn,
    ApprovalShape,
    Asked,
    EventsQuery,
    GoOnIn,
    ManyQuery,
    MessageIn,
    RunIn,
    RunPage,
    RunShape,
    RunsQuery,
    StopIn,
    Stopping,
)
from headwater.server.native.snapshot import live_shape, snapshot, summary, time, unrecorded
from headwater.server.native.streaming import EventStream, ManyRuns, OpenStreams, Work, one_run
from headwater.server.refusals import Refusal, not_found
from headwater.store.results import KeyMismatch, Missing, Replayed, RunQuestion, Start

_RUNS: Final = 100
"""On one connection."""
_ADMINS_TOO: Final[tuple[Scope, ...]] = ("chat", "admin")
"""For what an administrator does with anybody's runs, also one who has none."""


async def start(call: Call, body: RunIn) -> Reply:
    asked = await _asked_for(call, body)
    return replace(asked, value=asked.value.run)


@once
async def _asked_for(call: Call, body: RunIn) -> Reply:
    if (body.input is None) == (not body.messages):
        raise Refusal("A run takes either `messages` or `input`.", status=400, code="invalid_value", param="input")
    given = body.messages or (MessageIn(content=body.input or ""),)
    wish = Wish(model=_asked_of(call, body), on_disconnect=body.on_disconnect, multitask=body.multitask)
    run = await new_run(call, wish, body.session_id)
    run = replace(run, on_cut=body.on_cut)
    request = request_of(await messages_of(call, given), body.parameters)
    await check_request(call, run, request)
    if body.session_id is None:
        # Nothing else would keep its images.
        ask = Start(run=run, request=await as_sent(call, request))
    else:
        ask = call.services.sessions.said(run, request)
    return await begin(call, ask, body.multitask)


def _asked_of(call: Call, body: RunIn) -> str | None:
    if body.agent is None:
        return body.model
    if body.model is not None:
        raise Refusal("A run takes either `model` or `agent`.", status=400, code="invalid_value", param="agent")
    if body.agent not in call.services.agents:
        raise Refusal(f"There is no agent '{body.agent}'.", status=404, code="agent_not_found", param="agent")
    return body.agent


async def list_runs(call: Call, query: RunsQuery) -> Reply:
    if query.all and not call.caller.is_admin:
        raise Refusal("Only a key with the scope 'admin' sees everybody's.", status=403, code="scope_needed")
    owner, page = None if query.all else call.owner, page_of(query.limit, query.before)
    # First these: one that ends meanwhile is found in the store.
    live = call.services.runs.unrecorded()
    found = await call.services.store.runs(owner, session_id=query.session_id, status=query.status, page=page)
    question = RunQuestion(owner, query.session_id, query.status, page)
    shown = question.answer(question.of([*live, *found.runs]))
    return Reply(RunPage(runs=tuple(map(summary, shown.runs)), next=place_of(shown.next)))


async def get(call: Call, query: Nothing) -> Reply:
    return Reply(await _any_shape(call, call.part("run_id")))


async def _any_shape(call: Call, run_id: str) -> RunShape:
    shape = await snapshot(call.services, call.any_owner, run_id)
    if shape is None:
        raise not_found("run")
    return shape


async def stop(call: Call, body: StopIn) -> Reply:
    run_id = call.part("run_id")
    # What it has said is in no store: once it has ended, only who holds it can show that.
    live = unrecorded(call.services, call.any_owner, run_id)
    answer = await call.services.runs.stop(call.any_owner, run_id, wait_s=body.wait_s)
    if answer is None:
        raise not_found("run")
    shape = await _any_shape(call, run_id) if live is None else live_shape(live)
    caused = answer.caused(shape.outcome)
    stopping = Stopping(run=shape, caused_by_this_call=caused, upstream_closed=answer.upstream_closed)
    return Reply(stopping, 200 if shape.outcome is not None else 202)


@once
async def go_on(call: Call, body: GoOnIn) -> Reply:
    run_id, sessions = call.part("run_id"), call.services.sessions
    cut = await call.services.store.run(call.owner, run_id)
    if body.session_id is not None and (cut is None or cut.session_id != body.session_id):
        cut = await sessions.run_of_copy(call.owner, body.session_id, run_id)
    if cut is None:
        raise not_found("run")
    session_id = body.session_id or cut.session_id
    if session_id is None:
        message = "Only a run of a session can be gone on with: no other place keeps what it has said."
        raise Refusal(message, status=409, code="no_session")
    wish = Wish(model=body.model or cut.model, on_disconnect=body.on_disconnect, multitask=body.multitask)
    run = await new_run(call, wish, session_id)
    request = request_of((), body.parameters)
    await check_request(call, run, request)
    ask = await sessions.gone_on_with(run, request, cut)
    return await begin(call, ask, body.multitask)


# -------------------------------------------------------------------- following


def following(streams: OpenStreams) -> tuple[Endpoint, ...]:
    """The two that stream."""

    def stream(call: Call, work: Work) -> EventStream:
        unwelcome = partial(call.guard.until_unwelcome, call.scope, call.caller)
        return EventStream(streams, call.services.settings.server.heartbeat_s, work, unwelcome)

    async def events(call: Call, query: EventsQuery) -> Reply | Stream:
        run_id = call.part("run_id")
        after = _last_event_id(call, query.after)
        if (no := await _gap(call, call.any_owner, run_id, after)) is not None:
            return no
        if after >= 0:
            call.services.metrics.resumed("native")
        return stream(call, one_run(call.services, call.any_owner, run_id, after))

    async def many(call: Call, query: ManyQuery) -> Reply | Stream:
        cursors = _cursors(call.headers.get("last-event-id") or query.runs)
        gone: dict[str, str] = {}
        for run_id, after in list(cursors.items()):
            try:
                ended = await _gap(call, call.owner, run_id, after) is not None
            except CallerError as error:
                gone[run_id] = error.code
            else:
                if not ended:
                    continue
            del cursors[run_id]
        if any(after >= 0 for after in cursors.values()):
            call.services.metrics.resumed("native")
        return stream(call, ManyRuns(call.services, call.owner, cursors, gone).work)

    return (
        endpoint(
            "GET",
            "/api/runs/{run_id}/events",
            events,
            EventsQuery,
            "text/event-stream",
            "Follow a run from a cursor: first what was, then what comes",
            needs=_ADMINS_TOO,
            also=(204, 409, 410),
        ),
        endpoint(
            "GET",
            "/api/events",
            many,
            ManyQuery,
            "text/event-stream",
            "Follow many runs on one connection, and hear of what else changes",
        ),
    )


def _last_event_id(call: Call, after: int) -> int:
    given = call.headers.get("last-event-id")
    if not given:
        return after
    with contextlib.suppress(ValueError):
        if -1 <= (seq := int(given)) < 1 << 53:
            return seq
    raise Refusal("Last-Event-ID is not one that came from here.", status=400, code="invalid_value")


async def _gap(call: Call, owner: str | None, run_id: str, after: int) -> Reply | None:
    """Why this run can't be followed from there: raises `Refusal`; or 204, if there is nothing more to come."""
    if unrecorded(call.services, owner, run_id) is not None:
        raise _not_recorded()
    found = await call.services.store.read(owner, run_id, after, limit_bytes=1)
    if found is None:
        raise not_found("run")
    if not found.run.recorded:
        raise _not_recorded()
    if found.run.log_dropped or after > found.last_seq:
        why = "The log of this run is no longer kept." if found.run.log_dropped else "The log does not go so far."
        shape = await _any_shape(call, run_id)
        raise Refusal(f"{why} `run` is what is known of it.", status=410, code="log_gone", facts={"run": shape})
    return Reply(status=204) if found.run.outcome is not None and after == found.last_seq else None


def _not_recorded() -> Refusal:
    message = "This run is not recorded: only the client that asked for it can follow it."
    return Refusal(message, status=409, code="run_not_recorded")


def _cursors(given: str) -> dict[str, int]:
    cursors: dict[str, int] = {}
    for one in filter(None, given.split(",")):
        run_id, _, seq = one.rpartition(":")
        try:
            cursors[run_id] = int(seq)
        except ValueError:
            run_id = ""
        if not run_id or not -1 <= cursors[run_id] < 1 << 53:
            raise Refusal("`runs` is written run:seq,run:seq.", status=400, code="invalid_value", param="runs")
    if len(cursors) > _RUNS:
        message = f"More than {_RUNS} runs on one connection."
        raise Refusal(message, status=400, code="invalid_value", param="runs")
    return cursors


# -------------------------------------------------------------------- approvals


async def approve(call: Call, body: ApprovalIn) -> Reply:
    run_id, call_id = call.part("run_id"), call.part("call_id")
    asked = await _asked(call, run_id, call_id)
    if asked is None:
        raise not_found("call that waits for an answer")
    if asked.arguments_digest != body.arguments_digest:
        message = "The call has other arguments than those that were shown."
        raise Refusal(message, status=409, code="arguments_changed", facts={"arguments_digest": asked.arguments_digest})
    approval = Approval(
        call_id=call_id,
        decision=body.decision,
        by=call.owner,
        at=call.services.clock.unix_s(),
        reason=body.reason,
        remember=body.remember,
    )
    result = await call.services.store.approve(call.owner, run_id, approval, call.idempotency())
    match result:
        case Approval():
            await call.services.runs.wake(run_id)
            return Reply(_approval(result))
        case Replayed():
            stands = [one for one in await call.services.store.approvals(run_id) if one.call_id == call_id]
            return Reply(_approval(stands[0]), headers={"idempotency-replayed": "true"})
        case Missing():
            # Its log was just read, so it is there.
            raise Refusal("The run has ended: nothing waits for an answer any more.", status=409, code="run_ended")
        case KeyMismatch():
            raise refused(result)
        case unreachable:
            assert_never(unreachable)


async def _asked(call: Call, run_id: str, call_id: str) -> ApprovalAsked | None:
    """In the run's log: the newest of that call."""
    asked, cursor = None, -1
    while (found := await call.services.store.read(call.owner, run_id, cursor)) is not None and found.batches:
        for batch in found.batches:
            for entry in map(decode_entry, batch.after(cursor)):
                cursor = entry.seq
                if isinstance(entry.event, ApprovalAsked) and entry.event.call_id == call_id:
                    asked = entry.event
    return asked


def _approval(approval: Approval) -> ApprovalShape:
    return ApprovalShape(
        call_id=approval.call_id,
        decision=approval.decision,
        by=approval.by,
        at=time(approval.at),
        reason=approval.reason,
        remember=approval.remember,
    )


ENDPOINTS: Final = (
    endpoint("POST", "/api/runs", start, RunIn, RunShape, "Ask for a run", status=201, once=True, also=(403, 409, 422)),
    endpoint(
        "GET", "/api/runs", list_runs, RunsQuery, RunPage, "Runs, the newest first", needs=_ADMINS_TOO, also=(403,)
    ),
    endpoint("GET", "/api/runs/{run_id}", get, Nothing, RunShape, "A run, as far as it has come", needs=_ADMINS_TOO),
    endpoint(
        "POST",
        "/api/runs/{run_id}/stop",
        stop,
        StopIn,
        Stopping,
        "Stop a run: 200 if its ending stands, 202 if its worker has not confirmed in time",
        needs=_ADMINS_TOO,
        also=(202,),
    ),
    endpoint(
        "POST",
        "/api/runs/{run_id}/continue",
        go_on,
        GoOnIn,
        Asked,
        "Go on with an answer that was cut, in a new message",
        status=201,
        once=True,
        also=(403, 409, 422),
    ),
    endpoint(
        "POST",
        "/api/runs/{run_id}/approvals/{call_id}",
        approve,
        ApprovalIn,
        ApprovalShape,
        "Say yes or no to a tool call that waits for it; the first answer stands",
        needs=("approve",),
        once=True,
        also=(409, 422),
    ),
)
