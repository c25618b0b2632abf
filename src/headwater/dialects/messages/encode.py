"""Messages, as clients read them: events to stream events.

Blocks are opened and closed strictly one after the other, whatever order the
events come in. `_ending` is the one place where this dialect writes how a
stream ended.
"""

from collections.abc import Callable
from typing import Any, Final, assert_never

import msgspec

from headwater.conversation import ToolCall
from headwater.dialects import base
from headwater.dialects.base import NOTED, Head, noted
from headwater.dialects.messages import block
from headwater.dialects.messages.answer import error_body, message_body, stop_body
from headwater.dialects.messages.held import Arguments, Held, HeldCall
from headwater.dialects.messages.stream import write_usage
from headwater.dialects.messages.write import call_block, redacted_block, text_block, thinking_block
from headwater.dialects.totals import Totals
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Notice,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    UsageReported,
)

_json = msgspec.json.encode
_DELTA_END: Final = b"}}\n\n"


def ping() -> bytes:
    """The dialect's keep-alive."""
    return b'event: ping\ndata: {"type":"ping"}\n\n'


class MessagesEncoder:
    def __init__(self, head: Head) -> None:
        self._head = head
        self._totals = Totals()
        self._notes: list[str] = []
        self._stop: dict[str, Any] = {}
        self._begun = False
        self._blocks = 0
        self._open: str | None = None
        """The type of the open block."""
        self._delta_start = b""
        """Built once a block: a token's event is this, its text, and a constant end."""
        self._call = -1
        """Which call the open block is, if it is one."""
        self._arguments = Arguments()
        self._held = Held()

    def encode(self, event: Event) -> bytes:
        if (type(event) is TextDelta and self._open == "text") or (
            type(event) is ReasoningDelta and self._open == "thinking"
        ):
            # Nearly every event there is.
            return b"%b%b%b" % (self._delta_start, _json(event.text), _DELTA_END)
        write = _WRITE.get(type(event))
        return b"" if write is None else write(self, event)

    def around_text(self) -> tuple[bytes, bytes] | None:
        return (self._delta_start + b'"', b'"' + _DELTA_END) if self._open == "text" else None

    def _usage(self, event: UsageReported) -> bytes:
        self._totals.report(event.usage)
        return b""

    def _attempt(self, event: AttemptStarted) -> bytes:
        self._totals.attempt(event)
        # Calls are counted anew from here. Text may go on.
        return self._flush() if self._open == "tool_use" else b""

    def _notice(self, event: Notice) -> bytes:
        if event.code in NOTED:
            self._notes.append(event.text)
        return b""

    def _ending(self, event: RunEnded) -> bytes:
        outcome = event.outcome
        match outcome:
            case Completed(reason=reason) | Incomplete(reason=reason):
                stop = stop_body(reason, self._stop)
                usage = write_usage(self._totals.total(), self._totals.details)
                body = {"type": "message_delta", "delta": stop, "usage": usage} | noted(self._notes)
                return b"%b%bevent: message_delta\ndata: %b\n\n%b" % (
                    self._begin(),
                    self._flush(),
                    _json(body),
                    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
                )
            case Stopped() | Failed() | Interrupted():
                return b"%bevent: error\ndata: %b\n\n" % (self._last_words(), _json(error_body(outcome)))
            case unreachable:
                assert_never(unreachable)

    # ----------------------------------------------------------- one at a time

    def _in_turn(self, event: Event) -> bytes:
        """A call that is open keeps it open for its arguments, and what is no part of it waits until it is whole."""
        if isinstance(event, ToolArgsDelta):
            return self._arguments_more(event)
        if self._open != "tool_use":
            return self._write(event)
        if isinstance(event, ToolCallEnded) and event.index == self._call:
            return self._close() + self._release()
        self._held.add(event)
        # Of a dialect that ends no single call: what is an object by now can't be gone on with.
        return self._close() + self._release() if self._arguments.are_whole() else b""

    def _arguments_more(self, event: ToolArgsDelta) -> bytes:
        if self._open == "tool_use" and event.index == self._call:
            self._arguments.add(event.text)
            return self._delta(event.text)
        if event.index in self._held:
            self._held.add(event)
        elif event.text.strip():
            # White space by the rules of JSON; but a model may break them.
            self._notes.append("Not told: more of a call's arguments, which came after they were a whole object.")
        return b""

    def _release(self) -> bytes:
        """All that waits, up to a call that is not whole."""
        written = []
        while self._open != "tool_use" and (item := self._held.take()) is not None:
            written.append(self._write_call(item) if isinstance(item, HeldCall) else self._write(item))
        return b"".join(written)

    def _write_call(self, call: HeldCall) -> bytes:
        opened = self._write(call.started)
        for text in call.arguments:
            self._arguments.add(text)
        written = opened + b"".join(map(self._delta, call.arguments))
        done = call.ended or (self._held and self._arguments.are_whole())
        return written + self._close() if done else written

    def _flush(self) -> bytes:
        written = [self._close()]
        while self._held:
            written += [self._release(), self._close()]
        return b"".join(written)

    def _last_words(self) -> bytes:
        """What waited for a call, beside it: to close the call would say that it was whole."""
        words = list(self._held.words())
        if words:
            self._open = None
            self._blocks += 1
        return b"".join(map(self._write, words))

    # ------------------------------------------------------------------ blocks

    def _write(self, event: Event) -> bytes:
        match event:
            case TextDelta(text=text):
                return self._into("text", text_block("")) + self._delta(text)
            case ReasoningDelta(text=text):
                return self._into("thinking", thinking_block("", "")) + self._delta(text)
            case ToolCallStarted(index=index, id=id, name=name, extra=extra):
                self._call = index
                self._arguments = Arguments()
                return self._into("tool_use", {**(extra or {}), **call_block(ToolCall(id, name, ""))})
            case ProviderState(dialect="messages"):
                return self._write_state(event)
            case ProviderState(of="reasoning"):
                # Another dialect's thought ends here, and so does its message: what comes next is no part of it.
                return self._close() if self._open == "thinking" else b""
            case ProviderState(dialect="responses", data={"type": "message"}):
                return self._close() if self._open == "text" else b""
            case _:
                # Another dialect's; or the end of a call that was whole already.
                return b""

    def _write_state(self, event: ProviderState) -> bytes:
        match event:
            case ProviderState(of="reasoning", data={"signature": signature}):
                opened = self._into("thinking", thinking_block("", ""))
                return opened + self._other_delta("signature_delta", "signature", signature) + self._close()
            case ProviderState(of="reasoning", data={"data": data}):
                return self._whole_block(redacted_block(data))
            case ProviderState(data={"type": base.STOP} as data):
                self._stop = data
                self._totals.tell(data.get("usage"))
                return b""
            case ProviderState(data={"type": block.CITATIONS, "citations": citations}):
                if self._open != "text":
                    return b""
                cited = [self._other_delta("citations_delta", "citation", citation) for citation in citations]
                return b"".join(cited) + self._close()
            case _:
                return self._whole_block(event.data)

    def _into(self, type: str, content: dict[str, Any]) -> bytes:
        """Opens a block of this type, unless one is open."""
        if self._open == type:
            return b""
        opened = self._begin() + self._close() + self._start(content)
        self._open = type
        kind, field = _DELTAS[type]
        head = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":'
        self._delta_start = head % (self._blocks, kind, field)
        return opened

    def _delta(self, text: str) -> bytes:
        return b"%b%b%b" % (self._delta_start, _json(text), _DELTA_END)

    def _other_delta(self, kind: str, field: str, value: Any) -> bytes:
        body = {"type": "content_block_delta", "index": self._blocks, "delta": {"type": kind, field: value}}
        return b"event: content_block_delta\ndata: %b\n\n" % _json(body)

    def _whole_block(self, content: dict[str, Any]) -> bytes:
        opened = self._begin() + self._close() + self._start(content)
        self._open = "whole"
        return opened + self._close()

    def _start(self, content: dict[str, Any]) -> bytes:
        body = {"type": "content_block_start", "index": self._blocks, "content_block": content}
        return b"event: content_block_start\ndata: %b\n\n" % _json(body)

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        self._blocks += 1
        return b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % (self._blocks - 1)

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        usage = write_usage(self._totals.total())
        message = message_body(self._head, [], {"stop_reason": None, "stop_sequence": None}, usage)
        return b"event: message_start\ndata: %b\n\n" % _json({"type": "message_start", "message": message})


# What is not here is for native followers: this dialect has no place for it.
_WRITE: Final[dict[type[Event], Callable[[MessagesEncoder, Any], bytes]]] = {
    TextDelta: MessagesEncoder._in_turn,
    ReasoningDelta: MessagesEncoder._in_turn,
    ToolCallStarted: MessagesEncoder._in_turn,
    ToolArgsDelta: MessagesEncoder._in_turn,
    ToolCallEnded: MessagesEncoder._in_turn,
    ProviderState: MessagesEncoder._in_turn,
    AttemptStarted: MessagesEncoder._attempt,
    UsageReported: MessagesEncoder._usage,
    Notice: MessagesEncoder._notice,
    RunEnded: MessagesEncoder._ending,
}

_DELTAS: Final = {
    "text": (b"text_delta", b"text"),
    "thinking": (b"thinking_delta", b"thinking"),
    "tool_use": (b"input_json_delta", b"partial_json"),
}
