"""Messages, as the input items of an upstream: always a list that OpenAI takes.

Every call has exactly one output after it, an output has its call, reasoning
stands before what it led to, no message is empty, and items that belong to
another upstream stay away. Ids of items are its own: ours are not sent.
"""

from collections.abc import Sequence
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
from headwater.dialects.history import NOTHING_SAID, plain_name, settled
from headwater.dialects.responses.reasoning import rebuilt

Item = dict[str, Any]

_CALL_ID_CHARS: Final = 64
# Said in another way: a note on a message, and the output of a call.
_NOT_AGAIN: Final = frozenset({"message", "function_call_output"})
# What this dialect itself may add to a call; other fields go to nobody but the upstream that they came from.
_CALL_EXTRAS: Final = ("namespace", "caller", "async")


def write_input(messages: Sequence[Message], target: Target, declared: Sequence[str] = ()) -> list[Item]:
    """`declared`: the names of the request's own tools, which stay as they are."""
    history = _History(target, declared)
    for message in settled(messages, lambda _, id: 0 < len(id) <= _CALL_ID_CHARS):
        history.add(message)
    # An item that stands twice (a history put together from two) is refused: its id is taken.
    by_id = {
        ("id", id) if isinstance(id := item.get("id"), str) else ("number", number): item
        for number, item in enumerate(history.items)
    }
    return list(by_id.values()) or [{"type": "message", "role": "user", "content": NOTHING_SAID}]


class _History:
    def __init__(self, target: Target, declared: Sequence[str]) -> None:
        self._origin = target.origin
        self._declared = declared
        self.items: list[Item] = []

    def add(self, message: Message) -> None:
        match message:
            case System(parts=parts):
                self._message("system", parts)
            case User(parts=parts):
                self._message("user", parts)
            case Assistant():
                self._assistant(message)
            case ToolOutput(call_id=call_id, parts=parts):
                output = write_parts(parts)
                self.items.append({"type": "function_call_output", "call_id": call_id, "output": output})
            case unreachable:
                assert_never(unreachable)

    def _message(self, role: str, parts: Sequence[Text | Image | Opaque]) -> None:
        if content := write_parts(parts):
            self.items.append({"type": "message", "role": role, "content": content})

    def _assistant(self, message: Assistant) -> None:
        own = message.origin is not None and message.origin == self._origin
        ours = own or message.origin is None
        thoughts: list[Item] = []
        texts: list[Text] = []
        for part in message.parts:
            if texts and not isinstance(part, Text):
                note = _note(part) if ours else {}
                self.items += [*thoughts, _said(texts) | note]
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
                    self.items += [*thoughts, _call(part, own, self._declared)]
                    thoughts = []
                case Opaque(dialect="responses", data=data) if ours and str(data.get("type")) not in _NOT_AGAIN:
                    self.items += [*thoughts, data]
                    thoughts = []
                case Opaque():
                    pass
                case unreachable:
                    assert_never(unreachable)
        if texts:
            self.items += [*thoughts, _said(texts)]


def _call(call: ToolCall, own: bool, declared: Sequence[str]) -> Item:
    extra = {name: value for name, value in (call.extra or {}).items() if own or name in _CALL_EXTRAS}
    name = plain_name(call.name, declared)
    return {**extra, "type": "function_call", "call_id": call.id, "name": name, "arguments": call.arguments}


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


def write_parts(parts: Sequence[Text | Image | Opaque]) -> str | list[Item]:
    match [part for part in parts if _is_shown(part)]:
        case []:
            return ""
        case [Text(text=text)]:
            return text
        case shown:
            return [_part(part) for part in shown]


def _is_shown(part: Text | Image | Opaque) -> bool:
    match part:
        case Text(text=text):
            return bool(text)
        case Image():
            return True
        case Opaque(dialect=dialect):
            return dialect == "responses"
        case unreachable:
            assert_never(unreachable)


def _part(part: Text | Image | Opaque) -> Item:
    match part:
        case Text(text=text):
            return {"type": "input_text", "text": text}
        case Image(url=url, detail=detail):
            return {"type": "input_image", "image_url": url, "detail": detail or "auto"}
        case Opaque(data=data):
            return data
        case unreachable:
            assert_never(unreachable)
