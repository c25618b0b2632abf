"""Windows that change while an answer comes, in a terminal that moves lines about by itself: tmux."""

import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.cli.conftest import House
from tests.cli.terminal import PATIENCE_S
from tests.commands import NOTHING_HERE

WORDS = [f"w{n:02}" if n < 100 else f"v{n - 100:02}" for n in range(200)]


class Tmux:
    def __init__(self) -> None:
        self._name = f"headwater-test-{os.getpid()}"
        # With its last session it would end.
        self.ask("-f", "/dev/null", "new-session", "-d", "-s", "kept", "sleep 1000")

    def ask(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._name, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
        return done.stdout

    def seen(self, session: str) -> str:
        return self.ask("capture-pane", "-t", session, "-p", "-J", "-S", "-")


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("NOT TESTED: resizing in tmux, which is not installed here")
    tmux = Tmux()
    yield tmux
    tmux.ask("kill-server")


def test_windows_that_are_resized_again_and_again_repeat_and_cut_nothing(house: House, tmux: Tmux) -> None:
    """Also in the moment in which lines have moved and nobody was told yet."""
    environ = {
        **house.environ,
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "HOME": str(NOTHING_HERE),
    }
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in environ.items())
    command = shlex.join(
        [
            sys.executable,
            "-c",
            "from headwater.cli import main; main()",
            "chat",
            "-m",
            "sim/sim/echo@80",
            " ".join(WORDS),
        ]
    )
    for session in "abcd":
        tmux.ask(
            "new-session", "-d", "-s", session, "-x", "80", "-y", "24", f"{variables} {command}; echo OVER; sleep 1000"
        )
    chance = random.Random(1)
    going, until_s = set("abcd"), time.monotonic() + PATIENCE_S
    while going:
        assert time.monotonic() < until_s, tmux.seen(min(going))
        for session in sorted(going):
            shown = tmux.seen(session)
            if "OVER" in shown:
                going.remove(session)
                # A status line that is wrapped in the very moment in which it is drawn may stay: nobody is told in time.
                # That it goes otherwise is test_terminal's; here it is about the words.
                assert re.findall(r"\b[vw]\d\d\b", shown) == WORDS, shown
            elif "w00" in shown:
                # A word never ends at the last column of such a window: what a cursor does there is another matter.
                tmux.ask(
                    "resize-window",
                    "-t",
                    session,
                    "-x",
                    str(4 * chance.randint(8, 30)),
                    "-y",
                    str(chance.randint(8, 40)),
                )
        # They differ in what they are in the midst of.
        time.sleep(chance.choice([0.0, 0.02, 0.1, 0.4]))
