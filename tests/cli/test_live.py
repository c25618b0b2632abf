"""The end of a terminal's output that may still change, drawn step by step on an emulated screen."""

import os
import re
from collections.abc import Iterator

import pyte
import pytest
from rich.text import Text

from headwater.cli.live import Live


class Seen:
    """A pipe, which `Live` takes for a window of 80 columns; it may be another one by now."""

    def __init__(self, columns: int = 80) -> None:
        self._read, self.write = os.pipe()
        self._screen = pyte.Screen(columns, 24)
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


@pytest.mark.parametrize("columns", [31, 43, 60, 100])
def test_a_window_of_another_width_than_is_known_repeats_and_cuts_nothing_that_is_added(columns: int) -> None:
    seen = Seen(columns)
    live = Live(seen.write)
    words = [f"w{n}" for n in range(60)]
    for n in range(1, 20):
        line = Text(" ".join(words[:n]))
        line.stylize("bold", 3, 6)
        live.draw([], [line], ["a footer of more than thirty columns, be it one or two of them", "and another"])
    live.draw([line], texts(" ".join(words[19:25])), ["foot"])
    live.draw(texts(" ".join(words[19:25])), [], ["foot"])
    live.draw(texts("end"), [], [])
    live.close()
    lines = seen.lines()
    # What the terminal has wrapped is in a word's midst.
    assert "".join(lines).replace(" ", "") == "".join(words[:25]) + "end"
    assert lines[-1] == "end"
    seen.close()


def test_what_is_taken_back_at_the_end_of_the_last_line_is_taken_back_alone(seen: Seen) -> None:
    """A word that grows too long for its line."""
    live = Live(seen.write)
    live.draw([], texts("some words and hea"), ["foot"])
    live.draw([], texts("some words and", "headwater"), ["foot"])
    assert seen.lines() == ["some words and", "headwater", "foot"]
    live.draw([], texts("some words and", "headwaters"), [])
    assert seen.lines() == ["some words and", "headwaters"]


def test_only_the_last_words_are_written_again_where_they_have_another_colour(seen: Seen) -> None:
    live = Live(seen.write)
    live.draw([], texts("x = retur"), ["foot"])
    seen.lines()
    line = Text("x = return y")
    line.stylize("magenta", 4, 10)
    live.draw([], [line], ["foot"])
    data = os.read(seen._read, 1 << 20)
    assert b"x =" not in data
    assert b"return\x1b[0m y" in data


def test_the_upper_left_corner_is_not_cleared_from(seen: Seen) -> None:
    """tmux would keep in its history what is below it."""
    live = Live(seen.write)
    live.draw([], [], ["foot"])
    live.draw([], texts("one"), ["foot"])
    live.draw([], texts("another"), ["foot"])
    live.close()
    os.write(seen.write, b"!")
    assert not re.search(rb"(^|\r|\x1b\[\d*A)\x1b\[J", os.read(seen._read, 1 << 20))


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
