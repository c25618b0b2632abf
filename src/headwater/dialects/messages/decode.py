"""Messages, as upstreams stream them: frames to events.

Says what it saw; how the stream ended is the judge's to say.
"""

from collections.abc import Callable
from typing import Any, Final

from headwater.dialects.base import STOP
from headwater.dialects.lenient import load, load_body, load_object, mended_all, object_or_none, objects, string
from headwater.dialects.messages.block import (
    Block,
    CallBlock,
    OpaqueBlock,
    RedactedBlock,
    TextBlock,
    ThinkingBlock,
)
from headwater.dialects.messages.stream import (
    Delta,
    StreamEvent,
    read_event,
    read_lenient,
    read_stream_error,
    read_usage,
    usage_details,
)
from headwater.errors import FrameUnreadable
from headwater.events import Event, ProviderState, Usage, UsageReported
from headwater.judge import Evidence, Finish
from headwater.mould import Around, split
from headwater.sse import Frame

FINISHES: Final[dict[str, Finish]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": "turn_limit",
    # Another dialect's words, from servers that pass on what their model said.
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
}


# By its type, the kind of block that one would be taken for a part of.
_ALIKE: Final = {"text": "text", "thinking": "thinking", "redacted_thinking": "thinking"}


class MessagesDecoder:
    def __init__(self, call_id_prefix: str) -> None:
        self.evidence = Evidence()
        self._prefix = call_id_prefix
        self._ids: dict[str, int] = {}
        self._open: dict[int, Block] = {}
        """The blocks that have not ended, by the upstream's index."""
        self._last: Block | None = None
        self._usage: dict[str, Any] = {}
        self._reported: Usage | None = None

    def feed(self, frame: Frame, out: list[Event]) -> None:
        if frame.data == b"[DONE]":
            # Another dialect's habit, which proves nothing here: tests/wire/messages/done_too.sse
            return
        try:
            event = read_event(frame.data)
        except (ValueError, RecursionError):
            event = read_lenient(frame.data)
        # The type may be in the frame's name alone: tests/wire/messages/type_in_name.sse
        kind = event.type or frame.event or ""
        if kind == "error" or frame.event == "error" or event.error:
            self.evidence.error = read_stream_error(event.error or mended_all(load(frame.data)))
            return
        if (handle := _HANDLERS.get(kind)) is not None:
            handle(self, event, frame.data, out)

    def whole(self, body: bytes, out: list[Event]) -> None:
        message = mended_all(load_object(load_body(body)))
        if message.get("type") == "error" or message.get("error"):
            self.evidence.error = read_stream_error(message)
            return
        if not isinstance(message.get("content"), list):
            raise FrameUnreadable("JSON that is no message", body)
        for block in objects(message["content"]):
            if (begun := self._begin(block, out)) is not None:
                begun.end(out)
        self._note_usage(message.get("usage"))
        self._finished(
            Delta(
                stop_reason=string(message.get("stop_reason")),
                stop_sequence=string(message.get("stop_sequence")),
                stop_details=object_or_none(message.get("stop_details")),
            ),
            out,
        )

    def end(self, out: list[Event]) -> None:
        for block in self._open.values():
            self._never_ended(block)
        self._report(out)

    def around_text(self, data: bytes) -> Around | None:
        before, after = split(data, b"text")
        try:
            event = read_event(b"%bprobe%b" % (before, after))
        except (ValueError, RecursionError):
            return None
        block = self._open.get(event.index)
        is_text = event.type == "content_block_delta" and event.delta is not None and event.delta.text == "probe"
        return Around(before, after) if is_text and type(block) is TextBlock and block.flows else None

    # -------------------------------------------------------------- the message

    def _on_message_start(self, event: StreamEvent, data: bytes, out: list[Event]) -> None:
        # Its output tokens are a placeholder; what was read is known from here on, also to a client that reads along.
        usage = object_or_none((event.message or {}).get("usage")) or {}
        self._note_usage({name: tokens for name, tokens in usage.items() if name != "output_tokens"})
        self._report(out)

    def _on_message_delta(self, event: StreamEvent, data: bytes, out: list[Event]) -> None:
        self._note_usage(event.usage)
        if event.delta is not None:
            self._finished(event.delta, out)

    def _on_message_stop(self, event: StreamEvent, data: bytes, out: list[Event]) -> None:
        self.evidence.terminated = True

    def _finished(self, delta: Delta, out: list[Event]) -> None:
        if delta.stop_reason:
            self.evidence.finished(delta.stop_reason, FINISHES)
        known = {
            "stop_sequence": delta.stop_sequence,
            "stop_details": delta.stop_details,
            "usage": usage_details(self._usage) if delta.stop_reason else None,
        }
        if told := {name: value for name, value in known.items() if value}:
            # For clients of this dialect: no other has a place for it.
            out.append(ProviderState("messages", {"type": STOP, **told}))

    def _note_usage(self, usage: Any) -> None:
        # Cumulative, and only what changed: tests/wire/messages/usage_cached.sse
        if isinstance(usage, dict):
            self._usage.update({name: value for name, value in usage.items() if value is not None})

    def _report(self, out: list[Event]) -> None:
        usage = read_usage(self._usage)
        if usage not in (self._reported, Usage()):
            self._reported = usage
            out.append(UsageReported(usage))

    # --------------------------------------------------------------- its blocks

    def _on_block_start(self, event: StreamEvent, data: bytes, out: list[Event]) -> None:
        if event.index in self._open:
            # tests/wire/messages/block_torn_by_next.sse
            self._never_ended(self._open.pop(event.index))
        before = len(out)
        if (block := self._begin(event.content_block or {}, out)) is not None:
            self._open[event.index] = block
        self._delivered(before, out)

    def _on_block_delta(self, event: StreamEvent, data: bytes, out: list[Event]) -> None:
        delta = event.delta
        if delta is None:
            return
        before = len(out)
        block = self._open.get(event.index)
        if block is not None:
            block.grow(delta, data, out)
        elif delta.partial_json:
            self._contradict("it sent arguments of a tool call that it had not begun")
        else:
            # Text is text, also in a block that nobody announced: tests/wire/messages/block_unannounced.sse
            implied: Block = ThinkingBlock({}, out) if delta.thinking else TextBlock({}, out)
            implied.grow(delta, data, out)
            implied.end(out)
        if self.evidence.finish is not None:
            self._delivered(before, out)

    def _on_block_stop(self, event: StreamEvent, data: bytes, out: list[Event]) -> None:
        if (block := self._open.pop(event.index, None)) is not None:
            before = len(out)
            block.end(out)
            self._delivered(before, out)

    def _begin(self, block: dict[str, Any], out: list[Event]) -> Block | None:
        kind = string(block.get("type"))
        last = self._last
        if last is not None and last.seam is not None and _ALIKE.get(kind) == last.name:
            out.append(last.seam)
        self._last = self._new(kind, block, out)
        return self._last

    def _new(self, kind: str, block: dict[str, Any], out: list[Event]) -> Block | None:
        match kind:
            case "text":
                return TextBlock(block, out)
            case "thinking":
                return ThinkingBlock(block, out)
            case "redacted_thinking":
                return RedactedBlock(block)
            case "tool_use" if block.get("name"):
                id = string(block.get("id"))
                index = len(self._ids)
                own = f"{self._prefix}_{index}" if not id or id in self._ids else id
                self._ids[own] = index
                return CallBlock(block, index, own, out)
            case "tool_use":
                self._contradict("it sent a tool call without a name")
                return None
            case _:
                return OpaqueBlock(block)

    def _delivered(self, before: int, out: list[Event]) -> None:
        if self.evidence.finish is not None and len(out) > before:
            self.evidence.delivered_after_finish = True

    def _never_ended(self, block: Block) -> None:
        self._contradict(f"it never ended a block of type '{block.name}'")

    def _contradict(self, what: str) -> None:
        self.evidence.contradiction = self.evidence.contradiction or what


_HANDLERS: Final[dict[str, Callable[[MessagesDecoder, StreamEvent, bytes, list[Event]], None]]] = {
    "message_start": MessagesDecoder._on_message_start,
    "content_block_start": MessagesDecoder._on_block_start,
    "content_block_delta": MessagesDecoder._on_block_delta,
    "content_block_stop": MessagesDecoder._on_block_stop,
    "message_delta": MessagesDecoder._on_message_delta,
    "message_stop": MessagesDecoder._on_message_stop,
}
