"""Content blocks as this dialect writes them, in an answer and in a history alike."""

import base64
import binascii
import re
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import msgspec

from headwater.conversation import Cache, Image, ToolCall

IMAGE_TYPES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_OTHER_NAMES: Final = {"image/jpg": "image/jpeg"}
_DATA_URL: Final = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),(.*)", re.DOTALL)


def cached(block: dict[str, Any], cache: Cache | None) -> dict[str, Any]:
    """The block, with its mark if it has one."""
    if cache is None:
        return block
    mark = {"type": "ephemeral"} if cache == "5m" else {"type": "ephemeral", "ttl": cache}
    return {**block, "cache_control": mark}


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def thinking_block(text: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def redacted_block(data: Any) -> dict[str, Any]:
    return {"type": "redacted_thinking", "data": data}


def call_block(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call_input(call.arguments)}


def call_input(arguments: str) -> Any:
    """An object, which is all that the dialect allows. What the model wrote as anything else is told as it was."""
    if not arguments.strip():
        return {}
    if is_object(arguments):
        # As the model wrote it: no number is rounded, no key lost.
        return msgspec.Raw(arguments.encode())
    # The provider's own advice for arguments that are not valid JSON.
    return {"INVALID_JSON": arguments}


def is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def image_block(image: Image) -> dict[str, Any] | None:
    """None if it is of a kind that the dialect can't show."""
    if image.url.startswith("https:"):
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    match = _DATA_URL.fullmatch(image.url)
    media = _OTHER_NAMES.get(match[1].lower(), match[1].lower()) if match is not None else ""
    if match is None or media not in IMAGE_TYPES:
        return None
    try:
        content = unquote_to_bytes(match[3])
        if match[2].endswith(";base64"):
            content = base64.b64decode(content, validate=True)
    except binascii.Error:
        return None
    source = {"type": "base64", "media_type": media, "data": base64.b64encode(content).decode()}
    return {"type": "image", "source": source} if content else None
