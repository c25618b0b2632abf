"""What the model is told: the way through the session to the message that it is to answer.

Partials are told as they stand. Of the notices only those for the model are, in brackets and as the user's: a system
prompt in the midst of a conversation has no place with every provider. Calls that a notice says were not run are left
out, since the notice tells of them and their arguments may be torn. What else providers demand of a history (one
result for each call, whose reasoning goes back to whom) the dialects see to when they write it.

Pure: no store, no blobs fetched.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import fields, replace

from headwater.conversation import Assistant, Message, Parameters, Request, System, Text, ToolCall, User
from headwater.events import Notice
from headwater.records import Run, SessionMessage, SessionParameters, Transcript
from headwater.sessions.leavings import CONTEXT_TRIMMED, is_visible
from headwater.sessions.trim import room, trim
from headwater.sessions.way import Way, way_to

REMARK: Final = "[A note from the server, not from the user: {}]"


class Context(Struct, frozen=True):
    request: Request
    goes_on: Assistant | None = None
    """The cut message that is to be gone on with; it is the last of the conversation, and not in `request`."""
    left_out: int = 0
    """Messages, the oldest, that do not fit."""

    @property
    def notice(self) -> Notice | None:
        """For the run's log."""
        return trimmed_notice(self.left_out)


def context(transcript: Transcript, run: Run, request: Request, window_tokens: int | None = None) -> Context:
    """`request` is what came with the run, which has begun: what was said with it is in the transcript (C63)."""
    defaults = transcript.session.parameters
    request = replace(request, parameters=_parameters(request.parameters, defaults.request))
    if not _history_first(request.messages):
        return Context(request)
    system = _system(request.messages, defaults)
    exchanges = _exchanges(way_to(transcript, run.parent_id))
    goes_on = _cut_message(exchanges) if run.continues is not None else None
    if goes_on is not None:
        exchanges[-1].pop()
    left_out = 0
    if window_tokens is not None:
        beside = [*system, goes_on] if goes_on is not None else system
        trimmed = trim(exchanges, room(replace(request, messages=tuple(beside)), window_tokens))
        exchanges, left_out = [[*exchange] for exchange in trimmed.kept], trimmed.left_out
    messages = (*system, *(message for exchange in exchanges for message in exchange))
    return Context(replace(request, messages=messages), goes_on, left_out)


def trimmed_notice(left_out: int) -> Notice | None:
    if not left_out:
        return None
    what = "The oldest message does" if left_out == 1 else f"The {left_out} oldest messages do"
    return Notice(CONTEXT_TRIMMED, f"{what} not fit into this model's context any more, and it was not told of them.")


# --------------------------------------------------------- what the body says


def added(body: Sequence[Message]) -> tuple[Message, ...]:
    """What of a request's messages is new to its session (C63)."""
    said = [message for message in body if not isinstance(message, System)]
    last = max((n for n, message in enumerate(said) if isinstance(message, Assistant)), default=-1)
    return tuple(said[last + 1 :])


def reworded(body: Sequence[Message], said: Message) -> tuple[Message, ...]:
    """A request's messages, with this one in the place of all that they add to their session."""
    last = max((n for n, message in enumerate(body) if isinstance(message, Assistant)), default=-1)
    kept = (message for n, message in enumerate(body) if n <= last or isinstance(message, System))
    return (*kept, said)


def _history_first(body: Sequence[Message]) -> bool:
    """Whoever sends several messages keeps the history himself."""
    said = [message for message in body if not isinstance(message, System)]
    return len(said) <= 1 and not any(isinstance(message, Assistant) for message in said)


def _system(body: Sequence[Message], defaults: SessionParameters) -> list[Message]:
    given: list[Message] = [message for message in body if isinstance(message, System)]
    return given or ([System((Text(defaults.system),))] if defaults.system else [])


def _parameters(given: Parameters, defaults: Parameters) -> Parameters:
    """The session's, where the request leaves them open."""
    open_ = {field.name for field in fields(Parameters) if getattr(given, field.name) == field.default}
    return replace(given, **{name: getattr(defaults, name) for name in open_})


# ---------------------------------------------------------------- the history


def _exchanges(way: Way) -> list[list[Message]]:
    """Each begins with what somebody said; remarks belong to what they are about."""
    exchanges: list[list[Message]] = []
    answered = True
    for step in way.steps:
        if not isinstance(step, SessionMessage):
            if step.for_model:
                exchanges[-1].append(User((Text(REMARK.format(step.text)),)))
            continue
        asks = isinstance(step.message, User)
        if (asks and answered) or not exchanges:
            exchanges.append([])
        answered = not asks
        exchanges[-1] += _told(step, way)
    return exchanges


def _told(step: SessionMessage, way: Way) -> Iterator[Message]:
    message = step.message
    if not isinstance(message, Assistant):
        yield message
        return
    fates = iter([fate for _, fate, _ in way.calls(step, message)])
    parts = tuple(part for part in message.parts if not isinstance(part, ToolCall) or next(fates) != "dropped")
    told = replace(message, parts=parts)
    if is_visible(told):
        yield told


def _cut_message(exchanges: Sequence[Sequence[Message]]) -> Assistant | None:
    """A turn that ended in the midst of its text. One that had called tools is followed by another."""
    last = exchanges[-1][-1] if exchanges and exchanges[-1] else None
    if isinstance(last, Assistant) and last.text.strip() and not last.tool_calls:
        return last
    return None
