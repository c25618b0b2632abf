"""The output items of an upstream's stream, and what of each has been delivered.

The same text comes as deltas, in a `done` of its part, of its item, and in the
final object, and any of these may be missing: each is delivered exactly once.
"""

from collections.abc import Callable
from io import StringIO
from typing import Any, Final, Literal

from msgspec import Struct, field

from headwater.dialects.lenient import json_text, objects, string
from headwater.dialects.responses.annotations import joined_annotations
from headwater.dialects.responses.frame import StreamEvent
from headwater.dialects.responses.reasoning import BETWEEN_PARTS, state_of
from headwater.events import (
    Event,
    ProviderState,
    ReasoningDelta,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
)

Field = Literal["text", "refusal", "summary", "content"]
"""Where in its item a text stands."""

_KIND: Final[dict[Field, str]] = {
    "text": "message",
    "refusal": "message",
    "summary": "reasoning",
    "content": "reasoning",
}
_EVENT: Final[dict[Field, Callable[[str], Event]]] = {
    "text": TextDelta,
    "refusal": lambda text: TextDelta(text, refusal=True),
    "summary": ReasoningDelta,
    "content": ReasoningDelta,
}
_SEAM: Final[dict[str, ProviderState]] = {
    "message": ProviderState("responses", {"type": "message"}),
    "reasoning": ProviderState("responses", {}, of="reasoning"),
}
_MESSAGE_FIELDS: Final = frozenset({"id", "type", "role", "content", "status"})
_CALL_FIELDS: Final = frozenset({"id", "type", "call_id", "name", "arguments", "status"})


class _Call(Struct):
    index: int = -1
    """Among those that have started: which needs a name."""
    early: list[str] = field(default_factory=list)
    """Arguments that may be sent again, or came before the name."""
    late_name: str = ""
    """From where no call id comes with it: used only if nothing better does."""
    said: StringIO = field(default_factory=StringIO)
    extra: dict[str, Any] = field(default_factory=dict)
    ended: bool = False


class Item(Struct):
    kind: str
    id: str = ""
    said: dict[tuple[Field, int], StringIO] = field(default_factory=dict)
    """By part, what of its text has been delivered."""
    ended_parts: set[str] = field(default_factory=set)
    """The texts of those before the last one."""
    call: _Call = field(default_factory=_Call)
    done: bool = False


