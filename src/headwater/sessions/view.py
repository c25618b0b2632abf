"""A session as people see it, in the native API's words: the messages on the way to the head, notices in their place.

Tool results are shown with the calls that they answer, and are no items of their own. Pure values, ready for JSON.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, assert_never

from msgspec import Struct

from headwater.conversation import Assistant, Image, Message, Opaque, System, Text, ToolOutput, User, is_remark
from headwater.events import Outcome, Usage
from headwater.records import SessionMessage, SessionNotice, Transcript
from headwater.sessions.images import hash_of
from headwater.sessions.way import CallFate, Way, way_to

Role = Literal["system", "user", "assistant", "tool"]


class ImagePart(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="image"):
    blob: str | None = None
    url: str | None = None


class OtherPart(Struct, frozen=True, tag_field="type", tag="other"):
    """Something that only one dialect has a word for, by that word."""

    name: str


Part = ImagePart | OtherPart


class CallItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    name: str
    arguments: str
    state: CallFate
    result: str | None = None
    parts: tuple[Part, ...] = ()
    """Of the result."""


class _Item(Struct, frozen=True, kw_only=True, tag_field="kind"):
    id: str
    created_at: datetime
    run_id: str | None


class MessageItem(_Item, frozen=True, kw_only=True, tag="message"):
    parent_id: str | None
    role: Role
    content: str
    parts: tuple[Part, ...]
    status: Literal["complete", "partial"]
    siblings: tuple[str, ...]
    """It and the other branches at this place, oldest first; none if it is the only one."""


class AnswerItem(MessageItem, frozen=True, kw_only=True, tag="message"):
    reasoning: str
    tool_calls: tuple[CallItem, ...]
    model: str | None
    answered_by: str | None
    usage: Usage | None
    outcome: Outcome | None
    continues: str | None


class NoticeItem(_Item, frozen=True, kw_only=True, tag="notice"):
    code: str
    text: str


Item = MessageItem | AnswerItem | NoticeItem


class View(Struct, frozen=True):
    items: tuple[Item, ...]


def view(transcript: Transcript, head_id: str | None = None) -> View:
    """`head_id`: another branch's end than the one that is shown."""
    way = way_to(transcript, head_id or transcript.session.head_id)
    children = Counter(message.parent_id for message in transcript.messages)
    siblings: dict[str | None, list[str]] = {}
    for message in transcript.messages:
        if children[message.parent_id] > 1:
            siblings.setdefault(message.parent_id, []).append(message.id)
    return View(tuple(_items(way, siblings)))


def _items(way: Way, siblings: dict[str | None, list[str]]) -> Iterator[Item]:
    above: dict[str | None, str | None] = {}
    """The item that a message hangs from, if its parent is shown with its call."""
    for step in way.steps:
        if isinstance(step, SessionNotice):
            yield NoticeItem(
                id=step.id, created_at=_time(step.created_at), run_id=step.run_id, code=step.code, text=step.text
            )
            continue
        parent_id = above.get(step.parent_id, step.parent_id)
        if step.id in way.result_ids:
            above[step.id] = parent_id
        else:
            yield _message(step, parent_id, tuple(siblings.get(step.parent_id, ())), way)


def _message(step: SessionMessage, parent_id: str | None, siblings: tuple[str, ...], way: Way) -> MessageItem:
    message = step.message
    item = MessageItem(
        id=step.id,
        created_at=_time(step.created_at),
        run_id=step.run_id,
        parent_id=parent_id,
        role=role_of(message),
        content=text_of(message),
        parts=parts_of(message),
        status=step.status,
        siblings=siblings,
    )
    if not isinstance(message, Assistant):
        return item
    return AnswerItem(
        **{name: getattr(item, name) for name in item.__struct_fields__},
        reasoning=message.reasoning,
        tool_calls=tuple(_call_items(step, message, way)),
        model=step.model,
        answered_by=step.answered_by,
        usage=step.usage,
        outcome=step.outcome,
        continues=step.continues,
    )


def _call_items(step: SessionMessage, turn: Assistant, way: Way) -> Iterator[CallItem]:
    for call, state, result in way.calls(step, turn):
        yield CallItem(
            id=call.id,
            name=call.name,
            arguments=call.arguments,
            state=state,
            result=None if result is None else text_of(result),
            parts=() if result is None else parts_of(result),
        )


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


# -------------------------------------------------------------------- messages


def role_of(message: Message) -> Role:
    match message:
        case System():
            return "system"
        case User():
            return "user"
        case Assistant():
            return "assistant"
        case ToolOutput():
            return "tool"
        case unreachable:
            assert_never(unreachable)


def text_of(message: Message) -> str:
    """Its texts; an answer's, that came in one stream, are one."""
    between = "" if isinstance(message, Assistant) else "\n\n"
    return between.join(part.text for part in message.parts if isinstance(part, Text))


def parts_of(message: Message) -> tuple[Part, ...]:
    return tuple(
        _image(part) if isinstance(part, Image) else OtherPart(str(part.data.get("type")))
        for part in message.parts
        if isinstance(part, Image) or (isinstance(part, Opaque) and not is_remark(part.data))
    )


def _image(image: Image) -> ImagePart:
    hash = hash_of(image)
    return ImagePart(url=image.url) if hash is None else ImagePart(hash)
