"""Chat completions, as upstreams stream them: frames to events.

Says what it saw; how the stream ended is the judge's to say.
"""

from typing import Any, Final

from headwater.dialects.chat.calls import CallTracker
from headwater.dialects.chat.chunk import (
    Choice,
    Chunk,
    Delta,
    detail_text,
    join_details,
    read_chunk,
    read_lenient,
    read_usage,
)
from headwater.dialects.lenient import Halves, load, load_body
from headwater.errors import FrameUnreadable
from headwater.events import Event, ProviderState, ReasoningDelta, TextDelta, UsageReported
from headwater.judge import Evidence, Finish, read_error
from headwater.sse import Frame

FINISHES: Final[dict[str, Finish]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    # Other dialects' words, from servers that pass on what their model said.
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "pause_turn": "turn_limit",
}


class ChatDecoder:
    def __init__(self, call_id_prefix: str) -> None:
        self.evidence = Evidence()
        self._calls = CallTracker(call_id_prefix)
        self._usage: dict[str, Any] | None = None
        self._details: list[dict[str, Any]] = []
        self._plain_reasoning = False
        """Reasoning comes in a field of its own, so that the details only repeat it."""
        self._halves = Halves()
        """A character cut in two over chunks: tests/wire/chat/lenient_surrogates.sse"""

    def feed(self, frame: Frame, out: list[Event]) -> None:
        if frame.data == b"[DONE]":
            if self.evidence.finish is None:
                self._calls.end(out)
            self.evidence.terminated = True
            return
        try:
            chunk = read_chunk(frame.data)
        except (ValueError, RecursionError):
            chunk = read_lenient(frame.data)
            self._join_halves(chunk)
        else:
            if self._halves.half:
                self._join_halves(chunk)
        # Flat errors: tests/wire/chat/error_event.sse, error_object.sse
        if chunk.error or frame.event == "error" or (not chunk.choices and chunk.object == "error"):
            self.evidence.error = read_error(chunk.error or load(frame.data))
            return
        if chunk.usage is not None:
            self._usage = chunk.usage
        for choice in chunk.choices:
            if choice.index == 0:
                self._choice(choice, out)

    def whole(self, body: bytes, out: list[Event]) -> None:
        self.feed(Frame(load_body(body)), out)
        if not (out or self.evidence.finish or self.evidence.closed):
            raise FrameUnreadable("JSON that is no chat completion", body)

    def end(self, out: list[Event]) -> None:
        if rest := self._halves.rest():
            out.append(TextDelta(rest))
        if self._details:
            self._end_reasoning(out)
        if self._usage is not None:
            out.append(UsageReported(read_usage(self._usage)))

    def _choice(self, choice: Choice, out: list[Event]) -> None:
        before = len(out)
        delta = choice.delta or choice.message
        if delta is not None:
            if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
                self._reasoning(delta, out)
            if delta.content:
                if self._details:
                    self._end_reasoning(out)
                out.append(TextDelta(delta.content))
            if delta.tool_calls or delta.refusal:
                self._calls_and_refusal(delta, out)
        evidence = self.evidence
        if evidence.finish is not None and len(out) > before:
            evidence.delivered_after_finish = True
        if choice.finish_reason:
            evidence.finished(choice.finish_reason, FINISHES)
            if evidence.finish in ("stop", "tool_calls"):
                self._calls.end(out)
        if choice.usage is not None:
            # Moonshot's place for it: tests/wire/chat/usage_in_choice.sse
            self._usage = choice.usage

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
        for call in delta.tool_calls or ():
            self._calls.feed(call, out)

    def _end_reasoning(self, out: list[Event]) -> None:
        out.append(ProviderState("chat", {"reasoning_details": join_details(self._details)}, of="reasoning"))
        self._details = []

    def _join_halves(self, chunk: Chunk) -> None:
        for delta in (choice.delta for choice in chunk.choices if choice.delta):
            delta.content = self._halves.join(delta.content or "")
