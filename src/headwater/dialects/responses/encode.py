"""Responses, as clients read them: events to the frames of a stream, and the whole object.

`_verdict` is the one place where this dialect says how an answer ended.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, assert_never

import msgspec
from msgspec import Struct

from headwater.conversation import Assistant, Opaque, Reasoning, Text, ToolCall
from headwater.dialects import endings
from headwater.dialects.base import NOT_CARRIED, NOTED, STOP, Head, Whole
from headwater.dialects.responses.output import Output
from headwater.dialects.responses.resource import Resource, suffix, write_usage
from headwater.dialects.totals import Totals
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Notice,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    UsageReported,
)

_json = msgspec.json.encode
_DONE: Final = b"data: [DONE]\n\n"
_REASON: Final = {"length": "max_output_tokens", "content_filter": "content_filter", "turn_limit": "max_turns"}


class ResponsesEncoder:
    """Replays of the same events give the same bytes, numbers and ids included."""

    def __init__(self, head: Head) -> None:
        self._resource = Resource(head)
        self._output = Output(suffix(head))
        self._background = bool(head.echo.get("background"))
        self._begun = False
        self._totals = Totals()
        self._notes: list[str] = []
        self._tier: str | None = None
        """That the upstream served it in, if it said so."""

    def around_text(self) -> None:
        """Each is numbered, and repeated in the end."""
        return

    def encode(self, event: Event) -> bytes:
        if type(event) is TextDelta and self._begun and not event.refusal:
            # Nearly every event there is.
            return self._output.grow("text", event.text)
        write = _WRITE.get(type(event))
        return b"" if write is None else write(self, event)

    def _started(self, event: RunStarted) -> bytes:
        # A client that does not wait needs the id before anything else. All others get nothing before the
        # first token, since the status can still tell them of a refusal.
        return self._begin() if self._background else b""

    def _text(self, event: TextDelta) -> bytes:
        return self._begin() + self._output.grow("refusal" if event.refusal else "text", event.text)

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        return self._begin() + self._output.grow("summary", event.text)

    def _call_started(self, event: ToolCallStarted) -> bytes:
        return self._begin() + self._output.start_call(event.index, event.id, event.name, event.extra)

    def _call_arguments(self, event: ToolArgsDelta) -> bytes:
        return self._output.grow_call(event.index, event.text)

    def _call_ended(self, event: ToolCallEnded) -> bytes:
        return self._output.end_call(event.index, event.extra)

    def _reported(self, event: UsageReported) -> bytes:
        self._totals.report(event.usage)
        return b""

    def _notice(self, event: Notice) -> bytes:
        if event.code in NOTED:
            self._notes.append(event.text)
        return b""

    def resource(self, outcome: Outcome) -> msgspec.Raw:
        """The response object, once `RunEnded` has been encoded."""
        verdict = _verdict(outcome)
        return self._resource.write(
            verdict.status,
            self._output.items,
            self._usage(),
            error=verdict.error,
            reason=verdict.reason,
            notes=self._notes,
            tier=self._tier,
        )

    @property
    def frames(self) -> int:
        """How many there are by now that have a number."""
        return self._output.frames

    def so_far(self) -> msgspec.Raw:
        """The response object while it goes on, with what has come by now. The last thing to be asked of this one."""
        self._output.close("incomplete")
        return self._resource.write("in_progress", self._output.items, self._usage(), notes=self._notes)

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        response = self._resource.write("in_progress", [], None)
        return self._output.frame("response.created", response=response) + self._output.frame(
            "response.in_progress", response=response
        )

    def _state(self, event: ProviderState) -> bytes:
        ours = event.dialect == "responses"
        if event.of == "reasoning":
            sealed = event.data.get("encrypted_content") if ours else None
            return (self._begin() if sealed else b"") + self._output.seal(sealed)
        if not ours:
            return b""
        if event.data.get("type") == STOP:
            self._tier = event.data.get("service_tier") or self._tier
            self._totals.tell(event.data.get("usage"))
            return b""
        if event.data.get("type") == "message":
            return self._output.note(event.data)
        return self._begin() + self._output.whole(event.data)

    def _attempt(self, event: AttemptStarted) -> bytes:
        """A new turn begins with new items; one that goes on after a cut grows those that it has."""
        if self._totals.attempt(event):
            return self._output.close("completed")
        # What was sent can't be taken back.
        return self._output.close("incomplete") if event.stands == "nothing" else b""

    def _usage(self) -> dict[str, Any] | None:
        return write_usage(self._totals.total(), self._totals.details)

    def _ending(self, event: RunEnded) -> bytes:
        outcome = event.outcome
        verdict = _verdict(outcome)
        closing = self._begin() + self._output.close("completed" if verdict.status == "completed" else "incomplete")
        if verdict.error is None:
            return closing + self._output.frame(verdict.event, response=self.resource(outcome))
        # Flat and nested, then the failed response: either alone is silence to some client.
        flat = {name: value for name, value in verdict.error.items() if name != "type"}
        return (
            closing
            + self._output.frame("error", **flat, error=verdict.error)
            + self._output.frame(verdict.event, response=self.resource(outcome))
            + _DONE
        )


# What is not here is for native followers: this dialect has no place for it.
_WRITE: Final[dict[type[Event], Callable[[ResponsesEncoder, Any], bytes]]] = {
    RunStarted: ResponsesEncoder._started,
    TextDelta: ResponsesEncoder._text,
    ReasoningDelta: ResponsesEncoder._reasoning,
    ToolCallStarted: ResponsesEncoder._call_started,
    ToolArgsDelta: ResponsesEncoder._call_arguments,
    ToolCallEnded: ResponsesEncoder._call_ended,
    ProviderState: ResponsesEncoder._state,
    AttemptStarted: ResponsesEncoder._attempt,
    UsageReported: ResponsesEncoder._reported,
    Notice: ResponsesEncoder._notice,
    RunEnded: ResponsesEncoder._ending,
}


class _Verdict(Struct, frozen=True):
    event: str
    status: str
    reason: str | None = None
    error: dict[str, Any] | None = None


def _verdict(outcome: Outcome) -> _Verdict:
    match outcome:
        case Completed():
            return _Verdict("response.completed", "completed")
        case Incomplete(reason=reason):
            return _Verdict("response.incomplete", "incomplete", _REASON[reason])
        case Stopped():
            # There is no event for it that all clients take; a reason that is null reads as success to some.
            return _Verdict("response.incomplete", "cancelled", "cancelled")
        case Failed() | Interrupted():
            return _Verdict("response.failed", "failed", error=endings.error_object(outcome))
        case unreachable:
            assert_never(unreachable)


def whole(head: Head, message: Assistant, usage: Usage, outcome: Outcome, notes: Sequence[str] = ()) -> Whole:
    """What the stream of the same answer would have added up to."""
    encoder = ResponsesEncoder(head)
    noticed = [Notice(NOT_CARRIED, note) for note in notes]
    for event in [*events_of(message, outcome), *noticed, UsageReported(usage), RunEnded(outcome)]:
        encoder.encode(event)
    status = endings.status(outcome)
    response = encoder.resource(outcome)
    match outcome:
        case Completed() | Incomplete():
            return Whole(status, bytes(response))
        case Stopped() | Failed() | Interrupted():
            kept = {"outcome": outcome, "partial": response, "usage": write_usage(usage)}
            return Whole(status, _json({"error": endings.error_object(outcome), "headwater": kept}))
        case unreachable:
            assert_never(unreachable)


def events_of(message: Assistant, outcome: Outcome) -> Iterator[Event]:
    """A message as the events that it came from, or might have."""
    calls = 0
    for part in message.parts:
        match part:
            case Text(text=text, refusal=refusal):
                yield TextDelta(text, refusal)
            case Reasoning(text=text, dialect=dialect, state=state):
                if text:
                    yield ReasoningDelta(text)
                if dialect is not None:
                    yield ProviderState(dialect, state or {}, of="reasoning")
            case ToolCall(id=id, name=name, arguments=arguments, extra=extra):
                yield ToolCallStarted(calls, id, name, extra)
                yield ToolArgsDelta(calls, arguments)
                if isinstance(outcome, Completed):
                    # Else none is to be run, and whole ones can't be told from torn ones here.
                    yield ToolCallEnded(calls)
                calls += 1
            case Opaque(dialect=dialect, data=data):
                yield ProviderState(dialect, data)
            case unreachable:
                assert_never(unreachable)
