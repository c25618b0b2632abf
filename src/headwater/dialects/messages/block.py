"""One content block of an answer, as it comes in: begun whole or empty, then grown, then ended.

Each kind says what it brings at each of these three. What only this dialect
understands leaves as `ProviderState`, once it is whole.
"""

import json
from typing import Any, Final, Protocol

from headwater.dialects.lenient import Halves, load_object, mended, mended_all, objects, string
from headwater.dialects.messages.stream import Delta
from headwater.events import (
    Event,
    ProviderState,
    ReasoningDelta,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
)

# Ours, in an opaque item's `type`: no block of the dialect's own, and known to our writers only.
CITATIONS: Final = "headwater.citations"

_CALL_FIELDS: Final = frozenset({"type", "id", "name", "input"})
_DIRECT: Final = {"caller": {"type": "direct"}}


class Block(Protocol):
    name: str
    """For a person: the block that was never ended."""

    @property
    def seam(self) -> ProviderState | None:
        """What keeps it apart from a block of the same kind after it, if nothing does yet."""

    def grow(self, delta: Delta, data: bytes, out: list[Event]) -> None:
        """`data` is the frame that brought the delta."""

    def end(self, out: list[Event]) -> None: ...


class TextBlock:
    name = "text"

    def __init__(self, block: dict[str, Any], out: list[Event]) -> None:
        # tests/wire/messages/lenient_surrogates.sse
        self._halves = Halves()
        self._citations = objects(block.get("citations"))
        self._cited = isinstance(block.get("citations"), list)
        self._said = False
        self._say(string(block.get("text")), out)

    def grow(self, delta: Delta, data: bytes, out: list[Event]) -> None:
        if delta.text:
            self._say(delta.text, out)
        elif delta.citation is not None:
            self._citations.append(delta.citation)

    def end(self, out: list[Event]) -> None:
        if rest := self._halves.rest():
            out.append(TextDelta(rest))
        if self._cited or self._citations:
            out.append(_cites(self._citations))
            self._said = False

    @property
    def flows(self) -> bool:
        """Something was said, and nothing waits for what is next: a text more changes nothing here."""
        return self._said and not self._halves.half

    @property
    def seam(self) -> ProviderState | None:
        # What the next one cites is not for this one: tests/wire/messages/cited_after_uncited.sse
        return _cites([]) if self._said else None

    def _say(self, text: str, out: list[Event]) -> None:
        if text := self._halves.join(text):
            self._said = True
            out.append(TextDelta(text))


def _cites(citations: list[dict[str, Any]]) -> ProviderState:
    return ProviderState("messages", {"type": CITATIONS, "citations": citations})


class ThinkingBlock:
    name = "thinking"

    def __init__(self, block: dict[str, Any], out: list[Event]) -> None:
        self._halves = Halves()
        self._signature = string(block.get("signature"))
        self._thought = False
        self._think(string(block.get("thinking")), out)

    def grow(self, delta: Delta, data: bytes, out: list[Event]) -> None:
        if delta.thinking:
            self._think(delta.thinking, out)
        elif delta.signature:
            self._signature = mended(delta.signature)

    def end(self, out: list[Event]) -> None:
        if rest := self._halves.rest():
            out.append(ReasoningDelta(rest))
        if self._signature:
            out.append(_signed(self._signature))

    @property
    def seam(self) -> ProviderState | None:
        # Else a seal that comes next would be taken for this one's: tests/wire/messages/redacted_after_unsigned.sse
        return _signed("") if self._thought and not self._signature else None

    def _think(self, text: str, out: list[Event]) -> None:
        if text := self._halves.join(text):
            self._thought = True
            out.append(ReasoningDelta(text))


def _signed(signature: str) -> ProviderState:
    return ProviderState("messages", {"signature": signature}, of="reasoning")


class RedactedBlock:
    name = "redacted_thinking"
    seam = None

    def __init__(self, block: dict[str, Any]) -> None:
        self._data = string(block.get("data"))

    def grow(self, delta: Delta, data: bytes, out: list[Event]) -> None:
        """It comes whole."""

    def end(self, out: list[Event]) -> None:
        if self._data:
            out.append(ProviderState("messages", {"data": self._data}, of="reasoning"))


class CallBlock:
    name = "tool_use"
    seam = None

    def __init__(self, block: dict[str, Any], index: int, id: str, out: list[Event]) -> None:
        self._index = index
        self._begun = False
        self._halves = Halves()
        whole = block.get("input")
        self._whole = json.dumps(whole, ensure_ascii=False) if whole else ""
        """The arguments, of an upstream that sends them at once: tests/wire/messages/call_whole_input.sse"""
        extra = {key: value for key, value in block.items() if key not in _CALL_FIELDS and {key: value} != _DIRECT}
        out.append(ToolCallStarted(index, id, string(block.get("name")), extra or None))

    def grow(self, delta: Delta, data: bytes, out: list[Event]) -> None:
        if delta.partial_json:
            self._begun = True
            if text := self._halves.join(delta.partial_json):
                out.append(ToolArgsDelta(self._index, text))

    def end(self, out: list[Event]) -> None:
        if not self._begun:
            # No arguments are none, not torn ones: tests/wire/messages/call_no_arguments.sse
            out.append(ToolArgsDelta(self._index, self._whole or "{}"))
        if rest := self._halves.rest():
            out.append(ToolArgsDelta(self._index, rest))
        out.append(ToolCallEnded(self._index))


class OpaqueBlock:
    """A hosted tool's call or result, or what was not known when this was written."""

    seam = None

    def __init__(self, block: dict[str, Any]) -> None:
        self.name = string(block.get("type"))
        self._block = dict(block)
        self._json: list[str] = []
        self._texts: dict[str, list[str]] = {}

    def grow(self, delta: Delta, data: bytes, out: list[Event]) -> None:
        if delta.partial_json:
            self._json.append(delta.partial_json)
        # Read again, since a delta of an unknown kind has fields of an unknown name.
        for key, value in mended_all(load_object(data)["delta"]).items():
            if key in ("type", "partial_json"):
                continue
            if isinstance(value, str) and isinstance(before := self._block.get(key), str):
                self._texts.setdefault(key, [before]).append(value)
            else:
                self._block[key] = value

    def end(self, out: list[Event]) -> None:
        self._block |= {key: "".join(pieces) for key, pieces in self._texts.items()}
        if self._json:
            self._block["input"] = mended_all(load_object(mended("".join(self._json)).encode()))
        out.append(ProviderState("messages", self._block))
