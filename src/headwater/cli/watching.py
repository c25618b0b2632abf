"""A table that is kept up to date on a terminal, until somebody has seen enough."""

import asyncio
import signal
from collections.abc import Awaitable, Callable

from headwater.cli import exits
from headwater.cli.alternate import Alternate
from headwater.cli.keyboard import Keyboard
from headwater.cli.table import columns
from headwater.client import ApiError

_HINT = "q leaves · headwater attach RUN follows one · headwater stop RUN"


async def watch(rows: Callable[[], Awaitable[list[list[str]]]], every_s: float) -> int:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    screen = Alternate()
    keyboard = Keyboard(lambda char: over.set() if char in "qQ\x04" else None)
    loop.add_signal_handler(signal.SIGINT, over.set)
    keyboard.open()
    screen.open()
    found: list[list[str]] = []
    try:
        while not over.is_set():
            trouble = ""
            try:
                found = await rows()
            except ApiError as error:
                trouble = f"reconnecting: {error.message}"
            first, *rest = columns(found[: screen.room], screen.columns) or [""]
            screen.draw([f"\x1b[1m{first}\x1b[0m", *rest], trouble or _HINT)
            try:
                async with asyncio.timeout(every_s):
                    await over.wait()
            except TimeoutError:
                continue
    finally:
        screen.close()
        keyboard.close()
        loop.remove_signal_handler(signal.SIGINT)
    # What was last seen stays.
    for line in columns(found[: screen.room], screen.columns):
        print(line)
    return exits.COMPLETED
