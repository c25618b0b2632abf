"""Where a value stands: the path of its key, what brought it there, and what is wrong there."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple

from headwater.errors import Problem

Place = tuple[str | int, ...]
"""Names of keys and numbers of list items, from the top."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def dotted(place: Place) -> str:
    """As a person would write it: `models[0].name`."""
    out = ""
    for part in place:
        out += f"[{part}]" if isinstance(part, int) else f".{key_text(part)}"
    return out.removeprefix(".")


def key_text(name: str) -> str:
    """As TOML has it: quoted where it has to be."""
    return name if _BARE.fullmatch(name) else quoted(name)


def quoted(text: str) -> str:
    """As TOML has it: JSON's escapes are its own, but for one character that it wants escaped, too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


class Fault(NamedTuple):
    """What is wrong with a value, and what to do; the value itself is not repeated where it may be a secret."""

    what: str
    fix: str


class Origins:
    """What brought each value: a line of the file, a variable, a flag."""

    def __init__(self, whole: str, parts: Mapping[Place, str]) -> None:
        self._known = {(): whole, **parts}

    def note(self, place: Place, origin: str) -> None:
        """From now on the value at this place, and all below it, comes from there."""
        for known in [known for known in self._known if known[: len(place)] == place]:
            del self._known[known]
        self._known[place] = origin

    def of(self, place: Place) -> str:
        """A place without an origin of its own has that of what it is part of."""
        while place not in self._known:
            place = place[:-1]
        return self._known[place]


class Problems:
    """All that is wrong, one thing a place: what follows from an error is no error of its own."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._found: dict[Place, Problem] = {}
        self._unread: set[Place] = set()
        self.warnings: list[Problem] = []

    def add(self, place: Place, what: str, fix: str = "") -> None:
        hidden = place in self._found or any(place[:length] in self._unread for length in range(len(place)))
        if not hidden:
            self._found[place] = self._problem(place, what, fix)

    def add_unread(self, place: Place, what: str, fix: str = "") -> None:
        """The value is of the wrong kind, so that what would be below it is not there to be judged."""
        self.add(place, what, fix)
        self._unread.add(place)

    def warn(self, place: Place, what: str, fix: str) -> None:
        """Odd, but it may be meant."""
        self.warnings.append(self._problem(place, what, fix))

    def _problem(self, place: Place, what: str, fix: str) -> Problem:
        return Problem(self._origins.of(place), dotted(place), what, fix)

    def all(self) -> list[Problem]:
        return sorted(self._found.values(), key=_reading_order)


def _reading_order(problem: Problem) -> tuple[str, int]:
    """Line 9 before line 10."""
    name, _, line = problem.where.rpartition(":")
    return (name, int(line)) if line.isdecimal() else (problem.where, 0)


def closest(word: str, known: Iterable[str]) -> str | None:
    lowered = {name.lower(): name for name in known}
    return next((lowered[near] for near in get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)), None)


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A suggestion, or the choice if it is small."""
    near = closest(word, known)
    if near:
        return f"Did you mean {quoted(near)}?"
    return f"There is: {', '.join(sorted(known))}." if 0 < len(known) <= 12 else ""