class Received:
    def __init__(self, call_id_prefix: str) -> None:
        self._prefix = call_id_prefix
        self._items: list[Item] = []
        self._by_key: dict[int | str | None, Item] = {}
        """The item that each of the upstream's indexes means by now."""
        self._call_ids: set[str] = set()
        self.calls = 0
        self._speaking: Item | None = None
        """Whose text the next one's would be taken for a part of."""
        self._text_place: tuple[int | None, int, StringIO] | None = None
        """Index, part and text so far of the message that grows, while nothing else has come to its index."""
        self.cut_item = False
        """An item was said to be incomplete."""

    # --------------------------------------------------------------- deltas

    def say_text(self, event: StreamEvent, out: list[Event]) -> None:
        """A delta of a message's text: the way of every token, and shorter while it goes on with the same part."""
        text = event.delta
        place = self._text_place
        if place is not None and text and event.output_index == place[0] and event.content_index == place[1]:
            place[2].write(text)
            out.append(TextDelta(text))
            return
        self.say(event, "text", event.content_index, out)
        item = self._by_key.get(event.output_index)
        if item is not None and (said := item.said.get(("text", event.content_index))) is not None:
            self._text_place = (event.output_index, event.content_index, said)

    def growing(self, event: StreamEvent) -> StringIO | None:
        """What of a message's text has been delivered, if this goes on with the part that grows."""
        place = self._text_place
        if place is None or (event.output_index, event.content_index) != place[:2]:
            return None
        return place[2]

    def say(self, event: StreamEvent, field: Field, part: int, out: list[Event]) -> None:
        """A delta of a text."""
        text = event.delta
        if not text:
            return
        item = self._open(event, _KIND[field])
        said = item.said.get((field, part))
        if said is None:
            said = self._begin_part(item, field, part, out)
        said.write(text)
        out.append(_EVENT[field](text))

    def whole_part(self, event: StreamEvent, field: Field, part: int, text: str, out: list[Event]) -> None:
        """A text that has come to its end."""
        item = self._by_key.get(event.key)
        self._rest(item or self._new(event.key, _KIND[field], event.item_id), field, part, text, out)

    def arguments(self, event: StreamEvent, out: list[Event]) -> None:
        call = self._open(event, "function_call").call
        if call.index < 0:
            # The item was not announced: tests/wire/responses/call_not_added.sse
            call.early.append(event.delta)
        elif event.delta:
            call.said.write(event.delta)
            out.append(ToolArgsDelta(call.index, event.delta))

    def whole_arguments(self, event: StreamEvent, out: list[Event]) -> None:
        item = self._by_key.get(event.key) or self._new(event.key, "function_call", event.item_id)
        if event.arguments:
            item.call.early = [event.arguments]
        item.call.late_name = event.name
        self._rest_of_arguments(item.call, event.arguments, out)

    # ---------------------------------------------------------------- items

    def added(self, event: StreamEvent, data: dict[str, Any], out: list[Event]) -> None:
        item = self._by_key.get(event.key)
        kind, id = string(data.get("type")), string(data.get("id"))
        # Another item under the same index: tests/wire/responses/same_output_index.sse
        if item is None or item.done or (item.kind, item.id) != (kind, id):
            item = self._new(event.key, kind, id)
        if item.kind == "function_call":
            item.call.early = [json_text(data.get("arguments"))]
            self._start(item, data, out)

    def item_done(self, event: StreamEvent, data: dict[str, Any], out: list[Event]) -> None:
        item = self._by_key.get(event.key)
        if item is None or item.kind != data.get("type") or (item.done and item.id != data.get("id")):
            item = self._new(event.key, string(data.get("type")), string(data.get("id")))
        self._settle(item, data, out)

    def all_done(self, output: list[dict[str, Any]], out: list[Event]) -> None:
        """The final object: whatever of it has not come before."""
        by_id: dict[tuple[str, str], list[Item]] = {}
        for item in reversed(self._items):
            by_id.setdefault((item.id, item.kind), []).append(item)
        found = [_taken(by_id.get((string(data.get("id")), string(data.get("type"))))) for data in output]
        taken = set(map(id, found))
        by_kind: dict[str, list[Item]] = {}
        for item in reversed(self._items):
            if id(item) not in taken:
                by_kind.setdefault(item.kind, []).append(item)
        for data, known in zip(output, found, strict=True):
            # Neither ids nor positions have to agree: tests/wire/responses/final_other_ids.sse
            kind = string(data.get("type"))
            self._settle(known or _taken(by_kind.get(kind)) or Item(kind), data, out)

    def end_calls(self, out: list[Event]) -> None:
        """The upstream has proved to be done, and so are its calls."""
        for item in self._items:
            self._start(item, {"id": item.id, "name": item.call.late_name}, out)
            self._end_call(item.call, "", {}, out)

    def _open(self, event: StreamEvent, kind: str) -> Item:
        """The item that a delta is for."""
        item = self._by_key.get(event.key)
        return item if item is not None and not item.done else self._new(event.key, kind, event.item_id)

    def _new(self, key: int | str, kind: str, id: str) -> Item:
        item = self._by_key[key] = Item(kind, id)
        self._items.append(item)
        self._text_place = None
        return item

    def _settle(self, item: Item, data: dict[str, Any], out: list[Event]) -> None:
        cut = data.get("status") == "incomplete"
        match item.kind:
            case "message":
                self._settle_message(item, data, out)
            case "reasoning":
                self._settle_reasoning(item, data, out)
            case "function_call":
                extra = self._start(item, data, out)
                arguments = json_text(data.get("arguments"))
                if cut:
                    self._rest_of_arguments(item.call, arguments, out)
                else:
                    self._end_call(item.call, arguments, extra, out)
            case _:
                cut = False
                if not item.done:
                    self._speaking = None
                    out.append(ProviderState("responses", data))
        self.cut_item = self.cut_item or cut
        item.done = True
        self._text_place = None

    def _settle_message(self, item: Item, data: dict[str, Any], out: list[Event]) -> None:
        parts = objects(data.get("content"))
        for n, part in enumerate(parts):
            field: Field = "refusal" if part.get("type") == "refusal" else "text"
            self._rest(item, field, n, string(part.get(field)), out)
        note = {name: value for name, value in data.items() if name not in _MESSAGE_FIELDS and value is not None}
        if annotations := joined_annotations(parts):
            note["annotations"] = annotations
        if note and not item.done:
            self._speaking = None
            out.append(ProviderState("responses", {"type": "message", **note}))

    def _settle_reasoning(self, item: Item, data: dict[str, Any], out: list[Event]) -> None:
        places: tuple[Field, Field] = ("summary", "content")
        for place in places:
            for n, part in enumerate(objects(data.get(place))):
                self._rest(item, place, n, string(part.get("text")), out)
        if data.get("encrypted_content") and not item.done:
            text = BETWEEN_PARTS.join(said.getvalue() for said in item.said.values())
            self._speaking = None
            out.append(ProviderState("responses", state_of(data, text), of="reasoning"))

    # ----------------------------------------------------------------- texts

    def _begin_part(self, item: Item, field: Field, part: int, out: list[Event]) -> StringIO:
        before = self._speaking
        if item.said:
            item.ended_parts.add(next(reversed(item.said.values())).getvalue())
            if item.kind == "reasoning":
                out.append(ReasoningDelta(BETWEEN_PARTS))
        elif before is not None and before is not item and before.kind == item.kind:
            # An item of its own, and nothing between: tests/wire/responses/text_twice.sse, reasoning_twice.sse
            out.append(_SEAM[item.kind])
        self._speaking = item
        said = item.said[field, part] = StringIO()
        return said

    def _rest(self, item: Item, field: Field, part: int, text: str, out: list[Event]) -> None:
        """What of `text` the deltas have left out; where they differ from it, what was shown stands."""
        said = item.said.get((field, part))
        if said is None:
            # Under another part's number: tests/wire/responses/other_content_index.sse
            if not text or text in item.ended_parts or _is_last_part(item, text):
                return
            said = self._begin_part(item, field, part, out)
        shown = said.getvalue()
        if text.startswith(shown) and text != shown:
            said.write(text[len(shown) :])
            out.append(_EVENT[field](text[len(shown) :]))

    # ----------------------------------------------------------------- calls

    def _start(self, item: Item, data: dict[str, Any], out: list[Event]) -> dict[str, Any]:
        """Gives what the provider has added since the call started."""
        call = item.call
        extra = {name: value for name, value in data.items() if name not in _CALL_FIELDS and value is not None}
        if call.index >= 0:
            return {name: value for name, value in extra.items() if call.extra.get(name) != value}
        name = string(data.get("name"))
        if name:
            call.index = self.calls
            self.calls += 1
            call.extra = extra
            id = string(data.get("call_id")) or string(data.get("id"))
            if not id or id in self._call_ids:
                id = f"{self._prefix}_{call.index}"
            self._call_ids.add(id)
            self._speaking = None
            out.append(ToolCallStarted(call.index, id, name, extra or None))
        return {}

    def _rest_of_arguments(self, call: _Call, arguments: str, out: list[Event]) -> None:
        """What the deltas have left out. The same arguments written otherwise are none of it."""
        shown = call.said.getvalue()
        whole = arguments or "".join(call.early)
        if call.index >= 0 and not call.ended and whole.startswith(shown) and whole != shown:
            call.said.write(whole[len(shown) :])
            out.append(ToolArgsDelta(call.index, whole[len(shown) :]))

    def _end_call(self, call: _Call, arguments: str, extra: dict[str, Any], out: list[Event]) -> None:
        if call.index >= 0 and not call.ended:
            self._rest_of_arguments(call, arguments, out)
            call.ended = True
            out.append(ToolCallEnded(call.index, extra or None))


def _taken(items: list[Item] | None) -> Item | None:
    """The last one, which is no longer there for another to take."""
    return items.pop() if items else None


def _is_last_part(item: Item, text: str) -> bool:
    last = next(reversed(item.said.values()), None)
    # The length first: a long part is not to be read for each short one.
    return last is not None and last.tell() == len(text) and last.getvalue() == text
