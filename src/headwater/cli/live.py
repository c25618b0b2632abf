"""The end of a terminal's output that may still change: a tail of lines, and a footer below them.

What is above the tail was printed once and is never touched again. The cursor is kept at the beginning of the footer:
whatever a resize does to the lines above it, the footer can be taken away from there, and the tail left as it is.
"""

import os
import sys
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
_CLEAR_BELOW: Final = "\x1b[J"


class Live:
    def __init__(self, file: int | None = None) -> None:
        """`file` is the terminal; stdout, if none is given."""
        self._file = sys.stdout.fileno() if file is None else file
        self._tail: list[str] = []
        self._tail_rows = 0
        self._foot: list[str] = []
        self._size = window_size(self._file)
        self.painter = Painter(self._size.columns)

    def open(self) -> None:
        sys.stdout.flush()
        self._write(_HIDE_CURSOR)

    def close(self) -> None:
        self._write(f"\r{_CLEAR_BELOW}{_SHOW_CURSOR}")

    def fits(self, tail: list[Text], foot_lines: int) -> bool:
        return self._rows(tail) + foot_lines + 1 <= self._size.lines

    def resized(self) -> bool:
        """Whether it was. If so, the tail stands as it is, and what comes next is drawn below it."""
        size = window_size(self._file)
        if size == self._size:
            return False
        self._size = size
        self.painter = Painter(size.columns)
        self._tail, self._tail_rows, self._foot = [], 0, []
        self._write(f"\r{_CLEAR_BELOW}")
        return True

    def draw(self, final: list[Text], tail: list[Text], foot: list[str]) -> None:
        """`final` is printed for good; `foot` is dim, each of its lines cut to the width."""
        lines = [self.painter.written(line) for line in (*final, *tail)]
        feet = [self.painter.dim(cut(line, self._size.columns - 1)) for line in foot]
        same = _common(self._tail, lines)
        if not final and same == len(lines) == len(self._tail) and feet == self._foot:
            return
        kept_rows = self._rows_of_first(same, final, tail)
        up = self._tail_rows - kept_rows
        out = [_BEGIN, "\r", f"\x1b[{up}A" if up else "", _CLEAR_BELOW]
        out += [f"{line}\r\n" for line in lines[same:]]
        out += ["\r\n".join(feet), f"\x1b[{len(feet) - 1}A" if len(feet) > 1 else "", "\r", _END]
        self._write("".join(out))
        self._tail, self._foot = lines[len(final) :], feet
        self._tail_rows = self._rows(tail)

    def _rows_of_first(self, count: int, final: list[Text], tail: list[Text]) -> int:
        return self._rows([*final, *tail][:count])

    def _rows(self, lines: list[Text]) -> int:
        """Longer ones are wrapped by the terminal."""
        columns = self._size.columns
        return sum(max(1, -(-line.cell_len // columns)) for line in lines)

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._file, data) :]


def _common(old: list[str], new: list[str]) -> int:
    """How many lines both begin with."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count
