"""A conversation, as this dialect's provider takes it: a system prompt, and turns that alternate.

Turns of one role in a row become one; results come first in theirs; nothing is
blank; thinking goes back only where this dialect signed it. What is left out or
put otherwise is noted.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from headwater.conversation import (
    Assistant,
    Image,
    Opaque,
    Reasoning,
    Request,
    System,
    Target,
    Text,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects.base import STOP
from headwater.dialects.history import NOTHING_SAID, plain_name, settled
from headwater.dialects.messages.block import CITATIONS
from headwater.dialects.messages.write import (
    cached,
    call_block,
    image_block,
    redacted_block,
    text_block,
    thinking_block,
)

_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
MAX_NAME_CHARS: Final = 128
_SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
_THINKING: Final = ("thinking", "redacted_thinking")
CALL_EXTRAS: Final = ("caller", "toolset_name")
"""What a call may have besides: any other field is refused."""
_NO_OUTPUT: Final = "(no output)"
_NO_IMAGE: Final = "(An image was here that can't be shown to this model.)"

Block = dict[str, Any]


class Turn(Struct):
    role: Literal["user", "assistant"]
    blocks: list[Block] = field(default_factory=list)
    results: list[Block] = field(default_factory=list)

    @property
    def content(self) -> list[Block]:
        return self.results + self.blocks

    @property
    def opens_with_thinking(self) -> bool:
        return bool(self.blocks) and self.blocks[0]["type"] in _THINKING


class History(Struct):
    system: list[Block] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """The types of blocks that the provider would have refused where they stood."""

    def turn(self, role: Literal["user", "assistant"]) -> Turn:
        """The one to add to."""
        if not self.turns or self.turns[-1].role != role:
            self.turns.append(Turn(role))
        return self.turns[-1]


def write_history(request: Request, target: Target) -> History:
    history = History()
    declared = [tool.name for tool in request.tools]
    for message in settled(request.messages, lambda _, id: _ID.fullmatch(id) is not None):
        match message:
            case System(parts=parts):
                # A later one comes in front, too: it loses its place; as a user's it would lose its authority.
                history.system += [block for part in parts for block in _visible(part)]
            case User(parts=parts):
                history.turn("user").blocks += _all_visible(parts)
            case ToolOutput():
                _add_result(message, history)
            case Assistant():
                history.turn("assistant").blocks += _assistant(message, target, declared)
            case unreachable:
                assert_never(unreachable)
    _make_legal(history)
    return history


# ------------------------------------------------------------------------ parts


def _visible(part: Text | Image | Opaque) -> list[Block]:
    match part:
        case Text(text=text, cache=cache):
            return [cached(text_block(text), cache)] if text.strip() else []
        case Image(cache=cache):
            block = image_block(part)
            return [text_block(_NO_IMAGE)] if block is None else [cached(block, cache)]
        case Opaque(dialect="messages", data=data):
            return [data]
        case Opaque():
            return []
        case unreachable:
            assert_never(unreachable)


def _all_visible(parts: Sequence[Text | Image | Opaque]) -> list[Block]:
    blocks: list[Block] = []
    for n, part in enumerate(parts):
        if isinstance(part, Opaque) and part.data.get("type") == CITATIONS:
            _cite(blocks, parts[n - 1] if n else None, part)
        else:
            blocks += _visible(part)
    return blocks


def _cite(blocks: list[Block], before: object, citations: Opaque) -> None:
    """What a text cites comes after it; a blank one was not written."""
    if citations.data["citations"] and isinstance(before, Text) and before.text.strip():
        blocks[-1]["citations"] = citations.data["citations"]


def _add_result(output: ToolOutput, history: History) -> None:
    turn = history.turn("user")
    content = _all_visible(output.parts)
    result: Block = {"type": "tool_result", "tool_use_id": output.call_id}
    if output.is_error:
        # A failure is told in words, and in some: its images follow the results.
        turn.blocks += [block for block in content if block["type"] != "text"]
        content = [block for block in content if block["type"] == "text"] or [text_block(_NO_OUTPUT)]
        result["is_error"] = True
    if content:
        result["content"] = content[0]["text"] if [*map(set, content)] == [{"type", "text"}] else content
    turn.results.append(cached(result, output.cache))


def _assistant(message: Assistant, target: Target, declared: list[str]) -> list[Block]:
    blocks: list[Block] = []
    ours = message.origin in (None, target.origin)
    for n, part in enumerate(message.parts):
        match part:
            case Text(text=text, cache=cache):
                if text.strip():
                    blocks.append(cached(text_block(text), cache))
            case Reasoning(text=text, dialect="messages", state={"signature": str(signature)}) if signature and ours:
                blocks.append(thinking_block(text, signature))
            case Reasoning(dialect="messages", state={"data": data}) if ours:
                blocks.append(redacted_block(data))
            case Reasoning():
                # It was not this provider who signed it: it would not believe that it is its own.
                pass
            case ToolCall(cache=cache, extra=extra):
                named = call_block(replace(part, name=plain_name(part.name, declared, MAX_NAME_CHARS)))
                if extra and ours:
                    named |= {key: extra[key] for key in CALL_EXTRAS if key in extra}
                blocks.append(cached(named, cache))
            case Opaque(dialect="messages", data={"type": str(type)} as data) if type not in (STOP, CITATIONS):
                blocks.append(data)
            case Opaque(dialect="messages", data={"citations": _}):
                _cite(blocks, message.parts[n - 1] if n else None, part)
            case Opaque():
                # Another dialect's, or of how an answer ended: neither is part of what was said.
                pass
            case unreachable:
                assert_never(unreachable)
    return blocks


# --------------------------------------------------------------------- legality


def _make_legal(history: History) -> None:
    _merge(history)
    for turn in history.turns:
        if turn.role == "assistant":
            last = turn is history.turns[-1]
            given = turn.blocks
            turn.blocks = _thinking_first(given if last else _without_unanswered(given))
            sent = {id(block) for block in turn.blocks}
            history.left_out += [str(block["type"]) for block in given if id(block) not in sent]
    # Again, since a turn may have had nothing but what can't be sent.
    _merge(history)
    if not history.turns or history.turns[0].role == "assistant":
        history.turns.insert(0, Turn("user", [text_block(NOTHING_SAID)]))
    last_block = history.turns[-1].content[-1]
    if history.turns[-1].role == "assistant" and last_block["type"] == "text":
        last_block["text"] = last_block["text"].rstrip()


def _merge(history: History) -> None:
    turns, history.turns = history.turns, []
    for turn in turns:
        if turn.content:
            merged = history.turn(turn.role)
            merged.blocks += turn.blocks
            merged.results += turn.results


def _thinking_first(blocks: list[Block]) -> list[Block]:
    """Thinking opens a turn and never closes it. The provider's own tools make it think in between, as it may."""
    while blocks and blocks[-1]["type"] in _THINKING:
        blocks = blocks[:-1]
    starts_so = bool(blocks) and blocks[0]["type"] in _THINKING
    if starts_so or any(block["type"] in _SERVER_CALLS for block in blocks):
        return blocks
    return sorted(blocks, key=lambda block: block["type"] not in _THINKING)


