"""A table that is kept up to date on a terminal, until somebody has seen enough."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Final

from headwater.cli import exits
from headwater.cli.keyboard import Keyboard
from headwater.cli.table import columns
from headwater.client import ApiError

# Another screen: what was there before comes back when it is left.
_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"


async def watch(rows: Callable[[], Awaitable[list[list[str]]]], every_s: float) -> int:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    keyboard = Keyboard(lambda char: over.set() if char in "qQ\x1b\x04" else None)
    loop.add_signal_handler(signal.SIGINT, over.set)
    keyboard.open()
    _write(_ENTER)
    found: list[list[str]] = []
    try:
        while not over.is_set():
            trouble = ""
            try:
                found = await rows()
            except ApiError as error:
                trouble = f"reconnecting: {error.message}"
            _draw(found, trouble or "q leaves · headwater attach RUN follows one · headwater stop RUN")
            try:
                async with asyncio.timeout(every_s):
                    await over.wait()
            except TimeoutError:
                continue
    finally:
        _write(_LEAVE)
        keyboard.close()
        loop.remove_signal_handler(signal.SIGINT)
    # What was last seen stays.
    for line in columns(found[: _height()], shutil.get_terminal_size().columns):
        print(line)
    return exits.COMPLETED


def _height() -> int:
    return max(2, shutil.get_terminal_size().lines - 2)


def _draw(rows: list[list[str]], below: str) -> None:
    width = shutil.get_terminal_size().columns
    lines = columns(rows[: _height()], width)
    out = [f"\x1b[1m{line}\x1b[0m" if n == 0 else line for n, line in enumerate(lines)]
    foot = f"\x1b[2m{below[: width - 1]}\x1b[0m"
    _write("\x1b[?2026h\x1b[H" + "".join(f"\x1b[2K{line}\r\n" for line in out) + f"\x1b[2K{foot}\x1b[J\x1b[?2026l")


def _write(text: str) -> None:
    sys.stdout.flush()
    os.write(sys.stdout.fileno(), text.encode())
