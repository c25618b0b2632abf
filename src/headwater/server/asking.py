"""From what a client asks to a run that answers it: whose, of which model, in which session, recorded or not.

Refuses by `CallerError`. How the answer is told is no matter of this.
"""

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from headwater.conversation import Ask
from headwater.dialects.base import Head
from headwater.dialects.responses.resource import response_id
from headwater.errors import CallerError
from headwater.events import Completed, DialectName, Incomplete
from headwater.lifecycle import RunState
from headwater.records import Run, RunBody
from headwater.runs.habits import MakeSource
from headwater.runs.live import LiveRun
from headwater.server.callers import Caller
from headwater.server.guard import check_runs
from headwater.server.refusals import Refusal
from headwater.server.services import Services
from headwater.server.stored import find_response
from headwater.source import Source
from headwater.store.results import Busy, Start, Started
from headwater.upstream.model import Model


class Begun(Struct, frozen=True):
    run: Run
    head: Head
    live: LiveRun | None
    """Only if it is in no store."""


async def begin(services: Services, caller: Caller, route: DialectName, ask: Ask) -> Begun:
    """Raises `CallerError` (429: they have as many runs as they may), `StoreError`."""
    previous = None if ask.previous_response_id is None else await _previous(services, caller, ask.previous_response_id)
    name, model = await _model(services, caller, ask.request.model)
    if model is None:
        await services.agents.check(name, ask.request)
    else:
        model.check(ask.request)
    check_runs(caller, services.runs)
    if not services.accepting:
        # Looked at last: what is begun after the end has come would be nobody's.
        message = "This server is shutting down. Ask again: another may be up."
        raise CallerError(message, status=503, code="shutting_down")
    run = _run(services, caller, route, ask, name, is_agent=model is None, previous=previous)
    if model is None or run.recorded:
        return Begun(await _start(services, run, ask, model), _head(run, ask), None)
    return _begin_unrecorded(services, run, ask, model)


def at_hand(services: Services, caller: Caller, ask: Ask) -> Model | None:
    """Who answers, where nothing has to be waited for; None: `begin` it in full. Raises `CallerError`."""
    name = ask.request.model
    if not name or is_recorded(ask) or ask.previous_response_id is not None or not services.accepting:
        return None
    if name in services.agents or not caller.may_ask(name):
        return None
    model = services.upstreams.at_hand(name)
    if model is not None:
        model.check(ask.request)
        check_runs(caller, services.runs)
    return model


def begin_at_hand(services: Services, caller: Caller, route: DialectName, ask: Ask, model: Model) -> Begun:
    return _begin_unrecorded(services, _run(services, caller, route, ask, str(ask.request.model)), ask, model)


def _begin_unrecorded(services: Services, run: Run, ask: Ask, model: Model) -> Begun:
    return Begun(run, _head(run, ask), services.runs.start_unrecorded(run, _asking(services, ask, model)))


def _run(
    services: Services,
    caller: Caller,
    route: DialectName,
    ask: Ask,
    name: str,
    *,
    is_agent: bool = False,
    previous: str | None = None,
) -> Run:
    recorded = is_agent or is_recorded(ask)
    now = services.clock.unix_s()
    return Run(
        id=services.make_id("run"),
        owner=caller.owner,
        model=name,
        created_at=now,
        route=route,
        session_id=ask.session_id,
        previous_run_id=previous,
        agent=name if is_agent else None,
        on_disconnect=ask.on_disconnect,
        on_cut=ask.on_cut,
        recorded=recorded,
        # Of the others the store says when they begin, and where.
        state=RunState.QUEUED if recorded else RunState.RUNNING,
        started_at=None if recorded else now,
        worker_id=None if recorded else services.store.worker_id,
    )


def _head(run: Run, ask: Ask) -> Head:
    return Head(run.id, int(run.created_at), run.model, ask.echo)


def _asking(services: Services, ask: Ask, model: Model) -> MakeSource:
    """What the run will ask is at hand, and so is who answers: no store need be read for it."""
    body = RunBody(ask.request, echo=ask.echo)
    return services.traced(partial(services.answers.asking, body=body, model=model))


def is_recorded(ask: Ask) -> bool:
    """All but what nobody can ask for again: it has no session, is not stored, and ends with its connection."""
    return ask.store or ask.background or ask.session_id is not None or ask.on_disconnect == "continue"


async def _model(services: Services, caller: Caller, asked: str | None) -> tuple[str, Model | None]:
    """The name that is meant, and who answers for it; None: an agent does."""
    upstreams = services.upstreams
    name = asked or await upstreams.catalog.choose(asked, services.clock.now_s(), caller.may_ask)
    if not caller.may_ask(name):
        raise CallerError(
            f"There is no model '{name}' for this key.", status=404, code="model_not_found", param="model"
        )
    if name in services.agents:
        return name, None
    return name, await upstreams.model(name, caller.may_ask)


def _asking_still(services: Services, ask: Ask, model: Model) -> MakeSource:
    """The same for a run that is committed first: the upstreams may be others by then, and these be closed."""
    upstreams, at_hand = services.upstreams, _asking(services, ask, model)

    async def make_source(run: Run) -> Source:
        return await (at_hand(run) if services.upstreams is upstreams else services.traced(services.answers)(run))

    return make_source


async def _start(services: Services, run: Run, ask: Ask, model: Model | None) -> Run:
    if run.session_id is None:
        start = Start(run=run, request=ask.request, echo=ask.echo)
        make_source = None if model is None else _asking_still(services, ask, model)
    else:
        start = replace(services.sessions.said(run, ask.request, create_session=True), echo=ask.echo)
        make_source = None
    match await services.runs.start(start, make_source):
        case Started(run=started):
            return started
        case Busy(active=active):
            message = f"The session has a run already: {active.id}. Wait for its end, or stop it."
            raise Refusal(message, status=409, code="session_busy", param="session_id")
        case unexpected:
            # Nothing was queued, replaced or asked for by a key.
            raise AssertionError(unexpected)


async def _previous(services: Services, caller: Caller, named: str) -> str:
    """The run whose history comes first."""
    stored = await find_response(services, caller, named)
    if stored is None:
        raise _bad_previous("previous_response_not_found", f"There is no response '{named}' to follow.")
    run = stored.run
    if run.session_id is not None:
        message = f"'{named}' belongs to the session '{run.session_id}': go on there with 'session_id'."
        raise _bad_previous("invalid_value", message)
    if not isinstance(run.outcome, Completed | Incomplete):
        why = "it is still going on" if run.outcome is None else "it did not succeed"
        message = f"'{named}' has no answer that could be followed: {why}."
        raise _bad_previous("invalid_value", message)
    await _check_history(services, run)
    return run.id


async def _check_history(services: Services, run: Run) -> None:
    """All of it is there: a run that found out for itself would have been begun for nothing."""
    earlier = run.previous_run_id
    while earlier is not None:
        found = await services.store.run(run.owner, earlier)
        if found is None:
            gone, last = response_id(earlier), response_id(run.id)
            message = f"'{gone}', which is part of the history of '{last}', was deleted: there is no going on from it."
            raise _bad_previous("previous_response_not_found", message)
        earlier = found.previous_run_id


def _bad_previous(code: str, message: str) -> CallerError:
    return CallerError(message, code=code, param="previous_response_id")
