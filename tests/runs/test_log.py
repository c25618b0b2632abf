"""The log of a live run: what may be shown, and what is still here."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.events import PLAIN_TEXT, Entry, TextDelta, decode_entry
from headwater.runs.log import Log


def said(*words: str) -> list[TextDelta]:
    return [TextDelta(word) for word in words]


def test_only_what_was_committed_is_shown() -> None:
    log = Log()
    log.append(said("a", "b"), 1.0)
    assert log.after(-1) == []
    log.lines(-1)
    log.show(0)
    assert log.after(-1) == [Entry(0, 1.0, TextDelta("a"))]
    assert log.after(0) == []
    log.show(-1)
    assert log.shown_seq == 0


def test_lines_are_what_the_store_keeps() -> None:
    log = Log(4)
    added = log.append(said("a", "b"), 1.0)
    assert [decode_entry(line) for line in log.lines(4)] == added
    assert [entry.seq for entry in added] == [5, 6]
    log.append(said("c"), 2.0)
    assert [decode_entry(line).seq for line in log.lines(6)] == [7]


def test_what_is_older_than_the_log_is_not_here() -> None:
    log = Log(4)
    assert log.after(3) is None
    assert log.after(4) == []


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), st.integers(0, 300))
def test_a_tail_stays_and_no_more_than_twice_as_much(sizes: list[int], tail_bytes: int) -> None:
    log = Log(tail_bytes=tail_bytes)
    for size in sizes:
        log.append(said("x" * size), 0.0)
        lines = log.lines(log.last_seq - 1)
        log.show(log.last_seq)
        kept = log.after(log.shown_seq - 1)
        assert kept is None or kept == [decode_entry(lines[0])]
        here = [n for n in range(-1, log.last_seq) if log.after(n) is not None]
        bytes_here = sum(size for size in sizes[: log.last_seq + 1][here[0] + 1 :]) if here else 0
        assert bytes_here <= 2 * tail_bytes + 600


def test_what_nobody_will_ask_for_again_goes() -> None:
    log = Log()
    log.append(said("a", "b", "c"), 0.0)
    log.show(2)
    log.forget(1)
    log.forget(0)
    assert log.after(0) is None
    assert log.after(1) == [Entry(2, 0.0, TextDelta("c"))]


def test_what_goes_by_counts_and_is_not_here() -> None:
    log = Log()
    log.append(said("a"), 1.0)
    log.show(0)
    log.forget(0)
    log.skip(3)
    assert (log.last_seq, log.first_seq, log.after(3)) == (3, 4, [])
    assert [entry.seq for entry in log.append(said("b"), 2.0)] == [4]
    assert log.after(2) is None


PLAIN = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters='"\\') | st.just(" "), min_size=1)


def between(text: str) -> bytes:
    before, after = PLAIN_TEXT
    return before + text.encode() + after


@given(st.lists(st.tuples(PLAIN, st.booleans()), max_size=12), st.integers(0, 12))
def test_a_plain_text_is_kept_and_told_as_any_other_event_is(words: list[tuple[str, bool]], shown: int) -> None:
    """C5: whichever way it came."""
    plainly, as_events = Log(4), Log(4)
    for n, (word, is_plain) in enumerate(words):
        wanted = as_events.write(said(word), n / 10)
        assert (plainly.write_plain(between(word), n / 10) if is_plain else plainly.write(said(word), n / 10)) == wanted
    for log in (plainly, as_events):
        log.show(min(4 + shown, log.last_seq))
    assert plainly.lines(4) == as_events.lines(4)
    for seq in range(4, plainly.shown_seq + 1):
        texts = [word.encode() for word, _ in words[seq - 4 : plainly.shown_seq - 4]]
        # As far as it is written, be it shown or not.
        all_plain = all(is_plain for _, is_plain in words[seq - 4 :])
        assert plainly.plain_after(seq) == (texts if all_plain else None)
    for seq in range(4, plainly.shown_seq + 1):
        assert plainly.after(seq) == as_events.after(seq)
    assert plainly.plain_after(3) is None


def test_of_plain_texts_a_tail_stays() -> None:
    log = Log(tail_bytes=100)
    for n in range(20):
        log.write_plain(between(f"word{n}"), 0.0)
        log.show(n)
    assert log.first_seq > 10
    assert log.plain_after(3) is None
    assert log.plain_after(18) == [b"word19"]
    assert log.after(18) == [Entry(19, 0.0, TextDelta("word19"))]
