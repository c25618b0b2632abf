"""What of an agent's run is not its client's: the calls that the agent made and answered itself.

To a client of a dialect a tool call is something that it has to run. So calls are held back until it is known whose
they are: those that the run ends with are the client's. Followers of the native API see all of it as it happens.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from headwater.conversation import Assistant, Message, ToolCall, ToolOutput
from headwater.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptStarted,
    Completed,
    Event,
    RunEnded,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolProgress,
    ToolResult,
    ToolRunStarted,
)
from headwater.server.direct import Headers
from headwater.server.streams import Answer

_CALL = (ToolCallStarted, ToolArgsDelta, ToolCallEnded)
_OWN = (ToolRunStarted, ToolResult, ApprovalAsked, ApprovalGiven, ToolProgress)


class Inner:
    """`outer` every event, in order."""

    def __init__(self) -> None:
        self._calls: dict[int, list[ToolCallStarted | ToolArgsDelta | ToolCallEnded]] = {}
        """Of this turn, by their index; those that are not known to be the agent's own."""

    def outer(self, event: Event) -> Iterator[Event]:
        """What the client is to hear now."""
        if isinstance(event, _CALL):
            self._calls.setdefault(event.index, []).append(event)
        elif isinstance(event, _OWN):
            self._forget(event.call_id)
        else:
            if isinstance(event, AttemptStarted):
                self._calls.clear()
            elif isinstance(event, RunEnded) and event.outcome == Completed("tool_calls"):
                for index, parts in enumerate(self._calls.values()):
                    yield from (replace(part, index=index) for part in parts)
            yield event

    def _forget(self, call_id: str) -> None:
        for index, parts in self._calls.items():
            if isinstance(parts[0], ToolCallStarted) and parts[0].id == call_id:
                del self._calls[index]
                break


class OfAgent:
    """An `Answer` to a client of an agent."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._inner = Inner()

    @property
    def beat(self) -> bytes:
        return self._answer.beat

    @property
    def headers(self) -> Headers:
        return self._answer.headers

    def begin(self) -> int:
        return self._answer.begin()

    def around_text(self) -> None:
        return None

    def encode(self, events: Sequence[Event]) -> bytes:
        outer = [one for event in events for one in self._inner.outer(event)]
        return self._answer.encode(outer) if outer else b""


def outer_turns(messages: Iterable[Message]) -> Iterator[Assistant]:
    """The same of what an agent's run has left: its turns, without the calls that it has answered."""
    left = list(messages)
    answered = {message.call_id for message in left if isinstance(message, ToolOutput)}
    for message in left:
        if isinstance(message, Assistant):
            parts = (part for part in message.parts if not isinstance(part, ToolCall) or part.id not in answered)
            yield replace(message, parts=tuple(parts))
