"""On which line each key of a TOML text stands, since `tomllib` does not tell.

The text is known to be valid: it has been read before. So this looks only for where keys and values begin
and end, and understands no value.
"""

import re
import tomllib
from typing import Any, Final

from headwater.config.places import Place

_PART: Final = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_KEY: Final = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER: Final = re.compile(rf"(\[\[?)[ \t]*({_KEY})[ \t]*\]{{1,2}}")
_STATEMENT: Final = re.compile(rf"({_KEY})[ \t]*=")
_VALUE_TOKEN: Final = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*"{3,5}|\'\'\'(?:[^']|'(?!''))*'{3,5}'''
    r"""|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*|[\[{]|[]}]|,|\n|[^][{}"'\#,\n]+""",
    re.DOTALL,
)
_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*)+")


def locate(text: str) -> dict[Place, int]:
    """The line of every table, key and item of a list."""
    return _Locator(text).lines


class _Locator:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted_to, self._line = 0, 1
        self._table: Place = ()
        self._lists: dict[Place, int] = {}
        """How many tables each list of tables has so far."""
        self.lines: dict[Place, int] = {}
        while self._skip_blank():
            header = _HEADER.match(text, self._at)
            if header:
                self._open_table(header)
            else:
                self._read_statement()

    def _skip_blank(self) -> bool:
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return self._at < len(self._text)

    def _open_table(self, header: re.Match[str]) -> None:
        self._table = ()
        *outer, last = _parts(header[2])
        for part in outer:
            self._table = self._last_item((*self._table, part))
        self._table = (*self._table, last)
        if header[1] == "[[":
            self._lists[self._table] = self._lists.get(self._table, 0) + 1
            self._note(self._table)
        self._table = self._last_item(self._table)
        self._note(self._table)
        self._at = header.end()
        self._skip_value(None)

    def _last_item(self, place: Place) -> Place:
        return (*place, self._lists[place] - 1) if place in self._lists else place

    def _read_statement(self) -> None:
        statement = _STATEMENT.match(self._text, self._at)
        assert statement is not None, "the text is valid"
        place = self._table
        for part in _parts(statement[1]):
            place = (*place, part)
            self._note(place)
        self._at = statement.end()
        self._skip_value(place)

    def _skip_value(self, place: Place | None) -> None:
        """To the end of the statement. The items of a list are noted on the way, not what is inside of them."""
        depth, item, in_list = 0, 0, False
        while token := _VALUE_TOKEN.match(self._text, self._at):
            word = token[0]
            if word == "\n" and depth == 0:
                return
            if depth == 1 and in_list and word == ",":
                item += 1
            elif depth == 1 and in_list and place is not None and not _BLANK.fullmatch(word) and word != "]":
                self._note((*place, item))
            if word in "[{":
                in_list = word == "[" if depth == 0 else in_list
                depth += 1
            elif word in "]}":
                depth -= 1
            self._at = token.end()

    def _note(self, place: Place) -> None:
        """The first time counts, so a table that goes on elsewhere stands where it began."""
        self._line += self._text.count("\n", self._counted_to, self._at)
        self._counted_to = self._at
        self.lines.setdefault(place, self._line)


def _parts(key: str) -> list[str]:
    """A dotted key's names, with quotes and escapes undone by the one who knows how."""
    parts: list[str] = []
    inner: Any = tomllib.loads(f"{key} = 0")
    while isinstance(inner, dict):
        [(name, inner)] = inner.items()
        parts.append(name)
    return parts
