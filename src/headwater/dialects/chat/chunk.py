"""A chat completion chunk, or a whole completion, as upstreams write it.

Typed decoding of the few fields that we use; a lenient second reading for what
real servers get wrong. Raises `FrameUnreadable` for what is no chunk at all.
"""

from typing import Any

import msgspec
from msgspec import Struct

from headwater.dialects.lenient import count, load, mended, record, records, string
from headwater.errors import FrameUnreadable
from headwater.events import Usage


class Delta(Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


class Choice(Struct, gc=False):
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    index: int = 0
    usage: dict[str, Any] | None = None


class Chunk(Struct, gc=False):
    # Only what we use is named: an unnamed field is skipped at 20 ns, a dictionary of all costs 1 µs.
    choices: list[Choice] = []
    usage: dict[str, Any] | None = None
    error: Any = None
    object: str | None = None


read_chunk = msgspec.json.Decoder(Chunk).decode
"""Raises what msgspec raises, and then it is `read_lenient`'s turn."""


def read_lenient(data: bytes) -> Chunk:
    """What msgspec did not take. `content` may hold halves of characters."""
    loaded = load(data)
    if not isinstance(loaded, dict):
        raise FrameUnreadable("JSON that is no object", data)
    return Chunk(
        [_lenient_choice(choice) for choice in records(loaded.get("choices"))],
        record(loaded.get("usage")),
        loaded.get("error"),
        string(loaded.get("object")),
    )


def _lenient_choice(choice: dict[str, Any]) -> Choice:
    delta = record(choice.get("delta")) or record(choice.get("message")) or {}
    content = delta.get("content")
    thinking = delta.get("reasoning_content")
    if isinstance(content, list):
        # Mistral's parts: tests/wire/chat/lenient_parts.sse
        parts = records(content)
        content = "".join(string(part.get("text")) for part in parts if part.get("type") == "text")
        thinking = "".join(detail_text(part) for part in parts if part.get("type") == "thinking")
    return Choice(
        Delta(
            string(content),
            mended(string(thinking)),
            mended(string(delta.get("reasoning"))),
            records(delta.get("reasoning_details")),
            mended(string(delta.get("refusal"))),
            records(delta.get("tool_calls")),
        ),
        finish_reason=string(choice.get("finish_reason")),
        index=index if isinstance(index := choice.get("index"), int) else 0,
        usage=record(choice.get("usage")),
    )


# ------------------------------------------------------------ reasoning details


def detail_text(detail: dict[str, Any]) -> str:
    """What a person can read of one."""
    text = detail.get("text") or detail.get("summary") or detail.get("thinking")
    if isinstance(text, list):
        return "".join(detail_text(part) for part in records(text))
    return mended(string(text))


def join_details(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fragments of the same detail as one: OpenRouter wants them back whole."""
    joined: list[dict[str, Any]] = []
    for detail in details:
        last = joined[-1] if joined else {}
        if (last.get("type"), last.get("index")) != (detail.get("type"), detail.get("index")):
            joined.append(dict(detail))
            continue
        for key, value in detail.items():
            if key in ("text", "summary", "data") and isinstance(value, str):
                last[key] = string(last.get(key)) + value
            elif value is not None:
                last[key] = value
    return joined


# ----------------------------------------------------------------------- usage


def read_usage(usage: dict[str, Any]) -> Usage:
    prompt = record(usage.get("prompt_tokens_details")) or {}
    completion = record(usage.get("completion_tokens_details")) or {}
    # DeepSeek's name for it: tests/wire/chat/usage_cache_hit.sse
    cached = prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    read, written = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    return Usage(
        read,
        written,
        count(cached),
        count(completion.get("reasoning_tokens")),
        "unknown" if read is None and written is None else "provider",
    )
