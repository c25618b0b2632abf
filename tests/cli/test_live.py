"""The end of a terminal's output that may still change, drawn step by step on an emulated screen."""

import os
from collections.abc import Iterator

import pyte
import pytest
from rich.text import Text

from headwater.cli.live import Live


class Seen:
    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)

    def lines(self) -> list[str]:
        self._stream.feed(os.read(self._read, 1 << 20).replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip().split("\n")

    def close(self) -> None:
        os.close(self._read)
        os.close(self.write)


@pytest.fixture
def seen() -> Iterator[Seen]:
    seen = Seen()
    yield seen
    seen.close()


def texts(*lines: str) -> list[Text]:
    return [Text(line) for line in lines]


def test_what_is_final_stays_and_the_tail_and_the_footer_go(seen: Seen) -> None:
    live = Live(seen.write)
    live.open()
    live.draw(texts("one"), texts("two", "thr"), ["foot"])
    assert seen.lines() == ["one", "two", "thr", "foot"]
    live.draw(texts("two"), texts("three", "four"), ["foot", "feet"])
    assert seen.lines() == ["one", "two", "three", "four", "foot", "feet"]
    live.draw([], texts("three"), ["foot"])
    assert seen.lines() == ["one", "two", "three", "foot"]
    live.draw([], [], [])
    live.close()
    assert seen.lines() == ["one", "two"]


def test_a_tail_that_has_become_final_as_it_is_stays(seen: Seen) -> None:
    """Nothing is drawn for that, and it must not be taken for a tail any more."""
    live = Live(seen.write)
    live.draw([], texts("all of it"), ["foot"])
    live.draw(texts("all of it"), [], ["foot"])
    live.draw([], [], [])
    assert seen.lines() == ["all of it"]


def test_lines_that_the_terminal_wraps_are_taken_back_whole(seen: Seen) -> None:
    live = Live(seen.write)
    live.draw([], texts("x" * 170, "end"), ["foot"])
    live.draw([], texts("short"), ["foot"])
    assert seen.lines() == ["short", "foot"]


def test_what_has_not_changed_is_not_drawn_again(seen: Seen) -> None:
    live = Live(seen.write)
    live.draw([], texts("same", "other"), ["foot"])
    seen.lines()
    live.draw([], texts("same", "another"), ["foot"])
    data = os.read(seen._read, 1 << 20)
    assert b"same" not in data
    assert b"another" in data
    live.draw([], texts("same", "another"), ["foot"])
    os.write(seen.write, b"!")
    assert os.read(seen._read, 10) == b"!"
