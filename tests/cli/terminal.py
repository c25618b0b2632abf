"""A command in a terminal of its own: a real pty, and an emulator that shows what a person would see."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pyte

from tests.commands import NOTHING_HERE

PATIENCE_S = 120.0
"""Others load the machine."""

# Whoever runs the tests may do so under `nohup`, which is inherited.
_OWN = (
    "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); "
)
HEADWATER = [sys.executable, "-c", _OWN + "from headwater.cli import main; main()"]
OTHER = [sys.executable, "-c", _OWN + "os.execvp(sys.argv[1], sys.argv[1:])"]
"""Followed by another program's name."""


class _Emulated(pyte.HistoryScreen):
    """Answers when it is asked where the cursor is."""

    def __init__(self, columns: int, rows: int, answer: Callable[[str], None]) -> None:
        super().__init__(columns, rows, history=10_000, ratio=0.5)
        self._answer = answer

    def write_process_input(self, data: str) -> None:
        self._answer(data)


class Terminal:
    def __init__(self, command: list[str], environ: Mapping[str, str], columns: int, rows: int) -> None:
        self.emulated = _Emulated(columns, rows, self.type)
        self._stream = pyte.ByteStream(self.emulated)
        self.raw = b""
        """All that was written."""
        self._master, slave = pty.openpty()
        self._set_size(columns, rows)
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
        variables = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": path,
            "HOME": str(NOTHING_HERE),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            **environ,
        }
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=NOTHING_HERE,
            env=variables,
            start_new_session=True,
        )
        os.close(slave)

    # ------------------------------------------------------------------- seeing

    def lines(self) -> list[str]:
        """All that was ever on it, from the first line."""
        above = ["".join(line[n].data for n in range(self.emulated.columns)) for line in self.emulated.history.top]
        return [line.rstrip() for line in (*above, *self.emulated.display)]

    def shown(self) -> list[str]:
        return [line.rstrip() for line in self.emulated.display]

    def text(self) -> str:
        return "\n".join(self.lines())

    def wait_for(self, wanted: str, *, count: int = 1) -> None:
        """Until it was seen so often."""
        until_s = time.monotonic() + PATIENCE_S
        while self.text().count(wanted) < count:
            assert time.monotonic() < until_s, f"{wanted!r} was not seen in:\n{self.text().rstrip()}"
            if not self._read(0.2) and self.process.poll() is not None:
                assert self.text().count(wanted) >= count, f"{wanted!r} was not seen in:\n{self.text().rstrip()}"

    def sees(self, wanted: str, *, within_s: float) -> bool:
        until_s = time.monotonic() + within_s
        while not (seen := wanted in self.text()) and time.monotonic() < until_s:
            self._read(0.2)
        return seen

    def wait_for_end(self) -> int:
        """The exit code."""
        until_s = time.monotonic() + PATIENCE_S
        while self.process.poll() is None or self._read(0.0):
            assert time.monotonic() < until_s, f"it goes on:\n{self.text().rstrip()}"
            self._read(0.1)
        return self.process.returncode

    def _read(self, timeout_s: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], timeout_s)
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def echoes(self) -> bool:
        """What is typed is shown, and a line at a time is read: as a shell leaves it."""
        modes = termios.tcgetattr(self._master)[3]
        return bool(modes & termios.ECHO) and bool(modes & termios.ICANON)

    # -------------------------------------------------------------------- doing

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def ctrl_c(self) -> None:
        self.type("\x03")

    def resize(self, columns: int, rows: int) -> None:
        """Only the program is told."""
        self._set_size(columns, rows)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> None:
        """The window is closed."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        if self._master >= 0:
            self.hang_up()


@contextmanager
def terminal(*arguments: str, environ: Mapping[str, str], columns: int = 80, rows: int = 24) -> Iterator[Terminal]:
    """Of a `headwater` command."""
    with terminal_of([*HEADWATER, *arguments], environ, columns, rows) as opened:
        yield opened


@contextmanager
def terminal_of(
    command: list[str], environ: Mapping[str, str], columns: int = 80, rows: int = 24
) -> Iterator[Terminal]:
    opened = Terminal(command, environ, columns, rows)
    try:
        yield opened
    finally:
        opened.close()
