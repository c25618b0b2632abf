"""A text that grows, as lines that are printed once and a tail that may still change. Pure.

Blocks that can't change any more are given out for good. Of the last one, lines are given out early only where it has
outgrown its room; what was given out is never given again, be the rest drawn at another width or in another way.
"""

import re
from collections.abc import Callable
from typing import Final

from rich.text import Text

from headwater.cli.paint import Painter, blocks

Split = Callable[[str], list[str]]
Draw = Callable[[Painter, str], list[Text]]

_KEPT: Final = 3
"""Lines of an outgrown tail that stay: the last may still be wrapped, or turn out to be a table's or a list's."""
_MARKS: Final = ("`", "**", "~~")
_RULE: Final = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")


class Flow:
    def __init__(self, split: Split, draw: Draw, *, gap: bool) -> None:
        """`gap`: a blank line between blocks."""
        self._split = split
        self._draw = draw
        self._gap = gap
        self._source = ""
        """From the block on that may still change."""
        self._begun = False
        """A block is before it."""
        self._given: list[str] = []
        """Lines of this block that were given out."""
        self._table: _Rest | None = None
        """This block is the rest of a table."""
        self._seen = ""
        """Of the source, what the tail shows."""

    def feed(self, text: str) -> None:
        self._source += text

    def frame(self, painter: Painter, room: Callable[[list[Text]], bool]) -> tuple[list[Text], list[Text]]:
        """What is to be printed for good, and the tail. `room` says if a tail fits."""
        *whole, tail = self._split(self._source)
        final: list[Text] = []
        for block in whole:
            final += self._rest(self._drawn(painter, block))
            self._next()
        self._source = tail
        self._seen = self._shown(tail)
        lines = self._rest(self._drawn(painter, self._seen))
        if not room(lines):
            if self._is_table(self._seen):
                out, lines = lines, []
                self._keep_table(painter)
            else:
                out, lines = lines[:-_KEPT], lines[-_KEPT:]
                self._give(out)
            final += out
        return final, lines

    def stand(self, lines: list[Text]) -> None:
        """These are the tail, and stay as they are: from now on it is drawn for another width."""
        if lines and self._is_table(self._seen):
            self._keep_table(None)
        else:
            self._give(lines)

    def finish(self, painter: Painter) -> list[Text]:
        """All that is left."""
        final: list[Text] = []
        for block in self._split(self._source):
            final += self._rest(self._drawn(painter, block))
            self._next()
        self._source = ""
        return final

    def _give(self, lines: list[Text]) -> None:
        self._given += [line.plain for line in lines]

    def _next(self) -> None:
        self._given = []
        self._table = None
        self._begun = True

    def _drawn(self, painter: Painter, block: str) -> list[Text]:
        if self._table is not None:
            return self._table.drawn(painter, block)
        lines = self._draw(painter, block)
        return [Text(), *lines] if lines and self._gap and self._begun else lines

    # ------------------------------------------------------------------- tables

    def _shown(self, tail: str) -> str:
        """Of the tail, what can be shown: of a table only rows that are whole."""
        if not self._gap:
            return tail
        if self._is_table(tail) or (tail.lstrip().startswith("|") and tail.count("\n") < 2):
            return tail[: tail.rfind("\n") + 1] if tail.count("\n") > 1 else ""
        return _mended(tail)

    def _is_table(self, source: str) -> bool:
        """Its columns change with every row, so that no line of it stands before the last has come."""
        lines = source.split("\n")
        return self._gap and len(lines) > 2 and bool(_RULE.fullmatch(lines[1]))

    def _keep_table(self, painter: Painter | None) -> None:
        """What is drawn of it stays. Rows that come are drawn below it: with a painter, in the same columns."""
        widths = None
        if painter is not None:
            before = None if self._table is None else self._table.widths
            widths = before or painter.widths(self._seen)
        self._table = _Rest(widths)
        # More may have come than is drawn.
        head, rule = self._seen.split("\n")[:2]
        self._source = f"{head}\n{rule}\n{self._source[len(self._seen) :]}"
        self._seen = ""
        self._given = []

    def _rest(self, lines: list[Text]) -> list[Text]:
        """Without what was given out: the same lines, else (drawn anew) as many letters."""
        given = self._given
        if [line.plain for line in lines[: len(given)]] == given:
            return lines[len(given) :]
        count = sum(map(_letters, given))
        for number, line in enumerate(lines):
            plain = line.plain
            if count < _letters(plain):
                place = _after(plain, count)
                return [line[place:] if count else line, *lines[number + 1 :]]
            count -= _letters(plain)
        return []


class _Rest:
    """Of a table."""

    def __init__(self, widths: list[int] | None) -> None:
        self.widths = widths
        """None: the window has another width now, and the head is drawn again."""

    def drawn(self, painter: Painter, block: str) -> list[Text]:
        if not any(line.strip() for line in block.split("\n")[2:]):
            return []
        return painter.table(block, self.widths)


def _letters(text: str) -> int:
    """What stays of a text however it is drawn."""
    return sum(map(str.isalnum, text))


def _after(text: str, count: int) -> int:
    """The place behind so many letters, and behind the blanks that follow."""
    for place, char in enumerate(text):
        if count == 0 and not char.isspace():
            return place
        count -= char.isalnum()
    return len(text)


def _mended(tail: str) -> str:
    """With marks closed that are still open, so that what they mean is seen at once."""
    paragraph = re.split(r"\n\s*\n", tail)[-1]
    if tail.count("```") % 2:
        return tail
    for mark in _MARKS:
        if paragraph.count(mark) % 2 and not paragraph.rstrip().endswith(mark[0]):
            # Behind a blank it would open one more.
            blank = len(tail) - len(tail.rstrip())
            return tail[: len(tail) - blank] + mark + tail[len(tail) - blank :]
    return tail


def markdown_flow() -> Flow:
    return Flow(blocks, Painter.block, gap=True)


def reasoning_flow() -> Flow:
    return Flow(lambda source: source.split("\n"), Painter.prose, gap=False)
