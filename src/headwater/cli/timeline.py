"""A run's log as lines that a person can read: when, what, and how much. Pure."""

from typing import assert_never

from headwater.cli.words import arguments, one_line, seconds
from headwater.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptEnded,
    AttemptStarted,
    Entry,
    Event,
    Notice,
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
    UsageReported,
)

_STREAMED = (TextDelta, ReasoningDelta, ToolArgsDelta)


class Timeline:
    """Pieces of text that follow each other are one line, unless each is wanted."""

    def __init__(self, every: bool = False) -> None:
        self._every = every
        self._held: list[Entry] = []
        """Pieces of one kind."""

    def lines(self, entry: Entry) -> list[str]:
        """What can be said now; the last event of a log brings all that is left."""
        lines: list[str] = []
        if self._held and type(self._held[0].event) is not type(entry.event):
            lines += self._gathered()
        if isinstance(entry.event, _STREAMED) and not self._every:
            self._held.append(entry)
            return lines
        return [*lines, _line(entry, said(entry.event))]

    def _gathered(self) -> list[str]:
        held, self._held = self._held, []
        first, last = held[0], held[-1]
        if len(held) == 1:
            return [_line(first, said(first.event))]
        text = "".join(entry.event.text for entry in held if isinstance(entry.event, _STREAMED))
        took = seconds((last.t - first.t) / 1000)
        kind = str(first.event.__struct_config__.tag)
        what = f"{_name(kind)}{len(held)} pieces in {took}, {len(text)} characters: {one_line(text, 60)}"
        return [_line(first, what)]


def _line(entry: Entry, what: str) -> str:
    return f"{entry.t / 1000:9.3f} {entry.seq:6}  {what}".rstrip()


def _name(kind: str) -> str:
    return f"{kind:13} "


def said(event: Event) -> str:
    """Its kind, and what of it matters."""
    return _name(str(event.__struct_config__.tag)) + _about(event)


def _about(event: Event) -> str:
    match event:
        case RunStarted(run_id=run_id, model=model, at=at, session_id=session_id):
            return f"{model} at {at:%Y-%m-%d %H:%M:%S} UTC, {run_id}" + (f" in {session_id}" if session_id else "")
        case AttemptStarted(upstream=upstream, model=model, turn=turn, reason=reason, because=because):
            why = f": {one_line(because)}" if because else ""
            return f"turn {turn}, {reason}: {upstream}/{model}{why}"
        case AttemptEnded(status=status, request_id=request_id, failed=failed):
            how = f"{failed.reason}: {one_line(failed.message)}" if failed else "well"
            facts = [f"status {status}" if status else "", request_id or ""]
            return ", ".join([how, *filter(None, facts)])
        case TextDelta(text=text) | ReasoningDelta(text=text) | ToolArgsDelta(text=text):
            return repr(text)
        case ToolCallStarted(index=index, id=id, name=name):
            return f"#{index} {name}, {id}"
        case ToolCallEnded(index=index):
            return f"#{index}"
        case ToolRunStarted(call_id=call_id):
            return call_id
        case ToolProgress(call_id=call_id, text=text, done=done, total=total):
            return f"{call_id} {'' if done is None else f'{done:g} of {total or 0:g} '}{one_line(text)}"
        case ToolResult(call_id=call_id, text=text, state=state):
            return f"{call_id} {state}: {one_line(text, 60)}"
        case ProviderState(dialect=dialect, of=of):
            return f"{dialect}, of the {of}"
        case UsageReported(usage=usage):
            return f"{usage.input_tokens} in, {usage.output_tokens} out ({usage.source})"
        case Notice(code=code, text=text):
            return f"{code}: {one_line(text)}"
        case ApprovalAsked(call_id=call_id, name=name, arguments=given):
            return f"{call_id}: {name}({arguments(given)})?"
        case ApprovalGiven(call_id=call_id, decision=decision, by=by, reason=reason):
            return f"{call_id}: {decision} by {by}" + (f": {one_line(reason)}" if reason else "")
        case RunEnded(outcome=outcome):
            message = getattr(outcome, "message", "")
            word = f"{outcome.__struct_config__.tag}: {outcome.reason}"
            return f"{word}: {one_line(message)}" if message else word
        case unreachable:
            assert_never(unreachable)
