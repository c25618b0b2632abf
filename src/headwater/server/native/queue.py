"""What waits in a session for its turn: looked at, put in order, changed, taken out, let go on."""

from typing import Final

from headwater.records import QueueEntry, Transcript
from headwater.server.native.asking import check_request, messages_of, refused
from headwater.server.native.endpoint import Call, Endpoint, Nothing, Reply, endpoint
from headwater.server.native.shapes import MessageIn, QueueEdit, QueueItem, QueuePatch, QueueQuery, QueueShape
from headwater.server.native.snapshot import summary
from headwater.server.refusals import not_found
from headwater.sessions.view import parts_of, text_of
from headwater.store.results import Missing


async def get(call: Call, query: Nothing) -> Reply:
    return Reply(_shape(await _transcript(call)))


async def change(call: Call, body: QueuePatch) -> Reply:
    """All that is asked for, in this order: an edit, the order, going on. What can be refused, is before that."""
    store, session_id = call.services.store, call.part("session_id")
    waiting = {entry.run.id: entry for entry in (await _transcript(call)).queue}
    if not waiting.keys() >= {*body.order, *([body.edit.run_id] if body.edit is not None else [])}:
        raise not_found("run")
    if body.edit is not None:
        _check(await _edit(call, waiting[body.edit.run_id], body.edit))
    if body.order:
        _check(await store.reorder_queue(call.owner, session_id, body.order))
    if body.resume:
        _check(await call.services.runs.resume_queue(call.owner, session_id))
    return Reply(_shape(await _transcript(call)))


async def _edit(call: Call, entry: QueueEntry, edit: QueueEdit) -> QueueEntry | Missing:
    [said] = await messages_of(call, (MessageIn(content=edit.content, parts=edit.parts),))
    sessions, run = call.services.sessions, entry.run
    request = await sessions.reworded(entry, said)
    if isinstance(request, Missing):
        return request
    await check_request(call, run, request)
    return await call.services.store.edit_queued(call.owner, run.id, sessions.said(run, request).messages, request)


def _check(result: object) -> None:
    """One may have begun meanwhile. Raises `Refusal`."""
    if isinstance(result, Missing):
        raise refused(result)


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
    endpoint(
        "PATCH", _PATH, change, QueuePatch, QueueShape, "Change one, put them in order, let them go on", also=(409,)
    ),
    endpoint("DELETE", _PATH, clear, QueueQuery, None, "Take one out, or all", status=204),
)
