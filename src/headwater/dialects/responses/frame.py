"""A frame of a Responses stream, and its usage, as upstreams write them.

Typed decoding of the few fields that we use; a lenient second reading for what
real servers get wrong. Raises `FrameUnreadable` for what is no frame at all.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from headwater.dialects.lenient import count, json_text, load, mended_all, object_or_none, string
from headwater.errors import FrameUnreadable
from headwater.events import Usage


class StreamEvent(Struct, gc=False):
    # Only what we use is named: an unnamed field is skipped at 20 ns.
    type: str = ""
    delta: str = ""
    output_index: int | None = None
    content_index: int = 0
    summary_index: int = 0
    item_id: str = ""
    text: str = ""
    refusal: str = ""
    arguments: str = ""
    name: str = ""
    item: dict[str, Any] | None = None
    part: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    error: Any = None
    object: str = ""

    @property
    def key(self) -> int | str:
        """Which item it is about."""
        # Without an index: tests/wire/responses/no_output_index.sse
        return self.item_id if self.output_index is None else self.output_index


read_event = msgspec.json.Decoder(StreamEvent).decode
"""Raises what msgspec raises, and then it is `read_lenient`'s turn."""


def read_lenient(data: bytes) -> StreamEvent:
    """What msgspec did not take. `delta` may hold halves of characters."""
    raw = load(data)
    if not isinstance(raw, dict):
        raise FrameUnreadable("JSON that is no object", data)
    loaded = mended_all(raw)
    return StreamEvent(
        string(loaded.get("type")),
        string(raw.get("delta")),
        count(loaded.get("output_index")),
        count(loaded.get("content_index")) or 0,
        count(loaded.get("summary_index")) or 0,
        string(loaded.get("item_id")),
        string(loaded.get("text")),
        string(loaded.get("refusal")),
        json_text(loaded.get("arguments")),
        string(loaded.get("name")),
        object_or_none(loaded.get("item")),
        object_or_none(loaded.get("part")),
        object_or_none(loaded.get("response")),
        loaded.get("error"),
        string(loaded.get("object")),
    )


def read_usage(usage: dict[str, Any]) -> Usage:
    read, written = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    cached = object_or_none(usage.get("input_tokens_details")) or {}
    return Usage(
        read,
        written,
        count(cached.get("cached_tokens")),
        count((object_or_none(usage.get("output_tokens_details")) or {}).get("reasoning_tokens")),
        "unknown" if read is None and written is None else "provider",
        count(cached.get("cache_write_tokens")),
    )


COUNTED: Final = {
    "input_tokens": (),
    "output_tokens": (),
    "total_tokens": (),
    "input_tokens_details": ("cached_tokens", "cache_write_tokens"),
    "output_tokens_details": ("reasoning_tokens",),
}
"""What `read_usage` has a place for."""
