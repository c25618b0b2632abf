"""A second screen for what is only looked at while it goes on. What was there before comes back when it is left."""

import os
import sys
from typing import Final

_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
# Terminals that know it show the whole change at once; others ignore it.
_BEGIN: Final = "\x1b[?2026h\x1b[H"
_END: Final = "\x1b[J\x1b[?2026l"


def window_size(file: int) -> os.terminal_size:
    """As it is this moment. Not by `shutil`, which believes a `COLUMNS` that was true once."""
    try:
        size = os.get_terminal_size(file)
    except OSError:
        size = os.terminal_size((0, 0))
    return size if size.columns and size.lines else os.terminal_size((80, 24))


class Alternate:
    def open(self) -> None:
        sys.stdout.flush()
        self._write(_ENTER)

    def close(self) -> None:
        self._write(_LEAVE)

    @property
    def columns(self) -> int:
        return window_size(sys.stdout.fileno()).columns

    @property
    def room(self) -> int:
        """Lines, above the one at the foot."""
        return max(1, window_size(sys.stdout.fileno()).lines - 1)

    def draw(self, lines: list[str], foot: str) -> None:
        """All of it, from the top. No line may be wider than the screen."""
        shown = "".join(f"\x1b[2K{line}\r\n" for line in lines[: self.room])
        self._write(f"{_BEGIN}{shown}\x1b[2K\x1b[2m{foot[: self.columns - 1]}\x1b[0m{_END}")

    def _write(self, text: str) -> None:
        os.write(sys.stdout.fileno(), text.encode("utf-8", "replace"))