def _without_unanswered(blocks: list[Block]) -> list[Block]:
    """Calls of the provider's own tools whose result never came, and results whose call is gone."""
    asked = {_id(block, "id") for block in blocks if block["type"] in _SERVER_CALLS} - {None}
    answered = {_id(block, "tool_use_id") for block in blocks} - {None}
    return [
        block
        for block in blocks
        if (block["type"] not in _SERVER_CALLS or _id(block, "id") in answered)
        and ("tool_use_id" not in block or _id(block, "tool_use_id") in asked)
    ]


def _id(block: Block, name: str) -> str | None:
    """A client, or an upstream, may have put anything there."""
    given = block.get(name)
    return given if isinstance(given, str) else None


def limit_marks(tools: list[Block], history: History, marks: int) -> None:
    """At most so many cache marks: those of the tools and the system, and the last of the conversation, which grows."""
    marks = _keep_marks(history.system, _keep_marks(tools, marks))
    for turn in reversed(history.turns):
        marks = _keep_marks(turn.results, _keep_marks(turn.blocks, marks))


def _keep_marks(blocks: list[Block], marks: int) -> int:
    """From the last one back; how many are left to give."""
    for n in reversed(range(len(blocks))):
        block = blocks[n]
        if "cache_control" in block:
            if marks == 0:
                # Never in place: a block may be the stored conversation's own.
                blocks[n] = {key: value for key, value in block.items() if key != "cache_control"}
            else:
                marks -= 1
        if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            marks = _keep_marks(block["content"], marks)
    return marks
