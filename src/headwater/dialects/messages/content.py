"""The content of a Messages request: blocks, as clients send them, into our parts and messages."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeVar, assert_never

import msgspec
from msgspec import Meta, Struct

from headwater.conversation import (
    Assistant,
    Cache,
    Image,
    Message,
    Opaque,
    Reasoning,
    System,
    Text,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects.messages.block import CITATIONS
from headwater.dialects.messages.write import IMAGE_TYPES
from headwater.dialects.parsing import convert, unsupported
from headwater.errors import CallerError

Role = Literal["user", "assistant", "system"]

_S = TypeVar("_S", bound=Struct)

# What only this dialect understands, and goes back to it as it came. Of an assistant's blocks that is true of every
# other type: it has sent them itself.
_OPAQUE_INPUT: Final = frozenset({"document", "search_result"})
_NOT_ASSISTANT: Final = frozenset({"tool_result", "image", "document", "search_result"})


# ---------------------------------------------------------------- wire types


class _Wire(Struct, forbid_unknown_fields=True):
    pass


class CacheControl(_Wire):
    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(_Wire):
    text: str
    type: Literal["text"]
    cache_control: CacheControl | None = None
    citations: list[dict[str, Any]] | None = None


class _Source(_Wire):
    type: Literal["base64", "url"]
    media_type: str | None = None
    data: str | None = None
    url: Annotated[str, Meta(pattern=r"^https?:")] | None = None


class _ImageBlock(_Wire):
    source: _Source
    type: Literal["image"]
    cache_control: CacheControl | None = None


class _ToolUse(_Wire):
    id: Annotated[str, Meta(min_length=1)]
    name: Annotated[str, Meta(min_length=1)]
    input: dict[str, Any]
    type: Literal["tool_use"]
    cache_control: CacheControl | None = None


class _ToolResult(_Wire):
    tool_use_id: Annotated[str, Meta(min_length=1)]
    type: Literal["tool_result"]
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = None
    cache_control: CacheControl | None = None


class _Thinking(_Wire):
    thinking: str
    type: Literal["thinking"]
    signature: str = ""


class _Redacted(_Wire):
    data: Annotated[str, Meta(min_length=1)]
    type: Literal["redacted_thinking"]


# ------------------------------------------------------------------- reading


def read_cache(control: CacheControl | None) -> Cache | None:
    return None if control is None else control.ttl or "5m"


def read_texts(content: str | list[TextBlock]) -> tuple[Text, ...]:
    """Of a system prompt."""
    if isinstance(content, str):
        return (Text(content),)
    if any(block.citations for block in content):
        raise unsupported("system.citations", "a system prompt cites nothing.")
    return tuple(Text(block.text, cache=read_cache(block.cache_control)) for block in content)


def read_message(role: Role, content: str | list[dict[str, Any]], path: str) -> list[Message]:
    """One turn; of a user, its tool results are messages of their own."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    paths = [path if isinstance(content, str) else f"{path}[{n}]" for n in range(len(blocks))]
    match role:
        case "system":
            texts = [convert(block, TextBlock, path) for block, path in zip(blocks, paths, strict=True)]
            return [System(read_texts(texts))]
        case "assistant":
            parts = (part for pair in zip(blocks, paths, strict=True) for part in _assistant_parts(*pair))
            return [Assistant(tuple(parts))]
        case "user":
            return _user_messages(blocks, paths)
        case unreachable:
            assert_never(unreachable)


def _user_messages(blocks: list[dict[str, Any]], paths: list[str]) -> list[Message]:
    messages: list[Message] = []
    said: list[Text | Image | Opaque] = []
    for block, path in zip(blocks, paths, strict=True):
        if block.get("type") == "tool_result":
            messages.append(_tool_output(convert(block, _ToolResult, path), path))
        else:
            said += _visible(block, path)
    # The results are the answer to the turn before, and come first: the dialect demands it.
    return [*messages, User(tuple(said))] if said or not messages else messages


