"""SIGTERM and SIGHUP, as a wish to leave: what is open is closed, so that the terminal is given back as it was.

They cancel the task; whatever it has opened is closed on its way out, and `Ended` is raised. A second one ends the
process at once.
"""

import asyncio
import errno
import os
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)


class Ended(Exception):
    def __init__(self, number: signal.Signals) -> None:
        super().__init__()
        self.signal = number


@contextmanager
def by_signal() -> Iterator[None]:
    """Inside a task. Raises `Ended`."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    # Whoever has started it with `nohup` wants it to stay.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    came: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        came.append(number)
        _forget_lost_terminal()
        for one in heard:
            loop.remove_signal_handler(one)
        task.cancel()

    for number in heard:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    except asyncio.CancelledError:
        if came:
            task.uncancel()
            raise Ended(came[0]) from None
        raise
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def _forget_lost_terminal() -> None:
    """What is still to be said, while all is closed, goes nowhere then; to write it would be one more error."""
    for file in (1, 2):
        try:
            termios.tcgetattr(file)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), file)
