"""The output items of an answer, as they open, grow and close: frames in the order that clients want.

One message or reasoning item grows at a time, and closes when something else
begins. Calls stay open side by side until each has ended, as their upstream
interleaved them. Frames and ids are numbered by the events alone, so that the
same log always gives the same bytes.
"""

from io import StringIO
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

from headwater import sse

_json = msgspec.json.encode

Kind = Literal["text", "refusal", "summary"]
Status = Literal["completed", "incomplete"]


class _Form(Struct, frozen=True):
    """How the protocol writes a text of one kind."""

    added: str
    delta: str
    text_done: str
    done: str
    index: str
    part: dict[str, Any]
    field: str
    """Where in the part, and in its `text_done`, the text stands."""
    extra: dict[str, Any]
    """What else the events of the text itself have."""


_FORMS: Final[dict[Kind, _Form]] = {
    "text": _Form(
        added="response.content_part.added",
        delta="response.output_text.delta",
        text_done="response.output_text.done",
        done="response.content_part.done",
        index="content_index",
        part={"type": "output_text", "annotations": [], "logprobs": []},
        field="text",
        extra={"logprobs": []},
    ),
    "refusal": _Form(
        added="response.content_part.added",
        delta="response.refusal.delta",
        text_done="response.refusal.done",
        done="response.content_part.done",
        index="content_index",
        part={"type": "refusal"},
        field="refusal",
        extra={},
    ),
    "summary": _Form(
        added="response.reasoning_summary_part.added",
        delta="response.reasoning_summary_text.delta",
        text_done="response.reasoning_summary_text.done",
        done="response.reasoning_summary_part.done",
        index="summary_index",
        part={"type": "summary_text"},
        field="text",
        extra={},
    ),
}
_ARGUMENTS: Final = "response.function_call_arguments.delta"


class _Growing(Struct):
    """A text that is not at its end. Its delta frames are `start`, a number and the text."""

    kind: Kind
    start: bytes
    place: dict[str, Any]
    said: StringIO = field(default_factory=StringIO)


class _Item(Struct):
    """A message, or reasoning."""

    index: int
    data: dict[str, Any]
    parts: list[dict[str, Any]] = field(default_factory=list)


class _Call(Struct):
    index: int
    data: dict[str, Any]
    extra: dict[str, Any]
    start: bytes
    said: StringIO = field(default_factory=StringIO)


