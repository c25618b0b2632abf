"""Folds a run's events into what they amount to: the message so far, the calls, the usage.

Pure, and the only fold there is: the live run and a replay of its log use it,
so that they can't disagree. Time per event does not grow with the run.
"""

import re
from collections.abc import Callable
from io import StringIO
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from headwater.conversation import Assistant, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolOutput, is_remark
from headwater.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptEnded,
    AttemptStarted,
    Event,
    Failed,
    Notice,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolProgress,
    ToolResult,
    ToolRunStarted,
    Usage,
    UsageReported,
)
from headwater.judge import Delivered

CallState = Literal["asked", "waiting", "running", "done", "failed", "dropped", "unknown"]


PieceKind = Literal["text", "refusal", "reasoning"]


class _Piece(Struct):
    """Text or reasoning that grows."""

    kind: PieceKind
    # Compact, and O(1) an append; a list of tokens takes ten times the memory.
    buffer: StringIO
    state: ProviderState | None = None


class Call(Struct):
    """A tool call as far as it has come."""

    id: str
    name: str
    extra: dict[str, Any] | None
    buffer: StringIO
    ended: bool = False
    state: CallState = "asked"
    result: ToolResult | None = None

    @property
    def arguments(self) -> str:
        return self.buffer.getvalue()

    @property
    def torn(self) -> bool:
        """It ends inside its arguments, or the upstream never said that it was whole."""
        return not self.ended or _unclosed(self.arguments)


class Attempt(Struct):
    started: AttemptStarted
    ended: AttemptEnded | None = None


# A string, with its closing quote if it has one; or a bracket. Possessive: no input makes it look back.
_JSON_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[{}\[\]]', re.DOTALL)


def _unclosed(arguments: str) -> bool:
    """Cut off, as against badly written: a string or a bracket is still open."""
    try:
        msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        depth = 0
        for token in _JSON_TOKEN.finditer(arguments):
            if token[0][0] == '"' and not token[1]:
                return True
            depth += (token[0] in "{[") - (token[0] in "}]")
        return depth > 0
    return False


class Accumulator(Struct, eq=False):
    """`apply` every event, in order; the rest only reads."""

    started: RunStarted | None = None
    attempts: list[Attempt] = []
    notices: list[Notice] = []
    approvals: dict[str, ApprovalAsked | ApprovalGiven] = {}
    """By the call's id: what was asked, and once there is one, the answer."""
    calls: list[Call] = []
    """All of the run, in order; those of this turn are the last `turn_calls`."""
    outcome: Outcome | None = None
    cuts: dict[int, Failed] = {}
    """Of turns that ended in their midst, and that another follows all the same: by the place in `messages`, why."""
    _by_id: dict[str, Call] = {}
    _turn: int = 0
    _origin: str | None = None
    _earlier: list[Message] = []
    _settled_usage: Usage | None = None
    _usage: Usage | None = None
    _parts: list[_Piece | Call | ProviderState] = []
    _growing: _Piece | None = None
    """The last part, while text may still be added to it."""
    _calls_before: int = 0
    """This turn."""

    def apply(self, event: Event) -> None:
        if type(event) is TextDelta and not event.refusal:
            piece = self._growing
            if piece is not None and piece.kind == "text":
                # Nearly every event there is: half the time of the way below.
                piece.buffer.write(event.text)
                return
        _APPLY[type(event)](self, event)

    def growing_text(self) -> Callable[[str], object]:
        """Where the next texts may go by themselves, after one that was applied and until anything else is."""
        assert self._growing is not None
        return self._growing.buffer.write

    # ------------------------------------------------------------- reading

    @property
    def turn(self) -> int:
        """Counts model messages, from 0."""
        return self._turn

    @property
    def turn_calls(self) -> list[Call]:
        return self.calls[self._calls_before :]

    @property
    def delivered_anything(self) -> bool:
        """Text, reasoning or a tool call of this turn is in the log."""
        return self._growing is not None or not all(map(_is_remark, self._parts))

    @property
    def usage(self) -> Usage:
        """Of all turns. A turn that reported none makes the sum unknown."""
        this = self._usage or Usage()
        return this if self._settled_usage is None else self._settled_usage + this

    def delivered(self) -> Delivered:
        """What the judge needs to know of this turn."""
        text = any(map(_is_answer, self._parts))
        if len(self.calls) == self._calls_before:
            return Delivered(text)
        calls = self.turn_calls
        return Delivered(text, tuple(call.name for call in calls), tuple(call.name for call in calls if call.torn))

    def message(self) -> Assistant:
        """This turn's message so far."""
        return Assistant(tuple(_finished(part) for part in self._parts), origin=self._origin)

    def messages(self) -> list[Message]:
        """All turns so far, with the results of their tools."""
        here = [self.message()] if self._parts else []
        return [*self._earlier, *here, *self._results()]

    def text(self) -> str:
        return "".join(message.text for message in self.messages() if type(message) is Assistant)

    def reasoning(self) -> str:
        return "".join(message.reasoning for message in self.messages() if type(message) is Assistant)

    # ------------------------------------------------------------- applying

    def _clear_turn(self) -> None:
        self._parts = []
        self._growing = None
        self._calls_before = len(self.calls)

    def _results(self) -> list[ToolOutput]:
        return [_output(call.result) for call in self.turn_calls if call.result is not None]

    def _grow(self, kind: PieceKind, text: str) -> None:
        piece = self._growing
        if piece is None or piece.kind != kind:
            piece = self._growing = _Piece(kind, StringIO())
            self._parts.append(piece)
        piece.buffer.write(text)

    def _on_started(self, event: RunStarted) -> None:
        self.started = event

    def _on_attempt(self, event: AttemptStarted) -> None:
        before = self.attempts[-1].ended if self.attempts else None
        self.attempts.append(Attempt(event))
        if event.turn > self._turn:
            if self._parts and before is not None and before.failed is not None:
                self.cuts[len(self._earlier)] = before.failed
            self._earlier = self.messages()
            self._turn = event.turn
            self._settle_usage()
            self._clear_turn()
        elif event.stands == "everything" and self._parts:
            # What was cut off was paid for, too.
            self._settle_usage()
        else:
            self._usage = None
            if self._parts:
                del self.calls[self._calls_before :]
                self._clear_turn()
        self._origin = event.upstream

    def _on_attempt_end(self, event: AttemptEnded) -> None:
        self.attempts[-1].ended = event

    def _settle_usage(self) -> None:
        self._settled_usage = self.usage
        self._usage = None

    def _on_text(self, event: TextDelta) -> None:
        self._grow("refusal" if event.refusal else "text", event.text)

    def _on_reasoning(self, event: ReasoningDelta) -> None:
        self._grow("reasoning", event.text)

    def _on_call(self, event: ToolCallStarted) -> None:
        call = Call(event.id, event.name, event.extra, StringIO())
        self.calls.append(call)
        self._by_id[call.id] = call
        self._parts.append(call)
        self._growing = None

    def _on_args(self, event: ToolArgsDelta) -> None:
        self.calls[self._calls_before + event.index].buffer.write(event.text)

    def _on_call_end(self, event: ToolCallEnded) -> None:
        call = self.calls[self._calls_before + event.index]
        call.ended = True
        if event.extra:
            call.extra = {**(call.extra or {}), **event.extra}

    def _on_provider_state(self, event: ProviderState) -> None:
        piece, self._growing = self._growing, None
        if event.of == "message":
            self._parts.append(event)
        elif piece is not None and piece.kind == "reasoning":
            piece.state = event
        else:
            # Reasoning of which nothing was shown but its seal.
            self._parts.append(_Piece("reasoning", StringIO(), event))

    def _on_usage(self, event: UsageReported) -> None:
        self._usage = event.usage

    def _on_notice(self, event: Notice) -> None:
        self.notices.append(event)
        if event.code == "tool_call_dropped":
            for call in self.turn_calls:
                # One that was started may have run, whatever happened then.
                if call.state in ("asked", "waiting"):
                    call.state = "dropped"

    def _on_tool_run(self, event: ToolRunStarted) -> None:
        self._by_id[event.call_id].state = "running"

    def _on_tool_progress(self, event: ToolProgress) -> None:
        """Of the moment: it leaves nothing."""

    def _on_tool_result(self, event: ToolResult) -> None:
        call = self._by_id[event.call_id]
        call.state = event.state
        call.result = event

    def _on_approval(self, event: ApprovalAsked) -> None:
        self._by_id[event.call_id].state = "waiting"
        self.approvals[event.call_id] = event

    def _on_approved(self, event: ApprovalGiven) -> None:
        self._by_id[event.call_id].state = "asked"
        self.approvals[event.call_id] = event

    def _on_ended(self, event: RunEnded) -> None:
        self.outcome = event.outcome
        for call in self.calls:
            if call.state == "running":
                # It was started, and nothing says how it went.
                call.state = "unknown"


