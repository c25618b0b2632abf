"""A run as the API shows it: never more than is committed, and what was said and `last_seq` from one fold.

So it is the committed log that is folded, not what the run's worker has in its memory. Where there is no log any more,
what the run left is shown.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import cast

from msgspec.structs import replace

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Message, ToolOutput
from headwater.lifecycle import status
from headwater.records import Run
from headwater.runs.folded import Folded, folded
from headwater.runs.live import LiveRun
from headwater.server.native.shapes import AttemptShape, CallShape, RunShape, RunSummary, Status
from headwater.server.services import Services
from headwater.sessions.view import text_of


async def snapshot(services: Services, owner: str | None, run_id: str) -> RunShape | None:
    """None: there is no such run, or it is another's."""
    live = unrecorded(services, owner, run_id)
    if live is not None:
        return live_shape(live)
    found = await folded(services.store, owner, run_id)
    if found is None:
        return None
    run, amount = found
    return await _left_shape(services, run) if run.log_dropped else _folded_shape(run, amount)


def unrecorded(services: Services, owner: str | None, run_id: str) -> LiveRun | None:
    """A run that is in no store yet: its row is written when it has ended."""
    live = services.runs.live(run_id)
    if live is None or live.run.recorded or owner not in (None, live.run.owner):
        return None
    return live


def summary(run: Run) -> RunSummary:
    return RunSummary(
        id=run.id,
        session_id=run.session_id,
        model=run.model,
        status=cast(Status, status(run.state, run.outcome)),
        outcome=run.outcome,
        on_disconnect=run.on_disconnect,
        recorded=run.recorded,
        continues=run.continues,
        answered_by=run.answered_by,
        usage=run.usage,
        created_at=time(run.created_at),
        started_at=_time(run.started_at),
        first_token_at=_time(run.first_token_at),
        ended_at=_time(run.ended_at),
    )


def _shape(run: Run, fold: Accumulator, last_seq: int, last_event_at: datetime | None) -> RunShape:
    short = summary(run)
    return RunShape(
        **{name: getattr(short, name) for name in short.__struct_fields__},
        last_seq=last_seq,
        text=fold.text(),
        reasoning=fold.reasoning(),
        tool_calls=_calls(fold),
        attempts=_attempts(fold),
        last_token_at=None,
        last_event_at=last_event_at,
    )


def _folded_shape(run: Run, amount: Folded) -> RunShape:
    from_ = run.started_at if run.started_at is not None else run.created_at
    at = None if amount.t_ms is None else time(from_ + amount.t_ms / 1000)
    first = None if amount.first_token_ms is None else time(from_ + amount.first_token_ms / 1000)
    last = None if amount.last_token_ms is None else time(from_ + amount.last_token_ms / 1000)
    shape = _shape(run, amount.fold, amount.last_seq, at)
    if run.outcome is None:
        return replace(shape, usage=amount.fold.usage, first_token_at=first, last_token_at=last)
    # The log's clock is rounded, the record's is not: the last is never before the first.
    if last is not None and at is not None and shape.first_token_at is not None:
        last, at = max(last, shape.first_token_at), max(at, shape.first_token_at)
    return replace(shape, last_token_at=last, last_event_at=at)


def live_shape(live: LiveRun) -> RunShape:
    return _shape(live.run, live.fold, live.log.last_seq, None)


async def _left_shape(services: Services, run: Run) -> RunShape:
    """Without its log: of what it has left in its session, or with itself."""
    messages: Sequence[Message]
    if run.session_id is None:
        body = await services.store.body(run.owner, run.id)
        messages = () if body is None else body.output
    else:
        transcript = await services.store.transcript(run.owner, run.session_id)
        kept = () if transcript is None else transcript.messages
        messages = [message.message for message in kept if message.run_id == run.id]
    shape = _shape(run, Accumulator(), run.last_seq, _time(run.ended_at))
    answers = [message for message in messages if isinstance(message, Assistant)]
    return replace(
        shape,
        text="".join(answer.text for answer in answers),
        reasoning="".join(answer.reasoning for answer in answers),
        tool_calls=tuple(_left_calls(messages)),
    )


def _left_calls(messages: Sequence[Message]) -> Iterable[CallShape]:
    results = {message.call_id: message for message in messages if isinstance(message, ToolOutput)}
    for message in messages:
        for call in message.tool_calls if isinstance(message, Assistant) else ():
            result = results.get(call.id)
            yield CallShape(
                id=call.id,
                name=call.name,
                arguments=call.arguments,
                state="asked" if result is None else "failed" if result.is_error else "done",
                result=None if result is None else text_of(result),
            )


def _calls(fold: Accumulator) -> tuple[CallShape, ...]:
    return tuple(
        CallShape(
            id=call.id,
            name=call.name,
            arguments=call.arguments,
            state=call.state,
            result=None if call.result is None else call.result.text,
        )
        for call in fold.calls
    )


def _attempts(fold: Accumulator) -> tuple[AttemptShape, ...]:
    return tuple(
        AttemptShape(
            upstream=attempt.started.upstream,
            model=attempt.started.model,
            reason=attempt.started.reason,
            status=None if attempt.ended is None else attempt.ended.status,
        )
        for attempt in fold.attempts
    )


def time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _time(at: float | None) -> datetime | None:
    return None if at is None else time(at)
