"""What of a long loop still fits into the model's context: the oldest is left out, whole steps at a time.

First goes what was said before this run, an exchange at a time, then the run's own steps: a turn with the results of
its tools, so that a call and its result are never parted. What was asked always stays, and so does the last step: if
that alone is too much, the provider says so better than we could. Pure.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from headwater.conversation import Assistant, Message, Request, System, Text, User
from headwater.sessions.context import REMARK
from headwater.sessions.trim import Exchange, room, trim

# A model that does not know what it has done would do it again.
_STEPS_GONE: Final = "{} earlier steps of yours are left out here, since they no longer fit. They were taken."


class Fitted(Struct, frozen=True):
    messages: tuple[Message, ...]
    left_out: int = 0
    """Messages."""


def fitted(request: Request, so_far: Sequence[Message], window_tokens: int | None, *, asked_in: int = 1) -> Fitted:
    """`request`: what was said before the loop and with it, and its tools; `so_far`: what came of it.

    `asked_in`: how many of its exchanges say what is to be done.
    """
    if window_tokens is None:
        return Fitted((*request.messages, *so_far))
    system = [message for message in request.messages if isinstance(message, System)]
    exchanges = _exchanges(message for message in request.messages if not isinstance(message, System))
    history, asked = exchanges[:-asked_in], _joined(exchanges[-asked_in:])
    steps = _steps(so_far)
    # Without a step there is nothing that must stay beside what was asked.
    units: list[Exchange] = [*history, *(steps or [[]])]
    trimmed = trim(units, room(replace(request, messages=(*system, *asked)), window_tokens))
    if not trimmed.left_out:
        return Fitted((*request.messages, *so_far))
    first = len(units) - len(trimmed.kept)
    gone = max(0, first - len(history))
    remark = [User((Text(REMARK.format(_STEPS_GONE.format(gone))),))] if gone else []
    kept = (*system, *_joined(history[first:]), *asked, *remark, *_joined(steps[gone:]))
    return Fitted(kept, trimmed.left_out)


def _exchanges(messages: Iterable[Message]) -> list[list[Message]]:
    """Each begins with what somebody said."""
    exchanges: list[list[Message]] = []
    answered = True
    for message in messages:
        asks = isinstance(message, User)
        if (asks and answered) or not exchanges:
            exchanges.append([])
        answered = not asks
        exchanges[-1].append(message)
    return exchanges


def _steps(messages: Iterable[Message]) -> list[list[Message]]:
    steps: list[list[Message]] = []
    for message in messages:
        if isinstance(message, Assistant) or not steps:
            steps.append([])
        steps[-1].append(message)
    return steps


def _joined(units: Iterable[Exchange]) -> list[Message]:
    return [message for unit in units for message in unit]
