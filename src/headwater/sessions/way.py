"""The way through a session's tree to one message: what was said along it, and what became of the tool calls.

Pure. What the model is told, what people see and what is exported are all made from it, so they can't disagree.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from headwater.conversation import Assistant, Text, ToolCall, ToolOutput
from headwater.dialects.history import UNKNOWN
from headwater.records import SessionMessage, SessionNotice, Transcript, path_to

CallFate = Literal["asked", "done", "failed", "dropped", "unknown"]


class CallAt(Struct, frozen=True):
    """A call by its place, since ids may come again: the message, and its number among the message's calls."""

    message_id: str
    number: int


class Way(Struct, frozen=True):
    steps: tuple[SessionMessage | SessionNotice, ...]
    results: dict[CallAt, ToolOutput]
    result_ids: frozenset[str]
    """The messages that they came in."""
    dropped: frozenset[tuple[str | None, str]]
    """Runs, and the tools that a notice of theirs says were not run."""

    def calls(self, step: SessionMessage, turn: Assistant) -> Iterator[tuple[ToolCall, CallFate, ToolOutput | None]]:
        """The calls of a step that is a model's turn, in order: what became of each, and its result."""
        for number, call in enumerate(turn.tool_calls):
            result = self.results.get(CallAt(step.id, number))
            if result is not None:
                yield call, _fate(result), result
            else:
                yield call, "dropped" if (step.run_id, call.name) in self.dropped else "asked", None


def _fate(result: ToolOutput) -> CallFate:
    first = result.parts[0] if result.parts else None
    if result.is_error and isinstance(first, Text) and first.text.startswith(UNKNOWN):
        return "unknown"
    return "failed" if result.is_error else "done"


def way_to(transcript: Transcript, head_id: str | None) -> Way:
    path = path_to(transcript.messages, head_id)
    steps = tuple(_steps(path, transcript.notices))
    dropped = frozenset(
        (step.run_id, tool)
        for step in steps
        if isinstance(step, SessionNotice) and step.for_model
        for tool in step.tools
    )
    results = _results(path)
    outputs = {at: output for at, (_, output) in results.items()}
    return Way(steps, outputs, frozenset(id for id, _ in results.values()), dropped)


def _steps(
    path: Sequence[SessionMessage], notices: Sequence[SessionNotice]
) -> Iterator[SessionMessage | SessionNotice]:
    answered = {message.run_id for message in path if isinstance(message.message, Assistant)}
    behind: dict[str | None, list[SessionNotice]] = {}
    for notice in notices:
        behind.setdefault(notice.after_id, []).append(notice)
    followers: list[SessionMessage | None] = [*path[1:], None]
    for message, follower in zip(path, followers, strict=False):
        yield message
        # A run that has left nothing else is on no branch any more once another has answered.
        again = follower is not None and isinstance(follower.message, Assistant)
        yield from (notice for notice in behind.get(message.id, ()) if notice.run_id in answered or not again)


def _results(path: Iterable[SessionMessage]) -> dict[CallAt, tuple[str, ToolOutput]]:
    """As `dialects.history` matches them: a result is of the newest turn that has used its id."""
    results: dict[CallAt, tuple[str, ToolOutput]] = {}
    waiting: dict[str, list[CallAt]] = {}
    for step in path:
        if isinstance(step.message, Assistant):
            newest: dict[str, list[CallAt]] = {}
            for number, call in enumerate(step.message.tool_calls):
                newest.setdefault(call.id, []).append(CallAt(step.id, number))
            waiting |= newest
        elif isinstance(step.message, ToolOutput) and (unanswered := waiting.get(step.message.call_id)):
            results[unanswered.pop(0)] = (step.id, step.message)
    return results


def newest_under(messages: Iterable[SessionMessage], message_id: str) -> str:
    """The end of the branch that goes through this message, by the newest one at every fork."""
    newest = {message.parent_id: message.id for message in messages}
    while (child := newest.get(message_id)) is not None:
        message_id = child
    return message_id


def with_results(messages: Iterable[SessionMessage], message_id: str) -> str:
    """The last of the results that follow this message; itself if there are none."""
    return newest_under((message for message in messages if isinstance(message.message, ToolOutput)), message_id)