class Output:
    def __init__(self, suffix: str) -> None:
        self._suffix = suffix
        self.frames = 0
        """So many were made; the next one has this number."""
        self._item: _Item | None = None
        self._growing: _Growing | None = None
        self._calls: dict[int, _Call] = {}
        """Those that have not ended, by the index of their events."""
        self.items: list[bytes] = []
        """As they are when done; nothing yet while they are open."""

    def frame(self, type: str, **fields: Any) -> bytes:
        """An event, with its number."""
        number = self.frames
        self.frames += 1
        return sse.encode(_json({"type": type, "sequence_number": number, **fields}), event=type)

    # ----------------------------------------------------------------- texts

    def grow(self, kind: Kind, text: str) -> bytes:
        growing = self._growing
        if growing is None or growing.kind != kind:
            return self._open_text(kind) + self.grow(kind, text)
        growing.said.write(text)
        number = self.frames
        self.frames = number + 1
        return b'%b%d,"delta":%b}\n\n' % (growing.start, number, _json(text))

    def seal(self, encrypted_content: str | None) -> bytes:
        """The reasoning before it is whole; without any, a seal is a reasoning item of its own."""
        opening = b""
        if self._item is None or self._item.data["type"] != "reasoning":
            if encrypted_content is None:
                return b""
            opening = self.settle() + self._open_item("reasoning")
        if encrypted_content is not None:
            assert self._item is not None
            self._item.data["encrypted_content"] = encrypted_content
        return opening + self.settle()

    def note(self, note: dict[str, Any]) -> bytes:
        """What else there is to say of the message before it, which is whole."""
        if self._item is None or self._item.data["type"] != "message":
            return b""
        annotations = note.get("annotations")
        closing = self._close_text({"annotations": annotations} if annotations else {})
        self._item.data.update({name: value for name, value in note.items() if name not in ("type", "annotations")})
        return closing + self.settle()

    def _open_text(self, kind: Kind) -> bytes:
        form = _FORMS[kind]
        type: Literal["message", "reasoning"] = "reasoning" if kind == "summary" else "message"
        if self._item is not None and self._item.data["type"] == type:
            opening = self._close_text()
        else:
            opening = self.settle() + self._open_item(type)
        item = self._item
        assert item is not None
        place = {"item_id": item.data["id"], "output_index": item.index, form.index: len(item.parts)}
        opening += self.frame(form.added, **place, part={**form.part, form.field: ""})
        self._growing = _Growing(kind, _delta_start(form.delta, {**place, **form.extra}), place)
        return opening

    def _close_text(self, more: dict[str, Any] | None = None) -> bytes:
        growing, self._growing = self._growing, None
        assert growing is not None
        assert self._item is not None
        form = _FORMS[growing.kind]
        text = growing.said.getvalue()
        part = {**form.part, form.field: text, **(more or {})}
        self._item.parts.append(part)
        return self.frame(form.text_done, **growing.place, **form.extra, **{form.field: text}) + self.frame(
            form.done, **growing.place, part=part
        )

    # ----------------------------------------------------------------- items

    def settle(self, status: Status = "completed") -> bytes:
        """Close the message or reasoning that is open."""
        closing = self._close_text() if self._growing is not None else b""
        item, self._item = self._item, None
        if item is None:
            return closing
        parts = "summary" if item.data["type"] == "reasoning" else "content"
        return closing + self._done(item.index, {**item.data, "status": status, parts: item.parts})

    def close(self, status: Status) -> bytes:
        """Close all that is open."""
        return self.settle(status) + b"".join([self.end_call(index, None, status) for index in list(self._calls)])

    def whole(self, data: dict[str, Any]) -> bytes:
        """An item that has no parts to us."""
        closing = self.settle()
        index = self._next()
        return (
            closing + self.frame("response.output_item.added", output_index=index, item=data) + self._done(index, data)
        )

    def _open_item(self, type: Literal["message", "reasoning"]) -> bytes:
        index = self._next()
        if type == "message":
            item = _Item(index, {"id": f"msg_{self._suffix}_{index}", "type": type, "role": "assistant"})
            written: dict[str, Any] = {**item.data, "status": "in_progress", "content": []}
        else:
            item = _Item(index, {"id": f"rs_{self._suffix}_{index}", "type": type})
            written = {**item.data, "status": "in_progress", "summary": []}
        self._item = item
        return self.frame("response.output_item.added", output_index=index, item=written)

    def _next(self) -> int:
        self.items.append(b"")
        return len(self.items) - 1

    def _done(self, index: int, data: dict[str, Any]) -> bytes:
        self.items[index] = _json(data)
        return self.frame("response.output_item.done", output_index=index, item=data)

    # ----------------------------------------------------------------- calls

    def start_call(self, number: int, id: str, name: str, extra: dict[str, Any] | None) -> bytes:
        opening = self.settle()
        index = self._next()
        item_id = f"fc_{self._suffix}_{index}"
        data = {"id": item_id, "type": "function_call", "call_id": id, "name": name}
        start = _delta_start(_ARGUMENTS, {"item_id": item_id, "output_index": index})
        self._calls[number] = _Call(index, data, extra or {}, start)
        item = {**(extra or {}), **data, "status": "in_progress", "arguments": ""}
        return opening + self.frame("response.output_item.added", output_index=index, item=item)

    def grow_call(self, number: int, text: str) -> bytes:
        call = self._calls.get(number)
        if call is None:
            # An item that is done can't grow; its upstream said that it was.
            return b""
        call.said.write(text)
        sequence_number = self.frames
        self.frames += 1
        return b'%b%d,"delta":%b}\n\n' % (call.start, sequence_number, _json(text))

    def end_call(self, number: int, extra: dict[str, Any] | None, status: Status = "completed") -> bytes:
        call = self._calls.pop(number)
        arguments = call.said.getvalue()
        data = {**call.extra, **(extra or {}), **call.data, "status": status, "arguments": arguments}
        place = {"item_id": data["id"], "output_index": call.index}
        return self.frame(
            "response.function_call_arguments.done", **place, name=data["name"], arguments=arguments
        ) + self._done(call.index, data)


def _delta_start(type: str, fields: dict[str, Any]) -> bytes:
    # Built once: a token's frame is this, a number, and its text.
    return b'event: %b\ndata: %b,"sequence_number":' % (type.encode(), _json({"type": type, **fields})[:-1])