_APPLY: Final[dict[type[Event], Callable[[Accumulator, Any], None]]] = {
    RunStarted: Accumulator._on_started,
    AttemptStarted: Accumulator._on_attempt,
    AttemptEnded: Accumulator._on_attempt_end,
    TextDelta: Accumulator._on_text,
    ReasoningDelta: Accumulator._on_reasoning,
    ToolCallStarted: Accumulator._on_call,
    ToolArgsDelta: Accumulator._on_args,
    ToolCallEnded: Accumulator._on_call_end,
    ToolRunStarted: Accumulator._on_tool_run,
    ToolProgress: Accumulator._on_tool_progress,
    ToolResult: Accumulator._on_tool_result,
    ProviderState: Accumulator._on_provider_state,
    UsageReported: Accumulator._on_usage,
    Notice: Accumulator._on_notice,
    ApprovalAsked: Accumulator._on_approval,
    ApprovalGiven: Accumulator._on_approved,
    RunEnded: Accumulator._on_ended,
}


def _is_answer(part: _Piece | Call | ProviderState) -> bool:
    """Something to see: text, or an item of a tool that the provider runs itself."""
    if type(part) is _Piece:
        return part.kind != "reasoning" and bool(part.buffer.getvalue().strip())
    return type(part) is ProviderState and not is_remark(part.data)


def _is_remark(part: _Piece | Call | ProviderState) -> bool:
    return type(part) is ProviderState and is_remark(part.data)


def _finished(part: _Piece | Call | ProviderState) -> Text | Reasoning | ToolCall | Opaque:
    if type(part) is Call:
        return ToolCall(part.id, part.name, part.arguments, part.extra)
    if type(part) is ProviderState:
        return Opaque(part.dialect, part.data)
    assert type(part) is _Piece
    text = part.buffer.getvalue()
    if part.kind != "reasoning":
        return Text(text, part.kind == "refusal")
    if part.state is None:
        return Reasoning(text)
    return Reasoning(text, part.state.dialect, part.state.data)


def _output(result: ToolResult) -> ToolOutput:
    images = tuple(Image(url) for url in result.images)
    return ToolOutput(result.call_id, (Text(result.text), *images), is_error=result.state != "done")
