"""Makes a conversation's tool calls legal: each is answered exactly once, right after the turn that made it.

Every provider insists on it; a stop, a crash or a client that trims its history breaks it. Pure, and of no dialect:
what else a dialect demands of its history is its own to see to.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from headwater.conversation import Assistant, Message, Text, ToolCall, ToolOutput, User

UNKNOWN: Final = "The outcome of this tool call is unknown"
"""What is said of a call of which nobody knows how it went begins so."""
UNKNOWN_OUTCOME: Final = f"{UNKNOWN}: no result of it was recorded. It may have run."
FAILED_ORPHAN: Final = "This tool call, which is no longer part of the conversation, failed:"
ORPHAN: Final = "The result of a tool call that is no longer part of the conversation:"
NOTHING_SAID: Final = "(The conversation begins here.)"
"""The user's turn, where a provider demands one and there is none."""

_ODD: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
_KEPT_ID_CHARS: Final = 32


class _Call(Struct):
    id: str
    answer: ToolOutput | None = None


def settled(messages: Sequence[Message], fits: Callable[[Assistant, str], bool]) -> Sequence[Message]:
    """`fits` tells whether the provider takes such a call id; ids are unique afterwards, in any case.

    A call without a result gets one that says so; a result without a call, or a second one, becomes the user's text.
    """
    turns, orphans = _matched(messages, fits)
    if not turns and not orphans:
        return messages
    out: list[Message] = []
    for place, message in enumerate(messages):
        match message:
            case Assistant() if place in turns:
                ids = iter(turns[place])
                parts = tuple(
                    replace(part, id=next(ids).id) if isinstance(part, ToolCall) else part for part in message.parts
                )
                out += [replace(message, parts=parts), *map(_answer, turns[place])]
            case ToolOutput():
                out += _as_text(message) if place in orphans else ()
            case _:
                out.append(message)
    return out


def _matched(
    messages: Sequence[Message], fits: Callable[[Assistant, str], bool]
) -> tuple[dict[int, list[_Call]], set[int]]:
    """By its place, each turn's calls with their results; and the places of the results that are left over."""
    turns: dict[int, list[_Call]] = {}
    orphans: set[int] = set()
    waiting: dict[str, list[_Call]] = {}
    """By the id that they came with: the newest turn's, where several have used it."""
    taken: dict[str, int] = {}
    for place, message in enumerate(messages):
        if type(message) is Assistant and message.tool_calls:
            newest: dict[str, list[_Call]] = {}
            for call in message.tool_calls:
                settled_call = _Call(_free(call.id if fits(message, call.id) else _plain(call.id), taken))
                newest.setdefault(call.id, []).append(settled_call)
                turns.setdefault(place, []).append(settled_call)
            waiting |= newest
        elif type(message) is ToolOutput:
            if unanswered := waiting.get(message.call_id):
                unanswered.pop(0).answer = message
            else:
                orphans.add(place)
    return turns, orphans


def _plain(id: str) -> str:
    return _ODD.sub("_", id)[:_KEPT_ID_CHARS] or "call"


def _free(id: str, taken: dict[str, int]) -> str:
    """`taken`: each id with the last number that was put behind it, so that no number is tried twice."""
    free, number = id, taken.get(id, 1)
    while free in taken:
        number += 1
        free = f"{id[:_KEPT_ID_CHARS]}_{number}"
    taken[id] = number
    taken.setdefault(free, 1)
    return free


def _answer(call: _Call) -> ToolOutput:
    if call.answer is None:
        return ToolOutput(call.id, (Text(UNKNOWN_OUTCOME),), is_error=True)
    return replace(call.answer, call_id=call.id)


def _as_text(orphan: ToolOutput) -> Iterator[User]:
    if orphan.parts:
        yield User((Text(FAILED_ORPHAN if orphan.is_error else ORPHAN), *orphan.parts))


def plain_name(name: str, declared: Sequence[str], max_chars: int = 64) -> str:
    """A called tool's name as every provider takes it; one that the request declares is the request's to answer for."""
    if name in declared or (_NAME.fullmatch(name) and len(name) <= max_chars):
        return name
    return _ODD.sub("_", name)[:max_chars] or "unnamed"
