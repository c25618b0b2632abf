"""What waits in a session for its turn: looked at, put in order, changed, taken out, let go on."""

from typing import Final

from headwater.conversation import Request
from headwater.records import QueueEntry, Transcript
from headwater.server.native.asking import messages_of, refused
from headwater.server.native.endpoint import Call, Endpoint, Nothing, Reply, endpoint
from headwater.server.native.shapes import MessageIn, QueueEdit, QueueItem, QueuePatch, QueueQuery, QueueShape
from headwater.server.native.snapshot import summary
from headwater.server.refusals import not_found
from headwater.sessions.view import parts_of, text_of
from headwater.store.results import Missing


async def get(call: Call, query: Nothing) -> Reply:
    return Reply(_shape(await _transcript(call)))


async def change(call: Call, body: QueuePatch) -> Reply:
    """All that is asked for, in this order: an edit, the order, going on."""
    store, session_id = call.services.store, call.part("session_id")
    transcript = await _transcript(call)
    result: object = None
    if body.edit is not None:
        result = await _edit(call, transcript, body.edit)
    if body.order and not isinstance(result, Missing):
        result = await store.reorder_queue(call.owner, session_id, body.order)
    if body.resume and not isinstance(result, Missing):
        result = await call.services.runs.resume_queue(call.owner, session_id)
    if isinstance(result, Missing):
        raise refused(result)
    return Reply(_shape(await _transcript(call)))


async def _edit(call: Call, transcript: Transcript, edit: QueueEdit) -> QueueEntry | Missing:
    run = next((entry.run for entry in transcript.queue if entry.run.id == edit.run_id), None)
    if run is None:
        return Missing("run")
    said = await messages_of(call, (MessageIn(content=edit.content, parts=edit.parts),))
    return await call.services.store.edit_queued(
        call.owner, run.id, call.services.sessions.said(run, Request(said)).messages
    )


async def clear(call: Call, query: QueueQuery) -> Reply:
    transcript = await _transcript(call)
    waiting = [entry.run.id for entry in transcript.queue if query.run_id in (None, entry.run.id)]
    if query.run_id is not None and not waiting:
        raise not_found("run")
    for run_id in waiting:
        await call.services.runs.stop(call.owner, run_id)
    return Reply(status=204)


async def _transcript(call: Call) -> Transcript:
    transcript = await call.services.store.transcript(call.owner, call.part("session_id"))
    if transcript is None:
        raise not_found("session")
    return transcript


def _shape(transcript: Transcript) -> QueueShape:
    return QueueShape(paused=transcript.session.queue_paused, items=tuple(map(_item, transcript.queue)))


def _item(entry: QueueEntry) -> QueueItem:
    said = [message.message for message in entry.messages]
    return QueueItem(
        run=summary(entry.run),
        content="\n\n".join(map(text_of, said)),
        parts=tuple(part for message in said for part in parts_of(message)),
    )


_PATH: Final = "/api/sessions/{session_id}/queue"

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    endpoint("GET", _PATH, get, Nothing, QueueShape, "What waits for its turn"),
    endpoint("PATCH", _PATH, change, QueuePatch, QueueShape, "Change one, put them in order, let them go on"),
    endpoint("DELETE", _PATH, clear, QueueQuery, None, "Take one out, or all", status=204),
)
