"""A number asked of a person at a terminal, by one key."""

import asyncio
import signal

from headwater.cli.keyboard import Keyboard


async def choose(question: str, count: int) -> int | None:
    """From 1 to `count`. None: Enter, Ctrl-C, or another key that says no."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[int | None] = loop.create_future()

    def on_key(char: str) -> None:
        number = int(char) if char in "123456789" else 0
        if not answer.done() and (number <= count or char in "\r\nqn\x04"):
            answer.set_result(number or None)

    keyboard = Keyboard(on_key)
    loop.add_signal_handler(signal.SIGINT, on_key, "q")
    keyboard.open()
    print(question, end=" ", flush=True)
    try:
        chosen = await answer
    finally:
        keyboard.close()
        loop.remove_signal_handler(signal.SIGINT)
    print(chosen or "none")
    return chosen
