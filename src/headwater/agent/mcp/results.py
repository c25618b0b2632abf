"""What a tool of an MCP server has returned, in our words. Pure."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, assert_never

import msgspec
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from headwater.agent.tools import Picture, Returned
from headwater.dialects.lenient import mended


def returned(result: CallToolResult) -> Returned:
    texts: list[str] = []
    pictures: list[Picture] = []
    for block in result.content:
        text, picture = _read(block)
        texts += [text] if text else []
        pictures += [picture] if picture is not None else []
    if not texts and not pictures and result.structured_content is not None:
        texts.append(_json(result.structured_content))
    text = mended("\n\n".join(texts))
    return Returned(text, "failed" if result.is_error else "done", tuple(pictures))


def _read(block: ContentBlock) -> tuple[str, Picture | None]:
    match block:
        case TextContent(text=text):
            return text, None
        case ImageContent(data=data, mime_type=kind):
            return _picture(data, kind, "An image")
        case AudioContent(mime_type=kind):
            return f"[A sound of type {kind} is left out: models take none.]", None
        case ResourceLink(uri=uri, name=name, description=about):
            return f"[A resource: {name}, at {uri}{f'. {about}' if about else ''}]", None
        case EmbeddedResource(resource=resource):
            return _resource(resource)
        case unreachable:
            assert_never(unreachable)


def _resource(resource: TextResourceContents | BlobResourceContents) -> tuple[str, Picture | None]:
    if isinstance(resource, TextResourceContents):
        return f"[{resource.uri}]\n{resource.text}", None
    kind = resource.mime_type or "unknown"
    if kind.startswith("image/"):
        return _picture(resource.blob, kind, str(resource.uri))
    return f"[{resource.uri}: {len(resource.blob) * 3 // 4} bytes of type {kind}, left out]", None


def _picture(data: str, kind: str, what: str) -> tuple[str, Picture | None]:
    try:
        return "", Picture(kind, base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return f"[{what} is left out: it is no base64.]", None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def words(error: BaseException) -> str:
    """What went wrong, of however many things that happened at once."""
    while isinstance(error, BaseExceptionGroup):
        error = _first(error.exceptions)
    return str(error).strip() or type(error).__name__


def _first(errors: Sequence[BaseException]) -> BaseException:
    return errors[0]
