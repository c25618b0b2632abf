"""A session to take away: as JSON, which is all of it and can be read back, or as Markdown, to read. Pure.

JSON has every branch, Markdown the one that is shown. Neither has what is queued or running.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, Literal, assert_never

import msgspec
from msgspec import Struct

from headwater.events import Incomplete
from headwater.records import Session, SessionMessage, SessionNotice, Transcript
from headwater.sessions.titles import UNTITLED
from headwater.sessions.view import AnswerItem, CallItem, ImagePart, MessageItem, NoticeItem, Part, view

_SPEAKERS: Final = {"system": "System", "user": "You", "assistant": "Assistant", "tool": "Tool result"}
_CUT: Final = {
    "length": "This answer was cut at its limit of tokens.",
    "content_filter": "This answer was cut by the provider's filter.",
    "turn_limit": "This answer ended when all turns were used up.",
}
_FENCES: Final = re.compile(r"`{3,}")
_DETAILS: Final = re.compile(r"<(?=/?(details|summary)\b)", re.IGNORECASE)


class Exported(Struct, frozen=True, kw_only=True):
    format: Literal["headwater.session"] = "headwater.session"
    version: Literal[1] = 1
    session: Session
    messages: tuple[SessionMessage, ...]
    notices: tuple[SessionNotice, ...]


def to_json(transcript: Transcript) -> bytes:
    exported = Exported(session=transcript.session, messages=transcript.messages, notices=transcript.notices)
    return msgspec.json.format(msgspec.json.encode(exported), indent=2)


def from_json(data: bytes) -> Exported:
    return msgspec.json.decode(data, type=Exported)


# -------------------------------------------------------------------- markdown


def to_markdown(transcript: Transcript) -> str:
    session = transcript.session
    blocks = [f"# {session.title or UNTITLED}", f"*{_day(session.created_at)}*"]
    if session.parameters.system:
        blocks += ["## System", session.parameters.system]
    for item in view(transcript).items:
        match item:
            case NoticeItem(text=text):
                blocks.append(_quoted(text))
            case AnswerItem():
                blocks += _answer(item)
            case MessageItem():
                blocks += _message(item)
            case unreachable:
                assert_never(unreachable)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _message(item: MessageItem) -> Iterator[str]:
    yield f"## {_SPEAKERS[item.role]}"
    yield item.content
    yield from map(_part, item.parts)


def _answer(item: AnswerItem) -> Iterator[str]:
    yield f"## {_SPEAKERS['assistant']}" + (f" ({item.model})" if item.model else "")
    if item.reasoning:
        yield f"<details>\n<summary>Reasoning</summary>\n\n{_inside(item.reasoning)}\n\n</details>"
    yield item.content
    yield from map(_part, item.parts)
    for call in item.tool_calls:
        yield from _call(call)
    if isinstance(item.outcome, Incomplete):
        yield _quoted(_CUT[item.outcome.reason])


def _call(call: CallItem) -> Iterator[str]:
    yield f"**Tool call** {_code(call.name)} ({call.state})"
    if call.arguments:
        yield _fenced(call.arguments, "json")
    if call.result:
        yield _fenced(call.result)
    yield from map(_part, call.parts)


def _part(part: Part) -> str:
    if not isinstance(part, ImagePart):
        return f"*({part.name})*"
    if part.blob is not None:
        return f"![Image](blob:{part.blob})"
    url = part.url or ""
    # What is inline stays out: it can be megabytes, and JSON has it.
    return f"![Image]({url})" if not url.startswith("data:") else f"*(An image: {url[5:].partition(';')[0]})*"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _code(name: str) -> str:
    return f"`{name.replace('`', '')}`"


def _fenced(text: str, language: str = "") -> str:
    """By a fence that is longer than any in it."""
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCES.findall(text))])
    return f"{fence}{language}\n{text}\n{fence}"


def _inside(text: str) -> str:
    """It can't close the block that it is in."""
    return _DETAILS.sub("&lt;", text)
