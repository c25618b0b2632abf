"""What comes while a call's block is open and is no part of it: it waits, in order, each call put together on the way.

Takes the same time for every event, however many wait.
"""

import re
from collections import deque
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from headwater.dialects.messages.write import is_object
from headwater.events import Event, ReasoningDelta, TextDelta, ToolArgsDelta, ToolCallEnded, ToolCallStarted

_OUTSIDE: Final = re.compile(r'["{}\[\]]')
_INSIDE: Final = re.compile(r'["\\]')


class HeldCall(Struct):
    started: ToolCallStarted
    arguments: list[str] = field(default_factory=list)
    ended: bool = False


class Held:
    def __init__(self) -> None:
        self._waiting: deque[Event | HeldCall] = deque()
        self._calls: dict[int, HeldCall] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, index: int) -> bool:
        """The call with this index waits."""
        return index in self._calls

    def add(self, event: Event) -> None:
        match event:
            case ToolCallStarted(index=index):
                self._calls[index] = call = HeldCall(event)
                self._waiting.append(call)
            case ToolArgsDelta(index=index, text=text):
                self._calls[index].arguments.append(text)
            case ToolCallEnded(index=index):
                if index in self._calls:
                    self._calls[index].ended = True
            case _:
                self._waiting.append(event)

    def take(self) -> Event | HeldCall | None:
        """The first one, which waits no longer."""
        if not self._waiting:
            return None
        first = self._waiting.popleft()
        if isinstance(first, HeldCall):
            del self._calls[first.started.index]
        return first

    def words(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Of all that waits, what a person can read."""
        return (item for item in self._waiting if isinstance(item, TextDelta | ReasoningDelta))


class Arguments:
    """A call's arguments so far; tells when they can't be gone on with. Looks at each character once."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._scanned = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._whole: bool | None = None

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def are_whole(self) -> bool:
        """They are an object by now."""
        while self._whole is None and self._scanned < len(self._pieces):
            if self._scan(self._pieces[self._scanned]):
                self._whole = is_object("".join(self._pieces))
            self._scanned += 1
        return self._whole or False

    def _scan(self, text: str) -> bool:
        """True: the first bracket has been closed."""
        at = 1 if self._escaped else 0
        self._escaped = False
        while match := (_INSIDE if self._in_string else _OUTSIDE).search(text, at):
            at = match.end()
            match match[0]:
                case '"':
                    self._in_string = not self._in_string
                case "\\":
                    self._escaped = at == len(text)
                    at += 1
                case "{" | "[":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    if self._depth <= 0:
                        return True
        return False
