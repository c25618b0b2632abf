"""Responses, as upstreams stream them: frames to events.

Says what it saw; how the stream ended is the judge's to say.
"""

from collections.abc import Callable
from typing import Any, Final

from headwater.dialects.base import STOP
from headwater.dialects.details import uncounted
from headwater.dialects.lenient import Halves, load, load_body, mended, mended_all, object_or_none, objects, string
from headwater.dialects.responses.frame import COUNTED, StreamEvent, read_event, read_lenient, read_usage
from headwater.dialects.responses.received import Field, Received
from headwater.errors import FrameUnreadable
from headwater.events import Event, ProviderState, UsageReported
from headwater.judge import Evidence, Finish, read_error
from headwater.mould import Around, split
from headwater.sse import Frame

# Why a response is incomplete.
INCOMPLETE: Final[dict[str, Finish]] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "max_turns": "turn_limit",
    # Other dialects' words, from servers that pass on what their model said.
    "length": "length",
    "max_tokens": "length",
}
_TEXT: Final = "response.output_text.delta"
_PART_FIELD: Final[dict[str, Field]] = {"output_text": "text", "refusal": "refusal", "reasoning_text": "content"}


_Place = tuple[str, int | str, int, int]


class ResponsesDecoder:
    def __init__(self, call_id_prefix: str) -> None:
        self.evidence = Evidence()
        self._received = Received(call_id_prefix)
        self._usage: dict[str, Any] | None = None
        self._halves: dict[_Place, tuple[Halves, StreamEvent]] = {}
        """First halves of characters that were cut in two, with the deltas that brought them:
        tests/wire/responses/lenient_surrogates.sse, lenient_surrogates_apart.sse"""

    def feed(self, frame: Frame, out: list[Event]) -> None:
        if frame.data == b"[DONE]":
            self.evidence.terminated = True
            return
        lenient = False
        try:
            event = read_event(frame.data)
        except (ValueError, RecursionError):
            event = read_lenient(frame.data)
            lenient = True
        # The type only in the frame's name: tests/wire/responses/types_in_event_names.sse
        type = event.type = event.type or frame.event or ""
        if lenient or self._halves:
            self._join_halves(event)
        if type == _TEXT:
            self._received.say_text(event, out)
        elif handler := _HANDLERS.get(type):
            handler(self, event, out)
        elif event.object == "response":
            # The final object, bare: tests/wire/responses/final_bare.sse
            self._end_with("", mended_all(load(frame.data)), out)
        elif event.error or type == "error":
            # Flat, nested, or both: tests/wire/responses/error_flat.sse, error_nested.sse, error_hybrid.sse
            self.evidence.error = read_error(event.error or mended_all(load(frame.data)) | {"type": None})

    def whole(self, body: bytes, out: list[Event]) -> None:
        self.feed(Frame(load_body(body)), out)
        if not self.evidence.closed:
            raise FrameUnreadable("JSON that is no response", body)

    def end(self, out: list[Event]) -> None:
        for halves, event in [*self._halves.values()]:
            event.delta = halves.rest()
            _HANDLERS[event.type](self, event, out)
        if self._usage is not None:
            out.append(UsageReported(read_usage(self._usage)))

    def _join_halves(self, event: StreamEvent) -> None:
        """Of one part only: what belongs to another may come in between."""
        if event.type in _DELTAS:
            place = (event.type, event.key, event.content_index, event.summary_index)
            halves, _ = self._halves.pop(place, (Halves(), event))
            event.delta = halves.join(event.delta)
            if halves.half:
                self._halves[place] = (halves, event)
        elif event.type in _HANDLERS:
            # Whole again, in what comes now.
            ends_all = bool((event.response or {}).get("output"))
            self._halves = {
                place: pending
                for place, pending in self._halves.items()
                if not ends_all and pending[1].key != event.key
            }

    def around_text(self, data: bytes) -> Around | None:
        before, after = split(data, b"delta")
        try:
            event = read_event(b"%bprobe%b" % (before, after))
        except (ValueError, RecursionError):
            return None
        said = self._received.growing(event)
        flows = said is not None and not self._halves and event.type == _TEXT and event.delta == "probe"
        return Around(before, after, said.write) if said is not None and flows else None

    # -------------------------------------------------------------- handlers

    def _text(self, event: StreamEvent, out: list[Event]) -> None:
        self._received.say_text(event, out)

    def _refusal(self, event: StreamEvent, out: list[Event]) -> None:
        self._received.say(event, "refusal", event.content_index, out)

    def _summary(self, event: StreamEvent, out: list[Event]) -> None:
        self._received.say(event, "summary", event.summary_index, out)

    def _thought(self, event: StreamEvent, out: list[Event]) -> None:
        self._received.say(event, "content", event.content_index, out)

    def _arguments(self, event: StreamEvent, out: list[Event]) -> None:
        self._received.arguments(event, out)

    def _text_done(self, event: StreamEvent, out: list[Event]) -> None:
        self._received.whole_part(event, "text", event.content_index, event.text, out)

    def _refusal_done(self, event: StreamEvent, out: list[Event]) -> None:
        self._received.whole_part(event, "refusal", event.content_index, event.refusal, out)

    def _summary_done(self, event: StreamEvent, out: list[Event]) -> None:
        self._received.whole_part(event, "summary", event.summary_index, event.text, out)

    def _thought_done(self, event: StreamEvent, out: list[Event]) -> None:
        self._received.whole_part(event, "content", event.content_index, event.text, out)

    def _part_done(self, event: StreamEvent, out: list[Event]) -> None:
        part = event.part or {}
        field = _PART_FIELD.get(string(part.get("type")))
        if field is not None:
            text = part.get("refusal" if field == "refusal" else "text")
            self._received.whole_part(event, field, event.content_index, string(text), out)

    def _arguments_done(self, event: StreamEvent, out: list[Event]) -> None:
        self._received.whole_arguments(event, out)

    def _item_added(self, event: StreamEvent, out: list[Event]) -> None:
        if event.item is not None:
            self._received.added(event, event.item, out)

    def _item_done(self, event: StreamEvent, out: list[Event]) -> None:
        if event.item is not None:
            self._received.item_done(event, event.item, out)

    def _ended(self, event: StreamEvent, out: list[Event]) -> None:
        self._end_with(event.type.removeprefix("response."), event.response or {}, out)

    def _end_with(self, word: str, response: dict[str, Any], out: list[Event]) -> None:
        """The final object. Whatever in it speaks against success outweighs what speaks for it."""
        self._usage = object_or_none(response.get("usage"))
        self._received.all_done(objects(response.get("output")), out)
        tier = mended(string(response.get("service_tier")))
        known = {"service_tier": tier, "usage": uncounted(self._usage or {}, COUNTED)}
        if told := {name: value for name, value in known.items() if value}:
            out.append(ProviderState("responses", {"type": STOP, **told}))
        evidence = self.evidence
        words = [word for word in (word, string(response.get("status"))) if word]
        reason = string((object_or_none(response.get("incomplete_details")) or {}).get("reason"))
        other = next((word for word in words if word not in ("completed", "incomplete")), "")
        if response.get("error") or "failed" in words:
            evidence.error = read_error(response.get("error") or "")
        elif reason or other:
            evidence.finished(reason or other, INCOMPLETE)
        elif "incomplete" in words or self._received.cut_item:
            evidence.finished("incomplete", INCOMPLETE)
        elif words:
            self._received.end_calls(out)
            evidence.finished("completed", {"completed": "tool_calls" if self._received.calls else "stop"})
        evidence.terminated = True


