"""What every writer does. They are written by what the providers send, not with `headwater.dialects`:
a mistake that reader and writer shared would be seen by nobody.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Protocol

from headwater.simulate.said import Said
from headwater.simulate.script import StreamError

Part = Literal["start", "reasoning", "text", "frame", "arguments", "finish", "usage", "terminator", "ending"]
"""`frame` is what stands around the rest. `ending` is finish and terminator in one."""


class Piece(NamedTuple):
    part: Part
    data: bytes


class Writer(Protocol):
    def stream(self) -> Iterator[Piece]:
        """The answer, frame by frame."""

    def token(self, text: str) -> bytes:
        """One more token of text, wherever the stream is just now."""

    def error(self, fault: StreamError) -> bytes: ...

    def keep_alive(self) -> bytes: ...

    def whole(self) -> dict[str, Any]:
        """The answer in one piece."""


class MakeWriter(Protocol):
    def __call__(self, said: Said) -> Writer: ...
