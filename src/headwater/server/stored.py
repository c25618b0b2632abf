"""Responses that are found again by their id: the object, as far as it has come."""

from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from headwater.conversation import Assistant
from headwater.dialects import responses
from headwater.dialects.base import Encoder, Head
from headwater.dialects.responses.encode import ResponsesEncoder, events_of
from headwater.dialects.responses.resource import PREFIX, response_id
from headwater.errors import CallerError
from headwater.events import Event, RunEnded, UsageReported, decode_entry
from headwater.records import Run, RunBody, can_name
from headwater.server.callers import Caller
from headwater.server.encoding import Remarks, joined
from headwater.server.inner import Inner, outer_turns
from headwater.server.services import Services
from headwater.store.base import Store
from headwater.store.results import LogSlice


class Stored(Struct, frozen=True):
    run: Run
    body: RunBody

    @property
    def head(self) -> Head:
        return Head(self.run.id, int(self.run.created_at), self.run.model, self.body.echo)

    @property
    def in_background(self) -> bool:
        return bool(self.body.echo.get("background"))

    def encoder(self) -> Encoder:
        return responses.encoder(self.head, include_usage=True, style="error")


async def find_response(services: Services, caller: Caller, named: str) -> Stored | None:
    """Only one that was to be kept for that, and is this caller's."""
    if not named.startswith(PREFIX) or not can_name(named):
        return None
    run_id = f"run_{named.removeprefix(PREFIX)}"
    run = await services.store.run(caller.owner, run_id)
    body = await services.store.body(caller.owner, run_id)
    if run is None or body is None or run.route != "responses" or not run.recorded:
        return None
    return None if body.echo.get("store") is False else Stored(run, body)


async def response_object(store: Store, stored: Stored) -> bytes:
    """What its stream adds up to by now: of all that is committed, and nothing more. Raises `CallerError`."""
    encoder = ResponsesEncoder(stored.head)
    remarks = Remarks("responses")
    outcome = None
    async for event in _shown(store, stored):
        remark = remarks.fresh(event)
        if remark is not None:
            encoder.encode(remark)
        encoder.encode(event)
        if isinstance(event, RunEnded):
            outcome = event.outcome
    return bytes(encoder.so_far() if outcome is None else encoder.resource(outcome))


async def frames_so_far(store: Store, stored: Stored) -> int:
    """Of all that is committed: nobody can have had more of its stream. Raises `CallerError`."""
    encoder = ResponsesEncoder(stored.head)
    async for event in _shown(store, stored):
        encoder.encode(event)
    return encoder.frames


async def _shown(store: Store, stored: Stored) -> AsyncIterator[Event]:
    inner = None if stored.run.agent is None else Inner()
    async for event in _events(store, stored):
        for one in (event,) if inner is None else inner.outer(event):
            yield one


async def _events(store: Store, stored: Stored) -> AsyncIterator[Event]:
    """Raises `CallerError`: it was deleted since it was found."""
    last_seq = -1
    while (found := await _read(store, stored.run, last_seq)).batches:
        for batch in found.batches:
            for line in batch.after(last_seq):
                entry = decode_entry(line)
                last_seq = entry.seq
                yield entry.event
    # As of now: its log's time may have come since it was found, and after it was read.
    run = found.run
    if run.log_dropped and run.outcome is not None and last_seq < 0:
        for event in events_of(await _left(store, stored), run.outcome):
            yield event
        yield UsageReported(run.usage)
        yield RunEnded(run.outcome)


async def _read(store: Store, run: Run, after: int) -> LogSlice:
    found = await store.read(run.owner, run.id, after)
    if found is None:
        raise no_response(response_id(run.id))
    return found


async def _left(store: Store, stored: Stored) -> Assistant:
    """The messages outlive the log: in the session, or with the run where it has none."""
    run = stored.run
    if run.session_id is None:
        left = list(stored.body.output)
    else:
        transcript = await store.transcript(run.owner, run.session_id)
        kept = () if transcript is None else transcript.messages
        left = [message.message for message in kept if message.run_id == run.id]
    turns = outer_turns(left) if run.agent is not None else (one for one in left if isinstance(one, Assistant))
    return joined(turns)


def no_response(named: str) -> CallerError:
    return CallerError(f"There is no response '{named}'.", status=404, code="not_found", param="response_id")


def just_begun(head: Head) -> bytes:
    """The object of a response that nobody waits for: nothing has come yet."""
    return bytes(ResponsesEncoder(head).so_far())


def deleted(named: str) -> bytes:
    return msgspec.json.encode({"id": named, "object": "response", "deleted": True})
