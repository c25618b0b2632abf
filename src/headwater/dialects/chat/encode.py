"""Chat completions, as clients read them: events to chunks, and the whole object.

`_ending` is the one place where this dialect writes how a stream ended.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final, assert_never

import msgspec

from headwater.conversation import Assistant, Opaque, Reasoning, ToolCall
from headwater.dialects import base, endings
from headwater.dialects.base import NOTED, Head, Whole, noted, stops
from headwater.dialects.chat.said import Joints, Said
from headwater.dialects.details import added
from headwater.dialects.totals import Totals
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    Failed,
    FailureStyle,
    Incomplete,
    Interrupted,
    Notice,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
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
_DELTA_END: Final = b'},"finish_reason":null}]}\n\n'

_DETAILS: Final = "reasoning_details"
_BESIDE_TEXT: Final = ("annotations", "images")

# A turn limit has no word of its own here; the nearest truth is that the answer was cut.
_FINISH_REASON: Final = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "turn_limit": "length",
}


def answer_id(head: Head) -> str:
    return "chatcmpl-" + head.run_id.removeprefix("run_")


class ChatEncoder:
    __slots__ = (
        "_calls",
        "_calls_before",
        "_delta_start",
        "_entries",
        "_include_usage",
        "_joints",
        "_notes",
        "_role",
        "_start",
        "_style",
        "_text_goes_on",
        "_text_start",
        "_tier",
        "_totals",
    )

    def __init__(self, head: Head, *, include_usage: bool, style: FailureStyle) -> None:
        self._include_usage = include_usage
        self._style = style
        self._totals = Totals()
        self._entries: dict[str, int] = {}
        """How many have been told, of each list that a delta may have."""
        self._calls = 0
        self._calls_before = 0
        """A client counts the calls of all turns."""
        self._notes: list[str] = []
        start = {"id": answer_id(head), "object": "chat.completion.chunk", "created": head.created, "model": head.model}
        # Built once: a token's chunk is this, its text, and a constant end.
        self._start = b"data: %b," % _json(start)[:-1]
        self._delta_start = self._start + b'"choices":[{"index":0,"delta":{'
        self._text_start = self._delta_start + b'"content":'
        self._role = b'"role":"assistant",'
        """On the first delta only: no chunk has the role alone (C60)."""
        self._joints = Joints()
        self._tier: str | None = None
        self._text_goes_on = False

    def encode(self, event: Event) -> bytes:
        if self._text_goes_on and type(event) is TextDelta and not event.refusal:
            # Nearly every event there is: half the time of the way below.
            return self._text_start + _json(event.text) + _DELTA_END
        write = _WRITE.get(type(event))
        return b"" if write is None else write(self, event)

    def around_text(self) -> tuple[bytes, bytes] | None:
        return (self._text_start + b'"', b'"' + _DELTA_END) if self._text_goes_on else None

    def _text(self, event: TextDelta) -> bytes:
        if event.refusal:
            return self._delta(b'"refusal":', event.text)
        self._text_goes_on = True
        return self._delta(b'"content":', self._joints.before_text() + event.text)

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        return self._delta(b'"reasoning_content":', self._joints.before_thought() + event.text)

    def _call_started(self, event: ToolCallStarted) -> bytes:
        self._calls += 1
        return self._call_delta(event.index, {**(event.extra or {}), **_call(event.id, event.name, "")})

    def _call_arguments(self, event: ToolArgsDelta) -> bytes:
        return self._call_delta(event.index, {"function": {"arguments": event.text}})

    def _call_ended(self, event: ToolCallEnded) -> bytes:
        if event.extra is None:
            return b""
        # The SDK's accumulator insists on a function in every delta of a call but the first.
        return self._call_delta(event.index, {**event.extra, "function": {"arguments": ""}})

    def _attempt(self, event: AttemptStarted) -> bytes:
        if self._totals.attempt(event):
            self._calls_before = self._calls
            self._joints.end_turn()
            self._text_goes_on = False
        return b""

    def _usage(self, event: UsageReported) -> bytes:
        self._totals.report(event.usage)
        return b""

    def _notice(self, event: Notice) -> bytes:
        if event.code in NOTED:
            self._notes.append(event.text)
        return b""

    def _state(self, event: ProviderState) -> bytes:
        data = event.data
        if event.dialect == "chat":
            if data.get("type") == base.STOP:
                self._tier = data.get("service_tier") or self._tier
                self._totals.tell(data.get("usage"))
                return b""
            told = [name for name in (_DETAILS, *_BESIDE_TEXT) if name in data]
            return b"".join([self._delta(b"%b:" % _json(name), self._numbered(name, data[name])) for name in told])
        # Another dialect's: no client of this one could read it.
        if event.dialect == "responses" and data.get("type") == "message":
            self._joints.end_text()
            self._text_goes_on = False
        elif event.of == "reasoning":
            self._joints.end_thought(event.dialect)
        return b""

    def _numbered(self, name: str, entries: list[Any]) -> list[Any]:
        """The first ones as they are; later ones on from there.

        The SDK's accumulator would add an entry to the one that has its index, and fails where it has none.
        """
        before = self._entries.get(name, 0)
        self._entries[name] = before + len(entries)
        return [{**entry, "index": before + n} for n, entry in enumerate(entries)] if before else entries

    def _call_delta(self, index: int, call: dict[str, Any]) -> bytes:
        return self._delta(b'"tool_calls":', [{**call, "index": self._calls_before + index}])

    def _delta(self, field: bytes, value: Any) -> bytes:
        role, self._role = self._role, b""
        return b"%b%b%b%b%b" % (self._delta_start, role, field, _json(value), _DELTA_END)

    def _ending(self, event: RunEnded) -> bytes:
        outcome = event.outcome
        match outcome:
            case Completed(reason=reason) | Incomplete(reason=reason):
                ours: dict[str, Any] = noted(self._notes)["headwater"] if self._notes else {}
                if self._style == "finish_reason" and isinstance(outcome, Incomplete) and reason != "content_filter":
                    ours |= {"outcome": outcome, "code": "output_truncated"}
                note = b',"service_tier":' + _json(self._tier) if self._tier else b""
                note += b',"headwater":' + _json(ours) if ours else b""
                usage = self._usage_chunk() if self._include_usage else b""
                return self._finish(_FINISH_REASON[reason], note) + usage + _DONE
            case Stopped() | Failed() | Interrupted():
                error = b'"error":' + _json(endings.error_object(outcome))
                if self._style == "error":
                    # Alone, and nothing after it: the one ending on which every common client raises.
                    return b"data: {%b}\n\n" % error
                note = b',%b,"headwater":%b' % (error, _json({"outcome": outcome, "code": endings.code(outcome)}))
                return self._finish("error", note) + _DONE
            case unreachable:
                assert_never(unreachable)

    def _finish(self, reason: str, note: bytes) -> bytes:
        return b'%b"choices":[{"index":0,"delta":{},"finish_reason":"%b"}]%b}\n\n' % (
            self._start,
            reason.encode(),
            note,
        )

    def _usage_chunk(self) -> bytes:
        usage = write_usage(self._totals.total(), self._totals.details)
        return b'%b"choices":[],"usage":%b}\n\n' % (self._start, _json(usage))


# What is not here is for native followers: this dialect has no place for it.
_WRITE: Final[dict[type[Event], Callable[[ChatEncoder, Any], bytes]]] = {
    TextDelta: ChatEncoder._text,
    ReasoningDelta: ChatEncoder._reasoning,
    ToolCallStarted: ChatEncoder._call_started,
    ToolArgsDelta: ChatEncoder._call_arguments,
    ToolCallEnded: ChatEncoder._call_ended,
    AttemptStarted: ChatEncoder._attempt,
    UsageReported: ChatEncoder._usage,
    Notice: ChatEncoder._notice,
    ProviderState: ChatEncoder._state,
    RunEnded: ChatEncoder._ending,
}


def whole(head: Head, message: Assistant, usage: Usage, outcome: Outcome, notes: Sequence[str] = ()) -> Whole:
    status = endings.status(outcome)
    match outcome:
        case Completed(reason=reason) | Incomplete(reason=reason):
            choice = {
                "index": 0,
                "message": _message(message),
                "finish_reason": _FINISH_REASON[reason],
                "logprobs": None,
            }
            told: dict[str, Any] = reduce(added, stops(message, "chat"), {})
            stop = {"service_tier": told["service_tier"]} if "service_tier" in told else {}
            body = {
                "id": answer_id(head),
                "object": "chat.completion",
                "created": head.created,
                "model": head.model,
                "choices": [choice],
                **stop,
                "usage": write_usage(usage, told.get("usage")),
            }
            return Whole(status, _json(body | noted(notes)))
        case Stopped() | Failed() | Interrupted():
            kept = {"outcome": outcome, "partial": _message(message), "usage": write_usage(usage), "notes": notes}
            return Whole(status, _json({"error": endings.error_object(outcome), "headwater": kept}))
        case unreachable:
            assert_never(unreachable)


def _message(message: Assistant) -> dict[str, Any]:
    said = Said(message)
    written: dict[str, Any] = {"role": "assistant", "content": said.text or None, "refusal": said.refusal or None}
    written |= remarks(message)
    if said.reasoning:
        written["reasoning_content"] = said.reasoning
    if details := reasoning_details(message):
        written[_DETAILS] = details
    if message.tool_calls:
        written["tool_calls"] = [write_call(call) for call in message.tool_calls]
    return written


def write_call(call: ToolCall) -> dict[str, Any]:
    return {**(call.extra or {}), **_call(call.id, call.name, call.arguments)}


def _call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def reasoning_details(message: Assistant) -> list[Any]:
    """What this dialect's providers want to have back, in order."""
    states = [part.state for part in message.parts if type(part) is Reasoning and part.dialect == "chat" and part.state]
    return [detail for state in states for detail in state.get(_DETAILS, ())]


def remarks(message: Assistant) -> dict[str, Any]:
    """What this dialect's upstream put beside the text: lists, each in a field of its own."""
    told = [part.data for part in message.parts if isinstance(part, Opaque) and part.dialect == "chat"]
    found = {name: [one for data in told for one in data.get(name, ())] for name in _BESIDE_TEXT}
    return {name: values for name, values in found.items() if values}


def write_usage(usage: Usage, details: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """Only what is known: a count that is missing here is missing, not 0. `details`: what only this dialect has."""
    if usage.source == "unknown":
        return None
    more = details or {}
    counts: dict[str, Any] = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    if usage.input_tokens is not None and usage.output_tokens is not None:
        counts["total_tokens"] = usage.input_tokens + usage.output_tokens
    cached = {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens}
    read = cached | more.get("prompt_tokens_details", {})
    written = {"reasoning_tokens": usage.reasoning_tokens, **more.get("completion_tokens_details", {})}
    counts |= more | {"prompt_tokens_details": _known(read), "completion_tokens_details": _known(written)}
    return _known(counts)


def _known(counts: dict[str, Any]) -> dict[str, Any] | None:
    return {name: count for name, count in counts.items() if count is not None} or None
