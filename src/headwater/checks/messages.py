"""What Anthropic refuses a Messages request for."""

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final

from headwater.checks.complaints import NAME, Complaints, word

_FIELDS: Final = frozenset(
    [
        "model",
        "max_tokens",
        "messages",
        "system",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "metadata",
        "service_tier",
        "cache_control",
        "context_management",
        "inference_geo",
        "speed",
    ]
)
_BLOCK_FIELDS: Final = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
}
_USER: Final = frozenset({"text", "image", "document", "search_result", "tool_result"})
_THINKING: Final = ("thinking", "redacted_thinking")
_HOSTED: Final = frozenset({"server_tool_use", "mcp_tool_use"})
_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MARKS: Final = 4


def check_messages(body: dict[str, Any]) -> list[str]:
    complaints = Complaints()
    complaints.keys(body, _FIELDS, "")
    complaints.text(body.get("model"), "model")
    limit = body.get("max_tokens")
    complaints.that(isinstance(limit, int) and limit >= 1, "max_tokens", "must be a number, 1 or more")
    if "system" in body:
        for n, block in enumerate(_blocks(body["system"], "system", complaints)):
            complaints.that(block.get("type") == "text", f"system[{n}].type", "must be 'text'")
            _check_block(block, f"system[{n}]", complaints)
    messages = complaints.objects(body.get("messages"), "messages")
    turns = [
        (message.get("role"), _blocks(message.get("content"), f"messages[{n}].content", complaints))
        for n, message in enumerate(messages)
    ]
    _check_turns(turns, complaints)
    _check_calls(turns, complaints)
    tools = _check_tools(body, turns, complaints)
    _check_thinking(body, turns, complaints)
    complaints.number(body, "temperature", 0, 1)
    complaints.number(body, "top_p", 0, 1)
    sequences = body.get("stop_sequences") or []
    complaints.that(isinstance(sequences, list), "stop_sequences", "must be a list")
    for n, sequence in enumerate(sequences if isinstance(sequences, list) else ()):
        visible = isinstance(sequence, str) and bool(sequence.strip())
        complaints.that(visible, f"stop_sequences[{n}]", "must contain more than white space")
    marks = [*_marks(tools), *_marks(body.get("system")), *_marks([block for _, blocks in turns for block in blocks])]
    count = len(marks) + ("cache_control" in body)
    complaints.that(count <= _MARKS, "cache_control", f"at most {_MARKS} blocks may have one, not {count}")
    return complaints.found


def _blocks(content: Any, where: str, complaints: Complaints) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return complaints.objects(content, where)


def _marks(blocks: Any) -> Iterator[dict[str, Any]]:
    for block in (one for one in (blocks if isinstance(blocks, list) else ()) if isinstance(one, dict)):
        if "cache_control" in block:
            yield block
        if block.get("type") == "tool_result":
            yield from _marks(block.get("content"))


# ------------------------------------------------------------------------ turns

Turns = list[tuple[Any, list[dict[str, Any]]]]


def _check_turns(turns: Turns, complaints: Complaints) -> None:
    for n, (role, blocks) in enumerate(turns):
        expected = ("user", "assistant")[n % 2]
        complaints.that(role == expected, f"messages[{n}].role", f"must be {expected!r}, not {role!r}")
        for m, block in enumerate(blocks):
            where = f"messages[{n}].content[{m}]"
            kind = word(block.get("type"))
            if role == "user":
                complaints.that(kind in _USER, f"{where}.type", f"{kind!r} can't stand in a user's turn")
            else:
                complaints.that(kind not in _USER - {"text"}, f"{where}.type", f"{kind!r} can't stand here")
            _check_block(block, where, complaints)
        if role == "assistant" and blocks:
            _check_assistant(blocks, f"messages[{n}]", n == len(turns) - 1, complaints)


def _check_assistant(blocks: list[dict[str, Any]], where: str, last: bool, complaints: Complaints) -> None:
    kinds = [word(block.get("type")) for block in blocks]
    complaints.that(kinds[-1] not in _THINKING, where, "the final block can't be thinking")
    if any(kind in _THINKING for kind in kinds) and not _HOSTED.intersection(kinds):
        complaints.that(kinds[0] in _THINKING, where, "thinking must come first")
    text = blocks[-1].get("text")
    if last and isinstance(text, str):
        complaints.that(text == text.rstrip(), where, "final assistant content can't end with trailing white space")
    if not last:
        asked = {(block.get("type") == "mcp_tool_use", word(block.get("id"))) for block in blocks if _is_hosted(block)}
        answered = {
            (block.get("type") == "mcp_tool_result", word(block["tool_use_id"]))
            for block in blocks
            if "tool_use_id" in block
        }
        complaints.that(asked == answered, where, "hosted tool calls and their results must come together")


def _is_hosted(block: dict[str, Any]) -> bool:
    return word(block.get("type")) in _HOSTED


def _check_block(block: dict[str, Any], where: str, complaints: Complaints) -> None:
    kind = word(block.get("type"))
    complaints.that(not kind.startswith(("headwater.", "<")), f"{where}.type", "is no block's type")
    if kind in _BLOCK_FIELDS:
        complaints.keys(block, _BLOCK_FIELDS[kind], where)
    if "cache_control" in block:
        good = block["cache_control"] in ({"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"})
        complaints.that(good, f"{where}.cache_control", "is malformed")
    match kind:
        case "text":
            text = block.get("text")
            complaints.that(
                isinstance(text, str) and bool(text.strip()), where, "text must contain more than white space"
            )
        case "image":
            _check_source(block.get("source"), f"{where}.source", complaints)
        case "thinking":
            complaints.text(block.get("signature"), f"{where}.signature")
            complaints.that(isinstance(block.get("thinking"), str), f"{where}.thinking", "must be a text")
        case "redacted_thinking":
            complaints.text(block.get("data"), f"{where}.data")
        case "tool_use":
            good = isinstance(block.get("id"), str) and NAME.fullmatch(block["id"]) is not None
            complaints.that(good, f"{where}.id", "must match ^[a-zA-Z0-9_-]+$")
            complaints.name(block.get("name"), 128, f"{where}.name")
            complaints.object(block.get("input"), f"{where}.input")
        case "tool_result":
            _check_result(block, where, complaints)
        case _:
            """The provider's own, to be judged by it."""


