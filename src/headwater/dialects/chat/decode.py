"""Chat completions, as upstreams stream them: frames to events.

Says what it saw; how the stream ended is the judge's to say.
"""

from typing import Any, Final

from headwater.dialects.base import STOP
from headwater.dialects.chat.calls import CallTracker
from headwater.dialects.chat.chunk import (
    COUNTED,
    Choice,
    Chunk,
    Delta,
    detail_text,
    join_details,
    lone_text,
    read_chunk,
    read_lenient,
    read_usage,
)
from headwater.dialects.details import uncounted
from headwater.dialects.lenient import Halves, load, load_body
from headwater.errors import FrameUnreadable
from headwater.events import Event, ProviderState, ReasoningDelta, TextDelta, UsageReported
from headwater.judge import Evidence, Finish, read_error
from headwater.mould import Around, split
from headwater.sse import Frame

FINISHES: Final[dict[str, Finish]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    # Other dialects' words, from servers that pass on what their model said.
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": "turn_limit",
}

_DONE: Final = b"[DONE]"


class ChatDecoder:
    __slots__ = (
        "_call_id_prefix",
        "_calls",
        "_cut",
        "_delivered",
        "_details",
        "_flows",
        "_plain_reasoning",
        "_refusal",
        "_text",
        "_thought",
        "_tier",
        "_usage",
        "evidence",
    )

    def __init__(self, call_id_prefix: str) -> None:
        self.evidence = Evidence()
        self._call_id_prefix = call_id_prefix
        self._calls: CallTracker | None = None
        self._usage: dict[str, Any] | None = None
        self._tier: str | None = None
        self._details: list[dict[str, Any]] = []
        self._plain_reasoning = False
        """Reasoning comes in a field of its own, so that the details only repeat it."""
        self._delivered = False
        self._text, self._thought, self._refusal = Halves(), Halves(), Halves()
        self._cut = False
        """One of them holds half a character."""
        self._flows = True
        """Nothing waits for what is next: a text is all that it brings."""

    def feed(self, frame: Frame, out: list[Event]) -> None:
        if frame.data == _DONE:
            self._done(out)
            return
        try:
            chunk = read_chunk(frame.data)
        except (ValueError, RecursionError):
            bare = frame.data.strip()
            if not bare:
                return
            if bare == _DONE:
                self._done(out)
                return
            chunk = read_lenient(frame.data)
            self._join_halves(chunk)
        else:
            if self._flows and frame.event is None and (text := lone_text(chunk)) is not None:
                # Nearly every frame there is.
                if chunk.service_tier:
                    self._tier = chunk.service_tier
                if text:
                    self._delivered = True
                    out.append(TextDelta(text))
                return
            if self._cut:
                self._join_halves(chunk)
        # Flat errors: tests/wire/chat/error_event.sse, error_object.sse
        if chunk.error or frame.event == "error" or (not chunk.choices and chunk.object == "error"):
            self.evidence.error = read_error(chunk.error or load(frame.data))
            return
        if chunk.usage:
            self._usage = chunk.usage
        if chunk.service_tier:
            self._tier = chunk.service_tier
        for choice in chunk.choices:
            if choice.index == 0:
                self._choice(choice, out)

    def _done(self, out: list[Event]) -> None:
        self._end_calls(out)
        self.evidence.terminated = True

    def around_text(self, data: bytes) -> Around | None:
        before, after = split(data, b"content")
        # Whatever else is in the frame: this is the place if a text that is put here is the one that is found.
        try:
            found = lone_text(read_chunk(b"%bprobe%b" % (before, after)))
        except (ValueError, RecursionError):
            return None
        return Around(before, after) if self._flows and found == "probe" else None

    def whole(self, body: bytes, out: list[Event]) -> None:
        self.feed(Frame(load_body(body)), out)
        if not (out or self.evidence.finish or self.evidence.closed):
            raise FrameUnreadable("JSON that is no chat completion", body)

    def end(self, out: list[Event]) -> None:
        if self._cut:
            self._end_halves(out)
        if self._details:
            self._end_reasoning(out)
        stop: dict[str, Any] = {"type": STOP}
        if self._tier:
            stop["service_tier"] = self._tier
        if self._usage is not None and (more := uncounted(self._usage, COUNTED)):
            stop["usage"] = more
        if len(stop) > 1:
            out.append(ProviderState("chat", stop))
        if self._usage is not None:
            out.append(UsageReported(read_usage(self._usage)))
        if self._calls is not None:
            self.evidence.contradiction = self._calls.contradiction

    def _choice(self, choice: Choice, out: list[Event]) -> None:
        before = len(out)
        delta = choice.delta
        if choice.message is not None and not self._delivered:
            # Only in the final object, or all of it again: tests/wire/chat/whole_message_again.sse
            delta = choice.message
        if delta is not None:
            if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
                self._reasoning(delta, out)
            if delta.content:
                if self._details:
                    self._end_reasoning(out)
                self._plain_reasoning = False
                out.append(TextDelta(delta.content))
            if delta.tool_calls or delta.refusal:
                self._calls_and_refusal(delta, out)
            if delta.annotations or delta.images:
                self._beside_text(delta, out)
        evidence = self.evidence
        if len(out) > before:
            self._delivered = True
            if evidence.finish is not None:
                evidence.delivered_after_finish = True
        if choice.finish_reason and choice.finish_reason != "null":
            evidence.finished(choice.finish_reason, FINISHES)
            self._end_calls(out)
        if choice.usage:
            # Moonshot's place for it: tests/wire/chat/usage_in_choice.sse
            self._usage = choice.usage
        waiting = self._cut or self._details or self._plain_reasoning
        self._flows = not waiting and evidence.finish is None

    def _reasoning(self, delta: Delta, out: list[Event]) -> None:
        # Both, with the same text: tests/wire/chat/reasoning_twice.sse
        reasoning = delta.reasoning_content or delta.reasoning
        self._plain_reasoning = self._plain_reasoning or bool(reasoning)
        if delta.reasoning_details:
            self._details += delta.reasoning_details
            # All of it again, with its seal, in a chunk of its own: tests/wire/chat/reasoning_details_last.sse
            if not self._plain_reasoning:
                reasoning = "".join(map(detail_text, delta.reasoning_details))
        if reasoning:
            out.append(ReasoningDelta(reasoning))

    def _calls_and_refusal(self, delta: Delta, out: list[Event]) -> None:
        if self._details:
            self._end_reasoning(out)
        if delta.refusal:
            out.append(TextDelta(delta.refusal, refusal=True))
        if delta.tool_calls:
            if self._calls is None:
                self._calls = CallTracker(self._call_id_prefix)
            self._calls.feed(delta.tool_calls, out)

    def _beside_text(self, delta: Delta, out: list[Event]) -> None:
        # A remark on the text, and an answer of its own: tests/wire/chat/annotations.sse, images.sse
        if delta.annotations:
            out.append(ProviderState("chat", {"type": "message", "annotations": delta.annotations}))
        if delta.images:
            out.append(ProviderState("chat", {"type": "images", "images": delta.images}))

    def _end_calls(self, out: list[Event]) -> None:
        """Unless the upstream said that it was cut short: then nobody knows which of them are whole."""
        if self._calls is not None and self.evidence.finish in (None, "stop", "tool_calls"):
            self._calls.end(out)

    def _end_reasoning(self, out: list[Event]) -> None:
        out.append(ProviderState("chat", {"reasoning_details": join_details(self._details)}, of="reasoning"))
        self._details = []
        self._plain_reasoning = False

    def _join_halves(self, chunk: Chunk) -> None:
        """Characters that were cut in two over chunks: tests/wire/chat/lenient_surrogates.sse"""
        for choice in chunk.choices:
            delta = choice.delta or choice.message
            if delta is not None and choice.index == 0:
                delta.content = self._text.join(delta.content or "")
                delta.reasoning_content = self._thought.join(delta.reasoning_content or delta.reasoning or "")
                delta.reasoning = None
                delta.refusal = self._refusal.join(delta.refusal or "")
        self._cut = bool(self._text.half or self._thought.half or self._refusal.half)

    def _end_halves(self, out: list[Event]) -> None:
        if rest := self._thought.rest():
            out.append(ReasoningDelta(rest))
        if rest := self._text.rest():
            out.append(TextDelta(rest))
        if rest := self._refusal.rest():
            out.append(TextDelta(rest, refusal=True))
