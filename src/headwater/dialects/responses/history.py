"""Messages, as the input items of an upstream: always a list that OpenAI takes.

Every call has exactly one output after it, an output has its call, reasoning
stands before what it led to, no message is empty, and items that belong to
another upstream stay away. Ids of items are its own: ours are not sent.
"""

from collections.abc import Sequence
from itertools import groupby
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
from headwater.dialects.base import STOP
from headwater.dialects.history import NOTHING_SAID, plain_name, settled
from headwater.dialects.responses.pairs import is_clients, unpaired
from headwater.dialects.responses.reasoning import is_sealed, rebuilt

Item = dict[str, Any]

_CALL_ID_CHARS: Final = 64
# Said in another way: a note on a message, and the output of a call; or, of how an answer ended, not at all.
_NOT_AGAIN: Final = frozenset({"message", "function_call_output", STOP})
# What this dialect itself may add to a call; other fields go to nobody but the upstream that they came from.
CALL_EXTRAS: Final = ("namespace", "caller", "async")


def write_input(messages: Sequence[Message], target: Target, declared: Sequence[str] = ()) -> list[Item]:
    """`declared`: the names of the request's own tools, which stay as they are."""
    history = _history(messages, target, declared)
    # An item that stands twice (a history put together from two) is refused: its id is taken.
    by_id = {
        ("id", id) if isinstance(id := item.get("id"), str) else ("number", number): item
        for number, item in enumerate(history.items)
    }
    return list(by_id.values()) or [{"type": "message", "role": "user", "content": NOTHING_SAID}]


def left_out(messages: Sequence[Message], target: Target) -> bool:
    """Reasoning of its own that nothing follows which it could have led to."""
    return _history(messages, target, ()).left_out


def _history(messages: Sequence[Message], target: Target, declared: Sequence[str]) -> "_History":
    history = _History(target, declared, _alone(messages))
    for message in settled(messages, lambda _, id: 0 < len(id) <= _CALL_ID_CHARS):
        history.add(message)
    return history


def _alone(messages: Sequence[Message]) -> set[int]:
    """By identity: items that may not be sent without others that are not there."""
    items = [part.data for message in messages for part in message.parts if isinstance(part, Opaque)]
    return {id(items[place]) for place in unpaired(items)}


class _History:
    def __init__(self, target: Target, declared: Sequence[str], alone: set[int]) -> None:
        self._origin = target.origin
        self._alone = alone
        self._declared = declared
        self.items: list[Item] = []
        self.left_out = False

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
            if texts and _ends_text(part):
                note, annotations = _note(part) if ours else ({}, [])
                self.items += [*thoughts, _said(texts, annotations) | note]
                thoughts, texts = [], []
            match part:
                case Text(text=text):
                    texts += [part] if text else []
                case Reasoning(text=text, dialect="responses", state=dict(state)) if ours and is_sealed(state):
                    # The seal is bound to the id that its upstream gave it: with any other one it is
                    # refused, without one it is taken.
                    thoughts += [rebuilt(text, state if own else _without_id(state))]
                case Reasoning():
                    pass
                case ToolCall():
                    self.items += [*thoughts, _call(part, own, self._declared)]
                    thoughts = []
                case Opaque(dialect="responses", data=data) if ours and self._is_sent(data):
                    # No thought of the model leads to what its client says.
                    self.left_out = self.left_out or bool(thoughts and is_clients(data))
                    self.items += [data] if is_clients(data) else [*thoughts, data]
                    thoughts = []
                case Opaque():
                    pass
                case unreachable:
                    assert_never(unreachable)
        if texts:
            self.items += [*thoughts, _said(texts)]
        else:
            self.left_out = self.left_out or bool(thoughts)

    def _is_sent(self, item: Item) -> bool:
        return str(item.get("type")) not in _NOT_AGAIN and id(item) not in self._alone


def _call(call: ToolCall, own: bool, declared: Sequence[str]) -> Item:
    extra = {name: value for name, value in (call.extra or {}).items() if own or name in CALL_EXTRAS}
    name = plain_name(call.name, declared)
    return {**extra, "type": "function_call", "call_id": call.id, "name": name, "arguments": call.arguments}


def _without_id(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name != "id"}


def _ends_text(part: Text | Reasoning | ToolCall | Opaque) -> bool:
    """What comes next is a message of its own. A remark of another dialect is none of this one's business."""
    if not isinstance(part, Opaque):
        return not isinstance(part, Text)
    kind = str(part.data.get("type"))
    return not kind.startswith("headwater.") and (kind != "message" or part.dialect == "responses")


def _note(part: Reasoning | ToolCall | Opaque | Text) -> tuple[dict[str, Any], list[Any]]:
    """What this dialect has noted of the message before it, and what that refers to."""
    if isinstance(part, Opaque) and part.dialect == "responses" and part.data.get("type") == "message":
        note = {name: value for name, value in part.data.items() if name != "annotations"}
        return note, part.data.get("annotations") or []
    return {}, []


def _said(texts: list[Text], annotations: Sequence[Any] = ()) -> Item:
    """Plain text where it is nothing else: every compatible server takes that."""
    plain = "".join(part.text for part in texts if not part.refusal)
    if not annotations and not any(part.refusal for part in texts):
        return {"type": "message", "role": "assistant", "content": plain}
    content: list[Item] = []
    for refusal, parts in groupby(texts, lambda part: part.refusal):
        text = "".join(part.text for part in parts)
        content.append({"type": "refusal", "refusal": text} if refusal else {"type": "output_text", "text": text})
    if annotations:
        next(part for part in reversed(content) if part["type"] == "output_text")["annotations"] = annotations
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
