"""A Messages stream event, or a whole message, as upstreams write it.

Typed decoding of the few fields that we use; a lenient second reading for what
real servers get wrong. Raises `FrameUnreadable` for what is no event at all.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from headwater.dialects.lenient import count, load_object, mended, mended_all, object_or_none, string
from headwater.events import Usage
from headwater.judge import ErrorObject, read_error


class Delta(Struct, gc=False):
    """Of a block, or of the message: each has its own few of these."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    citation: dict[str, Any] | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: dict[str, Any] | None = None


class StreamEvent(Struct, gc=False):
    # Only what we use is named: an unnamed field is skipped at 20 ns, a dictionary of all costs 1 µs.
    type: str = ""
    index: int = 0
    delta: Delta | None = None
    content_block: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


read_event = msgspec.json.Decoder(StreamEvent).decode
"""Raises what msgspec raises, and then it is `read_lenient`'s turn."""


def read_lenient(data: bytes) -> StreamEvent:
    """What msgspec did not take. Strings may hold halves of characters."""
    loaded = load_object(data)
    delta = object_or_none(loaded.get("delta"))
    return StreamEvent(
        string(loaded.get("type")),
        index if isinstance(index := loaded.get("index"), int) else 0,
        None if delta is None else _lenient_delta(delta),
        object_or_none(mended_all(loaded.get("content_block"))),
        object_or_none(loaded.get("message")),
        object_or_none(loaded.get("usage")),
        mended_all(loaded.get("error")),
    )


def _lenient_delta(delta: dict[str, Any]) -> Delta:
    return Delta(
        string(delta.get("type")),
        string(delta.get("text")),
        string(delta.get("thinking")),
        string(delta.get("signature")),
        string(delta.get("partial_json")),
        object_or_none(mended_all(delta.get("citation"))),
        string(delta.get("stop_reason")),
        mended(sequence) if isinstance(sequence := delta.get("stop_sequence"), str) else None,
        object_or_none(mended_all(delta.get("stop_details"))),
    )


# ---------------------------------------------------------------------- errors

# An error inside a stream has a type where an answer of its own would have had a status.
_STATUS: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def read_stream_error(error: Any) -> ErrorObject:
    found = read_error(error)
    if found.status is not None:
        return found
    return ErrorObject(found.message, found.code, _STATUS.get(found.code or ""))


# ----------------------------------------------------------------------- usage


_COUNTED: Final = frozenset(
    {
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "output_tokens_details",
    }
)


def usage_details(usage: dict[str, Any]) -> dict[str, Any]:
    """What `read_usage` has no place for: the tier, the hosted tools' use, how long what was cached will live."""
    return {name: mended_all(value) for name, value in usage.items() if name not in _COUNTED}


def read_usage(usage: dict[str, Any]) -> Usage:
    """Of all reports so far, the later over the earlier. A count of 0 is no count: see `write_usage`."""
    fresh = count(usage.get("input_tokens"))
    cached = count(usage.get("cache_read_input_tokens"))
    cache_write = count(usage.get("cache_creation_input_tokens"))
    read = None if fresh is None else fresh + (cached or 0) + (cache_write or 0)
    written = count(usage.get("output_tokens"))
    details = object_or_none(usage.get("output_tokens_details")) or {}
    return Usage(
        read or None,
        written or None,
        cached,
        count(details.get("thinking_tokens")),
        "provider" if read or written else "unknown",
        cache_write,
    )


def write_usage(usage: Usage, details: dict[str, Any] | None = None) -> dict[str, Any]:
    """The first two are numbers in every client's types: where we know none, they are 0, which no real count is."""
    cached, cache_write = usage.cached_tokens, usage.cache_write_tokens
    counts = {
        "input_tokens": max(0, (usage.input_tokens or 0) - (cached or 0) - (cache_write or 0)),
        "output_tokens": usage.output_tokens or 0,
        "cache_creation_input_tokens": cache_write,
        "cache_read_input_tokens": cached,
    }
    written: dict[str, Any] = {name: tokens for name, tokens in counts.items() if tokens is not None}
    if usage.reasoning_tokens is not None:
        written["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return written | (details or {})
