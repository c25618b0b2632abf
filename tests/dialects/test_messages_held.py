"""What waits for an open call, and when a call's arguments can't be gone on with."""

import json

from hypothesis import given
from hypothesis import strategies as st

from headwater.dialects.messages.held import Arguments, Held, HeldCall
from headwater.events import ReasoningDelta, TextDelta, ToolArgsDelta, ToolCallEnded, ToolCallStarted

values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=3), st.data())
def test_an_object_is_whole_at_its_last_bracket_and_not_before(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text) - 1), max_size=5)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    arguments = Arguments()
    for piece in pieces[:-1]:
        arguments.add(piece)
        assert not arguments.are_whole() or not "".join(pieces[pieces.index(piece) + 1 :]).strip()
    arguments.add(pieces[-1])
    assert arguments.are_whole()
    arguments.add(" ")
    assert arguments.are_whole()


def test_what_is_no_object_is_never_whole() -> None:
    for pieces in (["[1]"], ["{}", "{}"], ["}"], ['"{}"'], ["{'x'}", "{}"], [""], ['{"x": "}']):
        arguments = Arguments()
        for piece in pieces:
            arguments.add(piece)
        assert not arguments.are_whole()


def test_a_call_that_waits_is_put_together_on_the_way() -> None:
    held = Held()
    started = ToolCallStarted(1, "call_b", "b")
    for event in (
        TextDelta("Hm."),
        started,
        ReasoningDelta("So?"),
        ToolArgsDelta(1, "{"),
        ToolArgsDelta(1, "}"),
        ToolCallEnded(0),
        ToolCallEnded(1),
    ):
        held.add(event)
    assert 1 in held
    assert 0 not in held
    assert [*held.words()] == [TextDelta("Hm."), ReasoningDelta("So?")]
    assert held.take() == TextDelta("Hm.")
    assert held.take() == HeldCall(started, ["{", "}"], ended=True)
    assert held
    assert held.take() == ReasoningDelta("So?")
    assert not held
    assert held.take() is None