def _check_source(source: Any, where: str, complaints: Complaints) -> None:
    match source:
        case {"type": "url", "url": str(url)}:
            complaints.that(url.startswith("https:"), where, "only https is fetched")
        case {"type": "base64", "media_type": str(media), "data": str(data)}:
            complaints.that(media in _IMAGES, f"{where}.media_type", f"unknown: {media!r}")
            try:
                empty = not base64.b64decode(data, validate=True)
            except binascii.Error:
                empty = True
            complaints.that(not empty, f"{where}.data", "is no base64, or empty")
        case _:
            complaints.that(False, where, "is no source")


def _check_result(block: dict[str, Any], where: str, complaints: Complaints) -> None:
    content = block.get("content", "")
    if isinstance(content, list):
        for n, part in enumerate(complaints.objects(content, f"{where}.content")):
            place = f"{where}.content[{n}]"
            kind = word(part.get("type"))
            complaints.that(kind in _USER - {"tool_result"}, f"{place}.type", f"{kind!r} can't stand here")
            complaints.that(kind == "text" or not block.get("is_error"), place, "must be text if it is an error")
            _check_block(part, place, complaints)
    else:
        complaints.that(isinstance(content, str), f"{where}.content", "must be text or blocks")
    complaints.that(bool(content) or not block.get("is_error"), where, "can't be empty if it is an error")


# ------------------------------------------------------------------------ calls


def _check_calls(turns: Turns, complaints: Complaints) -> None:
    seen: list[Any] = []
    asked: list[Any] = []
    for n, (role, blocks) in enumerate(turns):
        results = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        if role == "user":
            first = [word(block.get("type")) for block in blocks[: len(results)]]
            complaints.that(set(first) <= {"tool_result"}, f"messages[{n}]", "tool results must come first")
            complaints.that(
                sorted(map(str, results)) == sorted(map(str, asked)),
                f"messages[{n}]",
                f"the calls before it were {asked}, its results are of {results}",
            )
        asked = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
        seen += asked
    complaints.that(not asked, "messages", f"tool calls without a result right after them: {asked}")
    complaints.unique(seen, "messages", "ids of tool calls")


def _check_tools(body: dict[str, Any], turns: Turns, complaints: Complaints) -> list[dict[str, Any]]:
    if "tools" not in body:
        called = any(block.get("type") == "tool_use" for _, blocks in turns for block in blocks)
        complaints.that(not called, "tools", "must be defined where the messages use some")
        complaints.that("tool_choice" not in body, "tool_choice", "is only allowed when tools are provided")
        return []
    tools = complaints.objects(body["tools"], "tools")
    for n, tool in enumerate(tools):
        complaints.name(tool.get("name"), 128, f"tools[{n}].name")
        schema = tool.get("input_schema")
        good = isinstance(schema, dict) and schema.get("type") == "object"
        complaints.that(good, f"tools[{n}].input_schema.type", "must be 'object'")
    names = [tool.get("name") for tool in tools]
    complaints.unique(names, "tools", "names")
    choice = body.get("tool_choice", {"type": "auto"})
    if complaints.object(choice, "tool_choice"):
        kind = choice.get("type")
        complaints.that(kind in ("auto", "any", "tool", "none"), "tool_choice.type", f"unknown: {kind!r}")
        complaints.that(kind != "tool" or choice.get("name") in names, "tool_choice.name", "is not one of the tools")
    return tools


# --------------------------------------------------------------------- thinking


def _check_thinking(body: dict[str, Any], turns: Turns, complaints: Complaints) -> None:
    thinking = body.get("thinking", {"type": "disabled"})
    if not complaints.object(thinking, "thinking"):
        return
    kind = thinking.get("type")
    complaints.that(kind in ("enabled", "disabled", "adaptive", "between_tools"), "thinking.type", f"unknown: {kind!r}")
    if kind == "disabled":
        return
    complaints.that(body.get("temperature", 1) == 1, "temperature", "may only be 1 when thinking is on")
    top_p = body.get("top_p", 1)
    complaints.that(not isinstance(top_p, (int, float)) or top_p >= 0.95, "top_p", "must be 0.95 or more with thinking")
    complaints.that("top_k" not in body, "top_k", "must be unset when thinking is on")
    prefilled = bool(turns) and turns[-1][0] == "assistant"
    complaints.that(not prefilled, "messages", "can't end with the assistant's turn when thinking is on")
    forced = isinstance(body.get("tool_choice"), dict) and body["tool_choice"].get("type") in ("any", "tool")
    complaints.that(not forced, "thinking", "may not be on when tool_choice forces a tool")
    if kind != "enabled":
        return
    budget, limit = thinking.get("budget_tokens"), body.get("max_tokens")
    fits = isinstance(budget, int) and isinstance(limit, int) and 1024 <= budget < limit
    complaints.that(fits, "thinking.budget_tokens", "must be at least 1024 and less than max_tokens")
    if len(turns) > 1 and any(block.get("type") == "tool_result" for block in turns[-1][1]):
        opening = turns[-2][1][0].get("type") if turns[-2][1] else None
        complaints.that(opening in _THINKING, "messages", "the turn whose calls are answered must start with thinking")
