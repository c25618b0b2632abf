"""From what the native API takes to a run that is asked for, and from the store's answer to the client's.

The store decides who may begin; what is refused here is refused before anything is written.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace

from headwater.conversation import Assistant, Image, Message, Parameters, Request, System, Text, User
from headwater.errors import CallerError
from headwater.records import Run, SessionMessage, Transcript
from headwater.server.guard import check_runs
from headwater.server.native.endpoint import Call, Reply
from headwater.server.native.shapes import (
    Asked,
    ImageIn,
    MessageIn,
    OnDisconnect,
    ParametersShape,
    RunShape,
    SessionParametersShape,
    Taken,
)
from headwater.server.native.snapshot import snapshot, time
from headwater.server.refusals import Refusal, not_found
from headwater.sessions.images import BLOB, all_shown
from headwater.sessions.view import MessageItem, parts_of, role_of, text_of, view
from headwater.store.results import Busy, KeyMismatch, Missing, Multitask, Queued, Replayed, Start, Started

T = TypeVar("T", bound=Taken)

# ------------------------------------------------------------------ what is said


async def messages_of(call: Call, given: Sequence[MessageIn]) -> tuple[Message, ...]:
    """Raises `Refusal`."""
    return tuple([await _message(call, message) for message in given])


async def _message(call: Call, given: MessageIn) -> Message:
    if given.parts and given.role != "user":
        raise Refusal("Only what the user says may have parts.", status=400, code="invalid_value", param="parts")
    if given.role == "system":
        return System((Text(given.content),))
    if given.role == "assistant":
        return Assistant((Text(given.content),))
    if not given.content.strip() and not given.parts:
        raise Refusal("The message is empty.", status=400, code="invalid_value", param="content")
    text = (Text(given.content),) if given.content else ()
    return User((*text, *[await _image(call, part) for part in given.parts]))


async def _image(call: Call, given: ImageIn) -> Image:
    if (given.blob is None) == (given.url is None):
        raise Refusal("An image has either `blob` or `url`.", status=400, code="invalid_value", param="parts")
    if given.blob is None:
        return Image(str(given.url))
    blob = await call.services.store.blob(call.owner, given.blob)
    if blob is None:
        raise not_found("blob")
    return Image(f"{BLOB}{blob.hash}")


async def as_sent(call: Call, request: Request) -> Request:
    """With the images themselves where it points at them."""
    return replace(request, messages=await all_shown(call.services.store, call.owner, request.messages))


def parameters_of(given: ParametersShape) -> Parameters:
    return Parameters(
        max_tokens=given.max_tokens,
        temperature=given.temperature,
        top_p=given.top_p,
        stop=given.stop,
        seed=given.seed,
        reasoning_effort=given.reasoning_effort,
    )


def parameters_shape(system: str | None, model: str | None, given: Parameters) -> SessionParametersShape:
    return SessionParametersShape(
        model=model,
        system=system,
        temperature=given.temperature,
        top_p=given.top_p,
        max_tokens=given.max_tokens,
        reasoning_effort=given.reasoning_effort,
        seed=given.seed,
        stop=given.stop,
    )


def request_of(messages: Sequence[Message], parameters: ParametersShape) -> Request:
    system = (System((Text(parameters.system),)),) if parameters.system else ()
    return Request((*system, *messages), parameters=parameters_of(parameters))


# ------------------------------------------------------------------ the run itself


class Wish(Struct, frozen=True, kw_only=True):
    """How a run is to go, whatever it is to answer."""

    model: str | None = None
    on_disconnect: OnDisconnect = "continue"
    multitask: Multitask = "reject"


async def new_run(call: Call, wish: Wish, session_id: str | None = None) -> Run:
    """A model that may be asked, and a run to ask it. Raises `CallerError`."""
    services = call.services
    name = wish.model or await _sessions_model(call, session_id)
    catalog, now_s, may_ask = services.upstreams.catalog, services.clock.now_s(), call.caller.may_ask
    name = await catalog.choose(name, now_s, may_ask)
    if not may_ask(name):
        raise Refusal(f"This key may not ask '{name}'.", status=403, code="model_not_allowed", param="model")
    agent = name if name in services.agents else None
    if agent is None:
        await catalog.resolve(name, now_s, may_ask)
    return Run(
        id=services.make_id("run"),
        owner=call.owner,
        model=name,
        created_at=services.clock.unix_s(),
        session_id=session_id,
        agent=agent,
        on_disconnect=wish.on_disconnect,
    )


async def _sessions_model(call: Call, session_id: str | None) -> str | None:
    if session_id is None:
        return None
    session = await call.services.store.session(call.owner, session_id)
    if session is None:
        raise not_found("session")
    return session.parameters.model


async def check_request(call: Call, run: Run, request: Request) -> None:
    """What the model's upstream can't be asked is refused by name, before there is a run. Raises `CallerError`."""
    sent = await as_sent(call, request)
    if run.agent is not None:
        await call.services.agents.check(run.agent, sent)
    else:
        (await call.services.upstreams.model(run.model)).check(sent)


def once(handler: Callable[[Call, T], Awaitable[Reply]]) -> Callable[[Call, T], Awaitable[Reply]]:
    """For what begins a run: one that began before is shown, whatever has become of its model, session and limits."""

    @wraps(handler)
    async def asked(call: Call, body: T) -> Reply:
        return await first_or_again(call, lambda: handler(call, body), lambda run_id: _replayed(call, run_id))

    return asked


async def first_or_again(
    call: Call, first: Callable[[], Awaitable[Reply]], again: Callable[[str], Awaitable[Reply]]
) -> Reply:
    """`again`, with what came of it, if the same was asked before. Raises `CallerError`."""
    before = await used(call)
    if before is None:
        try:
            return await first()
        except CallerError:
            # The same request may have come through meanwhile, and be all that was in the way of this one.
            before = await used(call)
            if before is None:
                raise
    return await again(before.subject_id)


async def used(call: Call, part: str = "") -> Replayed | None:
    """What came of the request's `Idempotency-Key` before. Raises `Refusal` if it came with another request."""
    key = call.idempotency(part)
    before = None if key is None else await call.services.store.used(call.owner, key)
    if isinstance(before, KeyMismatch):
        raise refused(before)
    return before


