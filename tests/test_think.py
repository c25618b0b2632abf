"""C9: inline thinking is reasoning, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events import Event, ReasoningDelta, TextDelta, ToolCallStarted
from headwater.think import TAGS, ThinkSplitter


def split(*given: str | Event) -> list[Event]:
    """One read each, and the same in one read."""
    events: list[Event] = [TextDelta(item) if isinstance(item, str) else item for item in given]
    one, all_at_once = ThinkSplitter(), ThinkSplitter()
    out = [part for event in events for part in one.split([event])] + one.end()
    assert out == all_at_once.split(events) + all_at_once.end()
    return out


def joined(events: list[Event]) -> list[tuple[str, str]]:
    """Runs of text and reasoning, as (kind, text)."""
    runs: list[tuple[str, str]] = []
    for event in events:
        kind, text = type(event).__name__, getattr(event, "text", "")
        if runs and runs[-1][0] == kind:
            runs[-1] = (kind, runs[-1][1] + text)
        else:
            runs.append((kind, text))
    return runs


T, R = "TextDelta", "ReasoningDelta"


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("Hello", [(T, "Hello")]),
        ("<think>hm</think>Hello", [(R, "hm"), (T, "Hello")]),
        (" \n<think>hm</think>\r\n\nHello", [(R, "hm"), (T, "Hello")]),
        ("<think>hm</think>  Hello\n", [(R, "hm"), (T, "  Hello\n")]),
        ("<think>hm", [(R, "hm")]),
        ("<think>hm</thin", [(R, "hm</thin")]),
        ("<think></think>Hello", [(T, "Hello")]),
        ("<think>", []),
        ("<think>a</think>\n<think>b</think>c", [(R, "ab"), (T, "c")]),
        ("<think>a</thinking>b</think>c", [(R, "a</thinking>b"), (T, "c")]),
        ("Say <think> and </think>.", [(T, "Say <think> and </think>.")]),
        ("`<think>` is a tag", [(T, "`<think>` is a tag")]),
        ("```\n<think>x</think>\n```", [(T, "```\n<think>x</think>\n```")]),
        ("<think>hm</think>Use <think> tags.", [(R, "hm"), (T, "Use <think> tags.")]),
        ("<thinker>x</thinker>", [(T, "<thinker>x</thinker>")]),
        ("<th", [(T, "<th")]),
        ("  ", [(T, "  ")]),
        ("</think>x", [(T, "</think>x")]),
        ("<think>a<</think>b", [(R, "a<"), (T, "b")]),
        (" " * 300 + "<think>x</think>", [(T, " " * 300 + "<think>x</think>")]),
    ],
)
def test_split(text: str, runs: list[tuple[str, str]]) -> None:
    assert joined(split(text)) == runs
    assert joined(split(*text)) == runs


@pytest.mark.parametrize("tag", TAGS)
def test_each_tag_has_its_own_end(tag: str) -> None:
    assert joined(split(f"<{tag}>hm</{tag}>\nHello")) == [(R, "hm"), (T, "Hello")]


@given(st.lists(st.sampled_from(["<", "think", ">", "/", "\n", " ", "a", "<think>", "</think>", "<thought>"])))
def test_cuts_never_change_what_is_reasoning(pieces: list[str]) -> None:
    assert joined(split(*pieces)) == joined(split(*"".join(pieces)))


@given(st.text(st.sampled_from("<thinkoug>/ \na"), max_size=40))
def test_no_text_is_lost(text: str) -> None:
    """Tags aside, and the white space around them."""
    kept = "".join(event.text for event in split(text) if isinstance(event, TextDelta | ReasoningDelta))
    for tag in TAGS:
        text = text.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
        kept = kept.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
    assert kept.split() == text.split()


def test_one_event_per_chunk() -> None:
    """C5: holding back never merges chunks."""
    assert split(" ", "<", "b>x", "y") == [TextDelta(" "), TextDelta("<"), TextDelta("b>x"), TextDelta("y")]


@pytest.mark.parametrize(
    ("before", "runs"),
    [
        (ReasoningDelta("r"), [(T, "Hello "), (R, "rhm"), (T, "!")]),
        (ToolCallStarted(0, "c", "t"), [(T, "Hello "), ("ToolCallStarted", ""), (R, "hm"), (T, "!")]),
        (TextDelta("No.", refusal=True), [(T, "Hello No."), (R, "hm"), (T, "!")]),
    ],
)
def test_a_tag_may_open_the_text_after_something_else(before: Event, runs: list[tuple[str, str]]) -> None:
    assert joined(split("Hello ", before, "<think>hm</think>!")) == runs


def test_what_is_held_comes_before_what_follows() -> None:
    call = ToolCallStarted(0, "c", "t")
    assert split("<thi", call, "nk>") == [TextDelta("<thi"), call, TextDelta("nk>")]
    assert split("<think>a</thi", call, "x") == [ReasoningDelta("a"), ReasoningDelta("</thi"), call, TextDelta("x")]