def _tool_output(result: _ToolResult, path: str) -> ToolOutput:
    parts: tuple[Text | Image | Opaque, ...] = ()
    if isinstance(result.content, str):
        parts = (Text(result.content),) if result.content else ()
    elif result.content is not None:
        parts = tuple(
            part for n, block in enumerate(result.content) for part in _visible(block, f"{path}.content[{n}]")
        )
    return ToolOutput(result.tool_use_id, parts, result.is_error or False, read_cache(result.cache_control))


def _visible(block: dict[str, Any], path: str) -> Iterator[Text | Image | Opaque]:
    match block.get("type"):
        case "text":
            yield from _text(block, path)
        case "image":
            image = convert(block, _ImageBlock, path)
            yield Image(_url(image.source, path), cache=read_cache(image.cache_control))
        case str(kind) if kind in _OPAQUE_INPUT:
            yield Opaque("messages", block)
        case kind:
            raise _unknown(kind, path)


def _text(block: dict[str, Any], path: str) -> Iterator[Text | Opaque]:
    """With what it cites, which stands in its block here."""
    text = convert(block, TextBlock, path)
    yield Text(text.text, cache=read_cache(text.cache_control))
    if text.citations:
        yield Opaque("messages", {"type": CITATIONS, "citations": text.citations})


def _url(source: _Source, path: str) -> str:
    match source:
        case _Source(type="url", url=str(url)):
            return url
        case _Source(type="base64", media_type=str(media), data=str(data)) if media in IMAGE_TYPES:
            return f"data:{media};base64,{data}"
        case _Source(type="base64", media_type=str(), data=str()):
            message = f"'{path}.source.media_type' must be one of {', '.join(IMAGE_TYPES)}."
            raise CallerError(message, param=f"{path}.source.media_type")
        case _:
            message = f"'{path}.source' needs a 'url', or 'media_type' and 'data', as its type says."
            raise CallerError(message, param=f"{path}.source")


def _assistant_parts(block: dict[str, Any], path: str) -> Iterator[Text | Reasoning | ToolCall | Opaque]:
    match block.get("type"):
        case "text":
            yield from (part for part in _text(block, path) if not isinstance(part, Text) or part.text)
        case "thinking":
            yield _reasoning(convert(block, _Thinking, path))
        case "redacted_thinking":
            yield Reasoning("", "messages", {"data": convert(block, _Redacted, path).data})
        case "tool_use":
            yield _tool_call(block, path)
        case str(kind) if kind not in _NOT_ASSISTANT:
            yield Opaque("messages", block)
        case kind:
            raise _unknown(kind, path)


def _reasoning(block: _Thinking) -> Reasoning:
    """An empty signature is none: ours, of reasoning that another dialect's model wrote."""
    if not block.signature:
        return Reasoning(block.thinking)
    return Reasoning(block.thinking, "messages", {"signature": block.signature})


def _tool_call(block: dict[str, Any], path: str) -> ToolCall:
    """By hand, since a provider may have added fields of its own, which must go back to it."""
    known = {key: value for key, value in block.items() if key in _TOOL_USE_FIELDS}
    call = convert(known, _ToolUse, path)
    arguments = msgspec.json.encode(call.input).decode()
    extra = {key: value for key, value in block.items() if key not in _TOOL_USE_FIELDS and value is not None}
    if extra.get("caller") == {"type": "direct"}:
        # Says nothing: it is what a call is when nothing is said.
        del extra["caller"]
    return ToolCall(call.id, call.name, arguments, extra or None, read_cache(call.cache_control))


_TOOL_USE_FIELDS: Final = frozenset(_ToolUse.__struct_fields__)


def _unknown(kind: Any, path: str) -> CallerError:
    if not isinstance(kind, str):
        return CallerError(f"'{path}.type' is missing: every content block has one.", param=f"{path}.type")
    message = f"'{path}': a block of type '{kind}' can't be used here."
    return CallerError(message, code="unsupported_value", param=f"{path}.type")