async def begin(call: Call, start: Start | Missing, multitask: Multitask) -> Reply:
    """The answer to whoever asked for a run. Raises `Refusal`."""
    if isinstance(start, Missing):
        raise refused(start)
    if multitask == "reject" or not call.services.runs.is_busy(start.run):
        # Else it takes the place of a run that is counted already, or waits for it.
        check_runs(call.caller, call.services.runs)
    result = await call.services.runs.start(replace(start, multitask=multitask, idempotency=call.idempotency()))
    match result:
        case Started(run=run, messages=messages):
            return await asked_reply(call, run.id, messages)
        case Queued(run=run):
            return await asked_reply(call, run.id, start.messages)
        case Replayed(subject_id=run_id):
            return await _replayed(call, run_id)
        case Busy(active=active):
            raise busy(active, "Wait for it, stop it, or choose another `multitask`.")
        case KeyMismatch() | Missing() as no:
            raise refused(no)
        case unreachable:
            assert_never(unreachable)


def refused(no: Busy | KeyMismatch | Missing) -> Refusal:
    match no:
        case Busy(active=active):
            return busy(active)
        case KeyMismatch():
            message = "This Idempotency-Key came before, with another request."
            return Refusal(message, status=422, code="idempotency_key_reused")
        case Missing(what=what):
            return not_found(what)
        case unreachable:
            assert_never(unreachable)


def busy(active: Run, what_to_do: str = "Wait for it, or stop it.") -> Refusal:
    return Refusal(
        f"A run of this session is going on. {what_to_do}",
        status=409,
        code="session_busy",
        facts={"active_run_id": active.id},
    )


# ------------------------------------------------------------------------ answers


async def run_shape(call: Call, run_id: str) -> RunShape:
    shape = await snapshot(call.services, call.owner, run_id)
    if shape is None:
        raise not_found("run")
    return shape


async def asked_reply(call: Call, run_id: str, said: Sequence[SessionMessage], *, replayed: bool = False) -> Reply:
    shape = await run_shape(call, run_id)
    headers = {"location": f"{call.services.settings.server.base_path}/api/runs/{run_id}", "x-run-id": run_id}
    if replayed:
        headers["idempotency-replayed"] = "true"
    message = await _shown(call, shape.session_id, said[-1]) if said and shape.session_id else None
    return Reply(Asked(message=message, run=shape), 201, headers)


async def _replayed(call: Call, run_id: str) -> Reply:
    run = await run_shape(call, run_id)
    said: Sequence[SessionMessage] = ()
    if run.session_id is not None:
        transcript = await call.services.store.transcript(call.owner, run.session_id)
        said = [] if transcript is None else said_with(transcript, run_id)
    return await asked_reply(call, run_id, said, replayed=True)


def said_with(transcript: Transcript, run_id: str) -> Sequence[SessionMessage]:
    """What came with a run, be it queued."""
    queued = next((entry for entry in transcript.queue if entry.run.id == run_id), None)
    if queued is not None:
        return queued.messages
    return [m for m in transcript.messages if m.run_id == run_id and isinstance(m.message, User)]


async def _shown(call: Call, session_id: str, message: SessionMessage) -> MessageItem:
    transcript = await call.services.store.transcript(call.owner, session_id)
    items = () if transcript is None else view(transcript, message.id).items
    found = next((item for item in items if isinstance(item, MessageItem) and item.id == message.id), None)
    return found or plain_item(message)


def plain_item(message: SessionMessage) -> MessageItem:
    """One that has no place in the tree yet."""
    return MessageItem(
        id=message.id,
        created_at=time(message.created_at),
        run_id=message.run_id,
        parent_id=message.parent_id,
        role=role_of(message.message),
        content=text_of(message.message),
        parts=parts_of(message.message),
        status=message.status,
        siblings=(),
    )
