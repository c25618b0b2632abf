"""The end of a terminal's output that may still change: a tail of lines, and a footer below them.

What is above the tail was printed once and is never touched again. The cursor is kept at the end of the tail. A resize
moves lines about before anybody is told of it, and moves the cursor with them: what is merely added there is right
whatever the window has become meanwhile, and so is the footer, which is drawn from there and left again.
"""

import os
import re
import sys
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from rich.text import Text

from headwater.cli.alternate import window_size
from headwater.cli.paint import Painter
from headwater.cli.table import cut

# Terminals that know it show the whole change at once; others ignore it.
_BEGIN: Final = "\x1b[?2026h"
_END: Final = "\x1b[?2026l"
_HIDE_CURSOR: Final = "\x1b[?25l"
_SHOW_CURSOR: Final = "\x1b[?25h"
_SAVE: Final = "\x1b7"
_RESTORE: Final = "\x1b8"
_NO_WRAP: Final = "\x1b[?7l"
_WRAP: Final = "\x1b[?7h"
# Never from the upper left corner: tmux takes that for the wish to keep the whole screen in its history.
_CLEAR_FROM_LEFT: Final = "\x1b[K\x1b[C\x1b[J\r"
_CLEAR: Final = "\x1b[J"
_WORD: Final = re.compile(r"\w+|[^\w\s]+")
_LAST_WORDS: Final = 3


class Live:
    def __init__(self, file: int | None = None) -> None:
        """`file` is the terminal; stdout, if none is given."""
        self._file = sys.stdout.fileno() if file is None else file
        self._tail: list[Text] = []
        """If there is none, the cursor is at the beginning of a line."""
        self._foot: list[str] = []
        self._fit(window_size(self._file))

    def _fit(self, size: os.terminal_size) -> None:
        self._size = size
        # At the end of a full row a cursor is neither here nor there, and terminals do not agree on what that means.
        self.painter = Painter(size.columns - 1)

    def open(self) -> None:
        sys.stdout.flush()
        self._write(_HIDE_CURSOR)

    def close(self) -> None:
        self._write(f"{self._cleared()}{_SHOW_CURSOR}")

    def fits(self, tail: list[Text], foot_lines: int) -> bool:
        return sum(map(self._rows, tail)) + foot_lines + 1 <= self._size.lines

    def resized(self) -> bool:
        """Whether it was. If so, the tail stands as it is, and what comes next is drawn below it."""
        size = window_size(self._file)
        if size == self._size:
            return False
        self._write(self._cleared() + ("\r\n" if self._tail else ""))
        self._fit(size)
        self._tail, self._foot = [], []
        return True

    def draw(self, final: list[Text], tail: list[Text], foot: list[str]) -> None:
        """`final` is printed for good; `foot` is dim, each of its lines cut to the width."""
        lines = [*final, *tail]
        feet = [self.painter.dim(cut(line, self._size.columns - 1)) for line in foot]
        same = self._common(lines)
        if not final and same == len(lines) == len(self._tail) and feet == self._foot:
            return
        changed = self._changed(lines, same)
        self._tail, self._foot = tail, feet
        end = "\r\n" if final and not tail else ""
        self._write(f"{_BEGIN}{changed}{end}{self._footer(feet)}{_END}")

    def _changed(self, lines: list[Text], same: int) -> str:
        """To these, of which so many are there already."""
        old = self._tail
        more = [self.painter.written(line) for line in lines[same:]]
        if same == len(old):
            return self._cleared() + ("\r\n" if old and more else "") + "\r\n".join(more)
        if same == len(old) - 1 and more and (edit := self._edited(old[-1], lines[same])) is not None:
            return "\r\n".join([edit, *more[1:]])
        # The last line of all is written again even if it is the same: the cursor belongs at its end.
        first = max(0, min(same, len(lines) - 1))
        up = sum(map(self._rows, old[first:])) - 1
        more = [self.painter.written(line) for line in lines[first:]]
        return "\r" + (f"\x1b[{up}A" if up else "") + _CLEAR_FROM_LEFT + "\r\n".join(more)

    def _edited(self, old: Text, new: Text) -> str | None:
        """The last line, from where it is another now. None: that is not in the cursor's row, or at its beginning."""
        column = old.cell_len % self._size.columns
        for kept in _edges(old.plain, new.plain):
            back = old[kept:].cell_len
            if back >= column:
                return None
            if self.painter.written(old[:kept]) == self.painter.written(new[:kept]):
                return (f"\x1b[{back}D" if back else "") + _CLEAR + self.painter.written(new[kept:])
        return None

    def _cleared(self) -> str:
        """Of the footer."""
        at_left = not self._tail or not self._tail[-1].plain
        return _CLEAR_FROM_LEFT if at_left else _CLEAR

    def _footer(self, feet: list[str]) -> str:
        """Below the tail, or where the cursor is if there is none; it is back there then, also if all had to scroll."""
        below = len(feet) if self._tail else len(feet) - 1
        room = "\x1bD" * below + f"\x1b[{below}A" if below > 0 else ""
        drawn = ("\r\n" if self._tail else "") + "\r\n".join(feet)
        return f"{room}{_SAVE}{_NO_WRAP}{drawn}{_WRAP}{_RESTORE}" if feet else ""

    def _common(self, lines: list[Text]) -> int:
        """How many lines are there already."""
        pairs = zip(self._tail, lines, strict=False)
        return sum(1 for _ in takewhile(lambda pair: self._is_same(*pair), pairs))

    def _is_same(self, old: Text, new: Text) -> bool:
        return old.plain == new.plain and self.painter.written(old) == self.painter.written(new)

    def _rows(self, line: Text) -> int:
        """A longer one is wrapped by the terminal."""
        return max(1, -(-line.cell_len // self._size.columns))

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._file, data) :]


def _edges(old: str, new: str) -> Iterator[int]:
    """To where both are the same, and then before their last words: those may have another colour by now."""
    edge = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    yield edge
    for word in list(_WORD.finditer(old, 0, edge))[: -_LAST_WORDS - 1 : -1]:
        yield word.start()
