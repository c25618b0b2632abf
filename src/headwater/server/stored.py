"""Responses that are found again by their id: the object, as far as it has come."""

from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from headwater.conversation import Assistant
from headwater.dialects import responses
from headwater.dialects.base import Encoder, Head
from headwater.dialects.responses.encode import ResponsesEncoder, events_of
from headwater.dialects.responses.resource import PREFIX
from headwater.events import Event, RunEnded, UsageReported, decode_entry
from headwater.records import Run, RunBody, can_name
from headwater.server.callers import Caller
from headwater.server.encoding import Remarks, joined
from headwater.server.inner import Inner, outer_turns
from headwater.server.services import Services
from headwater.store.base import Store


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


async def find_response(services: Services, caller: Caller, response_id: str) -> Stored | None:
    """Only one that was to be kept for that, and is this caller's."""
    if not response_id.startswith(PREFIX) or not can_name(response_id):
        return None
    run_id = f"run_{response_id.removeprefix(PREFIX)}"
    run = await services.store.run(caller.owner, run_id)
    body = await services.store.body(caller.owner, run_id)
    if run is None or body is None or run.route != "responses" or not run.recorded:
        return None
    return None if body.echo.get("store") is False else Stored(run, body)


async def response_object(store: Store, stored: Stored) -> bytes:
    """What its stream adds up to by now: of all that is committed, and nothing more."""
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
    """Of all that is committed: nobody can have had more of its stream."""
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
    run, last_seq = stored.run, -1
    while (found := await store.read(run.owner, run.id, last_seq)) is not None and found.batches:
        for batch in found.batches:
            for line in batch.after(last_seq):
                entry = decode_entry(line)
                last_seq = entry.seq
                yield entry.event
    if run.log_dropped and run.outcome is not None:
        for event in events_of(await _left(store, stored), run.outcome):
            yield event
        yield UsageReported(run.usage)
        yield RunEnded(run.outcome)


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


def just_begun(head: Head) -> bytes:
    """The object of a response that nobody waits for: nothing has come yet."""
    return bytes(ResponsesEncoder(head).so_far())


def deleted(response_id: str) -> bytes:
    return msgspec.json.encode({"id": response_id, "object": "response", "deleted": True})