_HANDLERS: Final[dict[str, Callable[[ResponsesDecoder, StreamEvent, list[Event]], None]]] = {
    _TEXT: ResponsesDecoder._text,
    "response.output_text.done": ResponsesDecoder._text_done,
    "response.refusal.delta": ResponsesDecoder._refusal,
    "response.refusal.done": ResponsesDecoder._refusal_done,
    "response.reasoning_summary_text.delta": ResponsesDecoder._summary,
    "response.reasoning_summary_text.done": ResponsesDecoder._summary_done,
    "response.reasoning_text.delta": ResponsesDecoder._thought,
    "response.reasoning_text.done": ResponsesDecoder._thought_done,
    # The names that Open Responses has for the two above.
    "response.reasoning.delta": ResponsesDecoder._thought,
    "response.reasoning.done": ResponsesDecoder._thought_done,
    "response.function_call_arguments.delta": ResponsesDecoder._arguments,
    "response.function_call_arguments.done": ResponsesDecoder._arguments_done,
    "response.content_part.done": ResponsesDecoder._part_done,
    "response.output_item.added": ResponsesDecoder._item_added,
    "response.output_item.done": ResponsesDecoder._item_done,
    "response.completed": ResponsesDecoder._ended,
    "response.incomplete": ResponsesDecoder._ended,
    "response.failed": ResponsesDecoder._ended,
    "response.cancelled": ResponsesDecoder._ended,
}
_DELTAS: Final = frozenset(name for name in _HANDLERS if name.endswith(".delta"))
