"""A text that grows, as lines that are printed once: whatever the cuts, the room and the widths."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.cli.flow import Flow, markdown_flow, reasoning_flow
from headwater.cli.paint import Painter, blocks
from headwater.cli.table import cells, columns, cut
from tests.cli.test_terminal import letters, story

WIDTHS = [25, 40, 60, 90]


def plain(lines: object) -> list[str]:
    assert isinstance(lines, list)
    return [line.plain for line in lines]


def grown(flow: Flow, text: str, cuts: list[int], room: int, resizes: dict[int, int]) -> tuple[list[str], int]:
    """All that was printed, and the width at last."""
    printed: list[str] = []
    width, at = 60, 0
    painter = Painter(width)
    edges = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    for number, edge in enumerate(edges):
        flow.feed(text[at:edge])
        at = max(at, edge)
        final, tail = flow.frame(painter, lambda lines: len(lines) <= room)
        assert len(tail) <= max(room, 3)
        printed += plain(final)
        if number in resizes:
            width = resizes[number]
            painter = Painter(width)
            printed += plain(tail)
            # More has come by the time that it is known.
            flow.feed(text[at : at + 10 * number])
            at = min(len(text), at + 10 * number)
            flow.stand(tail)
    return printed + plain(flow.finish(painter)), width


CUTS = st.lists(st.integers(1, 2000), max_size=60)


@settings(max_examples=20)
@given(CUTS, st.sampled_from([5, 8, 20]))
def test_the_same_lines_come_out_however_it_comes_in(cuts: list[int], room: int) -> None:
    text = story()
    printed, width = grown(markdown_flow(), text, cuts, room, {})
    whole = Painter(width).markdown(text)
    # Of a table that outgrew its room, the columns may be others.
    assert Counter(letters(printed)) == Counter(letters([_bare(line) for line in whole]))
    if room == 20:
        assert printed == [_bare(line) for line in whole]


@settings(max_examples=20)
@given(CUTS, st.sampled_from([5, 8, 20]), st.dictionaries(st.integers(0, 60), st.sampled_from(WIDTHS), max_size=4))
def test_a_resize_cuts_nothing_and_repeats_only_the_head_of_a_table(
    cuts: list[int], room: int, resizes: dict[int, int]
) -> None:
    text = story()
    printed, _ = grown(markdown_flow(), text, cuts, room, resizes)
    wanted = Counter(letters([line.plain for block in blocks(text) for line in Painter(60).block(block)]))
    got = Counter(letters(printed))
    assert not wanted - got
    assert set(got - wanted) <= set("placekilometrewhatthereis")


@settings(max_examples=20)
@given(st.text(st.characters(codec="utf-8"), max_size=400), CUTS, st.sampled_from([3, 9]))
def test_no_letter_is_lost_of_any_text(text: str, cuts: list[int], room: int) -> None:
    """What a person or a model may write besides Markdown; reasoning is shown like this."""
    from headwater.cli.words import safe

    text = safe(text)
    printed, _ = grown(reasoning_flow(), text, cuts, room, {})
    assert letters(printed) == letters([text])


@pytest.mark.parametrize(
    ("source", "drawn"),
    [
        ("**bold** and `code`", ["bold and code"]),
        ("# Title\n\n## Two", ["Title", "", "Two"]),
        ("[words](https://example.com)", ["words (https://example.com)"]),
        ("1. one\n2. two", [" 1. one", " 2. two"]),
        ("- a\n  - b", [" • a", "    • b"]),
        ("> said", ["▌ said"]),
        ("```python\nx = 1\n\ny = 2\n```", ["  x = 1", "", "  y = 2"]),
        ("<b>html</b>", ["<b>html</b>"]),
        ("| a | b |\n|---|--:|\n| one | 2 |", ["a    b", "──────", "one  2"]),
    ],
)
def test_markdown_is_drawn(source: str, drawn: list[str]) -> None:
    assert [_bare(line).rstrip() for line in Painter(60).markdown(source)] == drawn


def test_cells_of_a_table_are_wrapped_and_never_cut() -> None:
    lines = Painter(24).block("| name | what |\n|---|---|\n| an-unusually-long-name | something of some length |")
    assert letters(plain(lines)) != ""
    assert Counter(letters(plain(lines))) == Counter("namewhatanunusuallylongnamesomethingofsomelength")
    assert all(line.cell_len <= 24 for line in lines)


def test_wide_characters_take_two_cells() -> None:
    assert cells("河 a\u0301") == 4
    assert cut("河流河流", 5) == "河流…"
    assert columns([["a", "long one", "x"], ["b", "two", "河流河流河流"]], 16) == ["a  long…  x", "b  two    河流…"]
    assert columns([], 10) == []


def _bare(line: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", line)
