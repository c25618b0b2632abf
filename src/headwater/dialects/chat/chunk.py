"""A chat completion chunk, or a whole completion, as upstreams write it.

Typed decoding of the few fields that we use; a lenient second reading for what
real servers get wrong. Raises `FrameUnreadable` for what is no chunk at all.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from headwater.dialects.lenient import count, load_object, mended, mended_all, object_or_none, objects, string
from headwater.events import Usage


class Delta(Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    annotations: list[dict[str, Any]] | None = None
    images: list[dict[str, Any]] | None = None


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
    service_tier: str | None = None


read_chunk = msgspec.json.Decoder(Chunk).decode
"""Raises what msgspec raises, and then it is `read_lenient`'s turn."""


def lone_text(chunk: Chunk) -> str | None:
    """The text of a chunk that brings nothing else, but for its tier: some servers repeat that on every chunk."""
    if len(chunk.choices) != 1 or chunk.usage or chunk.error:
        return None
    choice = chunk.choices[0]
    delta = choice.delta
    if delta is None or choice.finish_reason or choice.index or choice.message is not None or choice.usage:
        return None
    if delta.tool_calls or delta.reasoning_content or delta.reasoning or delta.reasoning_details or delta.refusal:
        return None
    return None if delta.annotations or delta.images else delta.content


def read_lenient(data: bytes) -> Chunk:
    """What msgspec did not take. Streamed text may hold halves of characters."""
    loaded = load_object(data)
    return Chunk(
        [_lenient_choice(choice) for choice in objects(loaded.get("choices"))],
        object_or_none(loaded.get("usage")),
        mended_all(loaded.get("error")),
        mended(string(loaded.get("object"))),
        mended(string(loaded.get("service_tier"))),
    )


def _lenient_choice(choice: dict[str, Any]) -> Choice:
    delta = object_or_none(choice.get("delta"))
    message = object_or_none(choice.get("message"))
    return Choice(
        None if delta is None else _lenient_delta(delta),
        None if message is None else _lenient_delta(message),
        mended(string(choice.get("finish_reason"))),
        index if isinstance(index := choice.get("index"), int) else 0,
        object_or_none(choice.get("usage")),
    )


def _lenient_delta(delta: dict[str, Any]) -> Delta:
    content = delta.get("content")
    thinking = _plain(delta.get("reasoning_content"))
    if isinstance(content, list):
        # Mistral's parts, and others': tests/wire/chat/lenient_parts.sse, lenient_parts_other.sse
        parts = [part if isinstance(part, dict) else {"text": part} for part in content]
        thinking = "".join(detail_text(part) for part in parts if part.get("type") == "thinking") or thinking
        content = "".join(_plain(part.get("text")) for part in parts if part.get("type") != "thinking")
    return Delta(
        _plain(content),
        thinking,
        _plain(delta.get("reasoning")),
        mended_all(objects(delta.get("reasoning_details"))),
        _plain(delta.get("refusal")),
        objects(delta.get("tool_calls")),
        mended_all(objects(delta.get("annotations"))),
        mended_all(objects(delta.get("images"))),
    )


def _plain(value: Any) -> str:
    """Text, or what reads as such; what else there is, is no answer."""
    return "" if isinstance(value, dict | list) else string(value)


# ------------------------------------------------------------ reasoning details


def detail_text(detail: dict[str, Any]) -> str:
    """What a person can read of one."""
    text = detail.get("text") or detail.get("summary") or detail.get("thinking")
    if isinstance(text, list):
        text = "".join(_plain(part.get("text")) for part in objects(text))
    return mended(_plain(text))


def join_details(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fragments of the same detail as one: OpenRouter wants them back whole."""
    joined: list[dict[str, Any]] = []
    texts: list[dict[str, list[str]]] = []
    for detail in details:
        if not joined or not _goes_on(joined[-1], detail):
            joined.append({})
            texts.append({})
        for name, value in detail.items():
            if name in ("text", "summary") and isinstance(value, str):
                texts[-1].setdefault(name, []).append(value)
            elif value is not None:
                joined[-1][name] = value
    return [
        detail | {name: "".join(pieces) for name, pieces in said.items()}
        for detail, said in zip(joined, texts, strict=True)
    ]


def _goes_on(last: dict[str, Any], detail: dict[str, Any]) -> bool:
    """A seal (`data`) is never in pieces; without an index nothing says that two belong together."""
    same = detail.get("index") is not None and all(last.get(name) == detail.get(name) for name in ("index", "type"))
    return same and "data" not in detail and detail.get("id") in (None, last.get("id"))


# ----------------------------------------------------------------------- usage


def read_usage(usage: dict[str, Any]) -> Usage:
    read, written = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    # DeepSeek's name for it: tests/wire/chat/usage_cache_hit.sse
    cached, kept, thought = usage.get("prompt_cache_hit_tokens"), None, None
    if isinstance(prompt := usage.get("prompt_tokens_details"), dict):
        cached = prompt.get("cached_tokens", cached)
        kept = count(prompt.get("cache_write_tokens"))
    if isinstance(completion := usage.get("completion_tokens_details"), dict):
        thought = count(completion.get("reasoning_tokens"))
    known = read is not None or written is not None
    return Usage(read, written, count(cached), thought, "provider" if known else "unknown", kept)


COUNTED: Final = {
    "prompt_tokens": (),
    "completion_tokens": (),
    "total_tokens": (),
    "prompt_cache_hit_tokens": (),
    "prompt_tokens_details": ("cached_tokens", "cache_write_tokens"),
    "completion_tokens_details": ("reasoning_tokens",),
}
"""What `read_usage` has a place for."""
