"""What an agent can call, what a call gives, and the agreement with whoever offers tools.

Values, and pure functions of them. How a tool is reached is its `Toolbox`'s to know.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol

from msgspec import Struct, field

from headwater.conversation import Tool as Declared

_ODD: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_NAME_CHARS: Final = 64
"""What every provider takes."""


class Tool(Struct, frozen=True, kw_only=True):
    server: str
    name: str
    description: str | None = None
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    @property
    def full_name(self) -> str:
        """As `approve` names it."""
        return f"{self.server}.{self.name}"

    @property
    def called(self) -> str:
        """As the model names it: providers take no dots, and not many letters."""
        plain = _ODD.sub("_", f"{self.server}__{self.name}")
        if len(plain) <= _NAME_CHARS and plain == f"{self.server}__{self.name}":
            return plain
        # Told apart by what was lost.
        return f"{plain[: _NAME_CHARS - 9]}_{hashlib.sha256(self.full_name.encode()).hexdigest()[:8]}"

    def declared(self) -> Declared:
        return Declared(self.called, self.description, self.schema)


class Picture(Struct, frozen=True):
    media_type: str
    data: bytes


class Returned(Struct, frozen=True):
    """What came of a call. `unknown`: it was begun, and nothing says how it went."""

    text: str
    state: Literal["done", "failed", "unknown"] = "done"
    pictures: tuple[Picture, ...] = ()


class Offer(Struct, frozen=True):
    tools: tuple[Tool, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    """Servers whose tools can't be had, and why."""


Progress = Callable[[str, float | None, float | None], None]
"""Told what is done, how much of it, and of how much."""


class Toolbox(Protocol):
    async def offer(self) -> Offer:
        """All tools, as far as they can be had. Raises nothing but a cancel."""

    async def call(self, tool: Tool, arguments: dict[str, Any], progress: Progress) -> Returned:
        """Whatever goes wrong is what is returned. A cancel is passed on to the tool, as far as that is possible: one
        that answers all the same, within a moment, has returned; else the cancel comes out again."""


class Toolboxes:
    """Several as one."""

    def __init__(self, boxes: Mapping[str, Toolbox]) -> None:
        """By the name that its tools have for their `server`."""
        self._boxes = boxes

    async def offer(self) -> Offer:
        offers = await asyncio.gather(*(box.offer() for box in self._boxes.values()))
        missing = {name: why for offer in offers for name, why in offer.missing.items()}
        return Offer(tuple(tool for offer in offers for tool in offer.tools), missing)

    async def call(self, tool: Tool, arguments: dict[str, Any], progress: Progress) -> Returned:
        return await self._boxes[tool.server].call(tool, arguments, progress)


def shortened(text: str, limit_chars: int) -> str:
    if len(text) <= limit_chars:
        return text
    return f"{text[:limit_chars]}\n\n[Cut here: {len(text) - limit_chars} of {len(text)} characters are left out.]"
