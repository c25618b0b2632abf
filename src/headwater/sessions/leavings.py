"""What a run leaves behind: the messages, word for word as they are in its log, and the notices that follow them.

Pure, and the same for a run that ends by itself, is stopped, or is found after a crash: all that counts is the log's
fold and the outcome. It decides no ending, and puts nothing into the tree: that is the store's.
"""

from collections.abc import Callable, Iterator
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Message, Opaque, Reasoning, Text, ToolCall, ToolOutput, is_remark
from headwater.dialects.base import CONTINUED
from headwater.dialects.history import UNKNOWN_OUTCOME
from headwater.events import Completed, Failed, Incomplete, Interrupted, Notice, Outcome, Stopped
from headwater.records import Run, SessionMessage, SessionNotice
from headwater.sessions.images import blobs_in
from headwater.turn import dropped_calls

CONTEXT_TRIMMED: Final = "context_trimmed"

_STOPPED: Final = {
    "user": "Stopped by you.",
    "disconnect": "Stopped: the connection that it was for was closed.",
    "replaced": "Stopped: another message came in its place.",
}
_INTERRUPTED: Final = {
    "crash": "Interrupted: the server went down.",
    "shutdown": "Interrupted: the server was shut down.",
    "store": "Interrupted: what came could not be stored.",
}
_INCOMPLETE: Final = {
    "length": "The limit of tokens was used up before there was an answer.",
    "content_filter": "The provider's filter let nothing of the answer through.",
    "turn_limit": "All turns were used up before there was an answer.",
}


class Left(Struct, frozen=True):
    messages: tuple[SessionMessage, ...]
    notices: tuple[SessionNotice, ...]
    output: tuple[Message, ...]
    """The messages alone, for a run that belongs to no session."""


def left(run: Run, fold: Accumulator, outcome: Outcome, *, now: float, make_id: Callable[[str], str]) -> Left:
    """`make_id` takes a prefix. The fold may have seen the `RunEnded` or not."""
    kept = _output(fold, outcome)
    output = tuple(message for message, _ in kept)
    last = max((n for n, message in enumerate(output) if isinstance(message, Assistant)), default=-1)
    messages = [
        SessionMessage(
            id=make_id("msg"),
            message=message,
            created_at=now,
            run_id=run.id,
            model=run.model,
            answered_by=answered_by(fold) if isinstance(message, Assistant) else None,
            status="complete" if cut is None else "partial",
            outcome=cut,
            blobs=blobs_in([message]),
        )
        for message, cut in kept
    ]
    if last >= 0:
        status = "partial" if isinstance(outcome, Stopped | Failed | Interrupted) else messages[last].status
        # Of the whole run: it is counted once, however many messages there are.
        messages[last] = replace(messages[last], status=status, usage=fold.usage, outcome=outcome)
    if messages and run.continues is not None:
        messages[0] = replace(messages[0], continues=run.parent_id)
    notices = [
        SessionNotice(
            id=make_id("not"),
            code=notice.code,
            text=notice.text,
            created_at=now,
            run_id=run.id,
            tools=notice.tools,
            for_model=notice.for_model,
        )
        for notice in _notices(fold, outcome, answered=bool(output))
    ]
    return Left(tuple(messages), tuple(notices), output)


def answered_by(fold: Accumulator) -> str | None:
    """Whoever was asked last: `upstream/model`."""
    return f"{fold.attempts[-1].started.upstream}/{fold.attempts[-1].started.model}" if fold.attempts else None


# ----------------------------------------------------------------- messages


def _output(fold: Accumulator, outcome: Outcome) -> list[tuple[Message, Failed | None]]:
    """Each with why it was cut, if another goes on from it."""
    said = [*fold.messages(), *_unknown(fold)]
    kept = [
        (message, cut)
        for message, cut in ((message, fold.cuts.get(n)) for n, message in enumerate(said))
        if not isinstance(message, Assistant) or is_visible(message) or (isinstance(outcome, Completed) and cut is None)
    ]
    # An upstream may be allowed to have nothing to say: that, too, is an answer.
    return kept or ([(fold.message(), None)] if isinstance(outcome, Completed) else [])


def is_visible(message: Assistant) -> bool:
    """There is something besides reasoning and remarks. White space is: somebody may have seen a line break."""
    return any(map(_is_seen, message.parts))


def _is_seen(part: Text | Reasoning | ToolCall | Opaque) -> bool:
    match part:
        case Text(text=text):
            return bool(text)
        case Reasoning():
            return False
        case ToolCall():
            return True
        case Opaque(data=item):
            return not is_remark(item)
        case unreachable:
            assert_never(unreachable)


def _unknown(fold: Accumulator) -> Iterator[ToolOutput]:
    """For calls that were started and of which no result came: only the log tells them from those that never ran."""
    for call in fold.turn_calls:
        if call.state in ("running", "unknown") and call.result is None:
            yield ToolOutput(call.id, (Text(UNKNOWN_OUTCOME),), is_error=True)


# ------------------------------------------------------------------ notices


def _notices(fold: Accumulator, outcome: Outcome, *, answered: bool) -> Iterator[Notice]:
    for code in (CONTEXT_TRIMMED, CONTINUED):
        # The last of them counts what the ones before it do.
        yield from [notice for notice in fold.notices if notice.code == code][-1:]
    yield from _dropped(fold, outcome)
    match outcome:
        case Completed():
            return
        case Incomplete(reason=reason):
            # The message says it itself, if there is one.
            if not answered:
                yield Notice("incomplete", _INCOMPLETE[reason])
        case Stopped(reason=reason):
            yield Notice("stopped", _STOPPED[reason])
        case Failed(message=message):
            yield Notice("failed", message)
        case Interrupted(reason=reason):
            yield Notice("interrupted", _INTERRUPTED[reason])
        case unreachable:
            assert_never(unreachable)


def _dropped(fold: Accumulator, outcome: Outcome) -> Iterator[Notice]:
    """As the log has it, or as it would have come to be there: a crash leaves no time for a last word."""
    gone = {call.name for call in fold.calls if call.state == "dropped"}
    # Not those of an attempt of which nothing stands.
    yield from (n for n in fold.notices if n.code == "tool_call_dropped" and gone.intersection(n.tools))
    yield from (event for event in dropped_calls(outcome, fold) if isinstance(event, Notice))
