"""Keys as they are pressed, while something else is on the screen: no echo, no line to be finished first.

Ctrl-C stays a signal. Sequences of other keys (arrows, …) are swallowed.
"""

import asyncio
import codecs
import os
import re
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

_SEQUENCE: Final = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)


class Keyboard:
    """`open` it inside the event loop; `close` gives the terminal back as it was."""

    def __init__(self, on_key: Callable[[str], None]) -> None:
        self._on_key = on_key
        self._file = sys.stdin.fileno()
        self._before: list[Any] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def open(self) -> None:
        if not os.isatty(self._file):
            return
        self._before = termios.tcgetattr(self._file)
        changed = termios.tcgetattr(self._file)
        changed[3] &= ~(termios.ICANON | termios.ECHO)
        changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._file, termios.TCSADRAIN, changed)
        asyncio.get_running_loop().add_reader(self._file, self._on_ready)

    def close(self) -> None:
        if self._before is None:
            return
        asyncio.get_running_loop().remove_reader(self._file)
        with suppress(termios.error):
            # It may be gone.
            termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)
        self._before = None

    def _on_ready(self) -> None:
        try:
            data = os.read(self._file, 4096)
        except OSError:
            data = b""
        if not data:
            # The terminal is gone; so will be the process.
            self.close()
            return
        for char in _SEQUENCE.sub("", self._decoder.decode(data)):
            self._on_key(char)
