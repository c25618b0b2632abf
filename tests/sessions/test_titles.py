"""Titles from what was said first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.conversation import Image, Opaque, Text, User
from headwater.sessions.titles import TITLE_CHARS, UNTITLED, title_of


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("What is a river?", "What is a river?"),
        ("Tell me of rivers.", "Tell me of rivers"),
        ("Hi. Can you name a long river? And a lake.", "Hi. Can you name a long river?"),
        ("Which is longer, e.g. the Nile or the Po? Say why.", "Which is longer, e.g. the Nile or the Po?"),
        ("\n\n  # Rivers of **Europe**\n\nList them.", "Rivers of Europe"),
        ("> 1. See [the map](https://example.com/m) and `look`", "See the map and look"),
        ("Fix this:\n```python\nprint(1\n```", "Fix this"),
        ("```python\nprint('a')\n```\nWhy does it fail?", "Why does it fail?"),
        ("```python\nimport os\n```", "import os"),
        ("---\n***\nRivers", "Rivers"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("<b>Rivers</b> and <i class='x'>lakes</i>", "Rivers and lakes"),
        ("https://www.example.com/rivers", "example.com/rivers"),
        ("河はどこから来ますか。教えてください。", "河はどこから来ますか"),
        ("Rivers\u202eevil\x07 and\tlakes", "Rivers evil and lakes"),
        ("a < b and b > c", "a < b and b > c"),
        ("Hi", "Hi"),
        ("...", UNTITLED),
        ("", UNTITLED),
        (" \n\t", UNTITLED),
    ],
)
def test_it_is_the_first_sentence_that_says_something(said: str, title: str) -> None:
    assert title_of(User((Text(said),))) == title


def test_a_long_one_is_cut_between_words() -> None:
    title = title_of(User((Text("word " * 40),)))
    assert title == "word word word word word word word word word word word word…"[: TITLE_CHARS + 1]
    assert title.endswith("word…")


def test_one_without_spaces_is_cut_anywhere() -> None:
    title = title_of(User((Text("https://example.com/" + "x" * 100),)))
    assert title == "example.com/" + "x" * (TITLE_CHARS - 13) + "…"


def test_images_without_a_word() -> None:
    image = Image("https://example.com/a.png")
    assert title_of(User((image,))) == "An image"
    assert title_of(User((image, Text(" "), image))) == "2 images"
    assert title_of(User((Text("What is this?"), image))) == "What is this?"
    assert title_of(User((Opaque("messages", {"type": "document"}),))) == UNTITLED


@given(st.text(max_size=200) | st.text(alphabet="`*_#>-[]()! .\na<", max_size=80))
def test_any_text_gives_one_short_line(said: str) -> None:
    title = title_of(User((Text(said),)))
    assert 0 < len(title) <= TITLE_CHARS
    assert title == title.strip()
    assert len(title.splitlines()) == 1
