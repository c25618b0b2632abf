"""Messages, as the input items of an upstream: always a list that OpenAI takes.

Every call has exactly one output after it, an output has its call, reasoning
stands before what it led to, no message is empty, and items that belong to
another upstream stay away. Ids of items are its own: ours are not sent.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, assert_never

from headwater.conversation import (
    Assistant,
    Image,
    Message,
    Opaque,
    Reasoning,
    System,
    Target,
    Text,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects.responses.reasoning import rebuilt

Item = dict[str, Any]

NO_RESULT: Final = "No result of this call is known."
_CALL_ID_CHARS: Final = 64
# Said in another way: a note on a message, and the output of a call.
_NOT_AGAIN: Final = frozenset({"message", "function_call_output"})
# What this dialect itself may add to a call; other fields go to nobody but the upstream that they came from.
_CALL_EXTRAS: Final = ("namespace", "caller", "async")


def write_input(messages: Sequence[Message], target: Target) -> list[Item]:
    return _History(target).write(messages)


class _History:
    def __init__(self, target: Target) -> None:
        self._origin = target.origin
        self._items: list[Item] = []
        self._unanswered: dict[str, Item] = {}
        """By the id that our message has for it."""
        self._call_ids: set[str] = set()

    def write(self, messages: Sequence[Message]) -> list[Item]:
        for message in messages:
            match message:
                case System(parts=parts):
                    self._message("system", parts)
                case User(parts=parts):
                    self._message("user", parts)
                case Assistant():
                    self._assistant(message)
                case ToolOutput():
                    self._output(message)
                case unreachable:
                    assert_never(unreachable)
        return list(self._answered())

    def _message(self, role: str, parts: Sequence[Text | Image]) -> None:
        if content := write_parts(parts):
            self._items.append({"type": "message", "role": role, "content": content})

    # -------------------------------------------------------------- assistant

    def _assistant(self, message: Assistant) -> None:
        own = message.origin is not None and message.origin == self._origin
        ours = own or message.origin is None
        thoughts: list[Item] = []
        texts: list[Text] = []
        for part in message.parts:
            if texts and not isinstance(part, Text):
                note = _note(part) if ours else {}
                self._items += [*thoughts, _said(texts) | note]
                thoughts, texts = [], []
            match part:
                case Text(text=text):
                    texts += [part] if text else []
                case Reasoning(text=text, dialect="responses", state=dict(state)) if ours:
                    # The seal is bound to the id that its upstream gave it: with any other one it is
                    # refused, without one it is taken.
                    thoughts += [rebuilt(text, state if own else _without_id(state))]
                case Reasoning():
                    pass
                case ToolCall():
                    self._items += [*thoughts, self._call(part, own)]
                    thoughts = []
                case Opaque(dialect="responses", data=data) if ours and data.get("type") not in _NOT_AGAIN:
                    self._items += [*thoughts, data]
                    thoughts = []
                case Opaque():
                    pass
                case unreachable:
                    assert_never(unreachable)
        if texts:
            self._items += [*thoughts, _said(texts)]

    # ------------------------------------------------------------------ calls

    def _call(self, call: ToolCall, own: bool) -> Item:
        extra = call.extra or {}
        item = {
            **{name: value for name, value in extra.items() if own or name in _CALL_EXTRAS},
            "type": "function_call",
            "call_id": self._call_id(call.id),
            "name": call.name,
            "arguments": call.arguments,
        }
        self._unanswered[call.id] = item
        return item

    def _call_id(self, id: str) -> str:
        """Unique, and no longer than is taken."""
        call_id = id if 0 < len(id) <= _CALL_ID_CHARS else "call_" + sha256(id.encode()).hexdigest()[:32]
        if call_id in self._call_ids:
            call_id = f"{call_id[:48]}_{len(self._call_ids)}"
        self._call_ids.add(call_id)
        return call_id

    def _output(self, output: ToolOutput) -> None:
        call = self._unanswered.pop(output.call_id, None)
        if call is not None:
            self._items.append(_answer(call, write_parts(output.parts)))

    def _answered(self) -> Iterator[Item]:
        """The items, with an answer after each run of calls for those that have none."""
        answered = {item["call_id"] for item in self._items if item.get("type") == "function_call_output"}
        waiting: list[Item] = []
        for item in self._items:
            if item.get("type") != "function_call":
                yield from (_answer(call, NO_RESULT) for call in waiting)
                waiting = []
            elif item["call_id"] not in answered:
                waiting.append(item)
            yield item
        yield from (_answer(call, NO_RESULT) for call in waiting)


def _answer(call: Item, output: str | list[Item]) -> Item:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": output}


def _without_id(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name != "id"}


def _note(part: Reasoning | ToolCall | Opaque) -> dict[str, Any]:
    """What this dialect has noted of the message before it."""
    if isinstance(part, Opaque) and part.dialect == "responses" and part.data.get("type") == "message":
        return {name: value for name, value in part.data.items() if name != "annotations"}
    return {}


def _said(texts: list[Text]) -> Item:
    """Plain text where it is nothing else: every compatible server takes that."""
    content: Any = "".join(part.text for part in texts)
    if any(part.refusal for part in texts):
        content = [
            {"type": "refusal", "refusal": part.text} if part.refusal else {"type": "output_text", "text": part.text}
            for part in texts
        ]
    return {"type": "message", "role": "assistant", "content": content}


def write_parts(parts: Sequence[Text | Image]) -> str | list[Item]:
    shown = [part for part in parts if isinstance(part, Image) or part.text]
    if all(isinstance(part, Text) for part in shown) and len(shown) <= 1:
        return "".join(part.text for part in shown if isinstance(part, Text))
    return [_part(part) for part in shown]


def _part(part: Text | Image) -> Item:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "image_url": part.url, "detail": part.detail or "auto"}
