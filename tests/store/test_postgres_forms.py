"""What goes to Postgres as bytes: letters, words, names of locks."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headwater.store.news import News
from headwater.store.postgres import letters
from headwater.store.postgres.rows import lock_number
from headwater.store.postgres.words import VECTOR_BYTES, WORD_BYTES, query_of, vector_of
from headwater.store.results import Changed

ids = st.builds(lambda name, number: name * number, st.sampled_from('aé€"\0'), st.integers(1, 300))


@given(
    st.lists(ids, max_size=60),
    st.lists(st.tuples(ids, ids), max_size=20),
    st.lists(st.tuples(ids, st.builds(Changed, st.sampled_from(["run", "session", "group"]), ids)), max_size=20),
)
def test_letters_say_what_was_news_in_pieces_that_fit(
    runs: list[str], orders: list[tuple[str, str]], changed: list[tuple[str, Changed]]
) -> None:
    sent = letters.write("me", News(runs, orders, changed))
    assert all(len(letter.encode()) < 8000 for letter in sent)
    read = [letters.read(letter) for letter in sent]
    if read[0] is not None and read[0].look:
        assert len(msgspec.json.encode((runs, orders, changed))) > letters.LETTER_BYTES
        assert len(read) == 1
        return
    found = [letters.news_of(letter) for letter in read if letter is not None]
    assert len(found) == len(sent)
    # Halves of halves keep their order.
    assert [run for news in found for run in news.runs] == list(dict.fromkeys(runs))
    assert [order for news in found for order in news.orders] == list(dict.fromkeys(orders))
    assert [change for news in found for change in news.changed] == list(dict.fromkeys(changed))
    assert all(letters.is_from("me", letter) and not letters.is_from("m", letter) for letter in sent)


def test_too_many_news_are_a_word_to_look() -> None:
    (sent,) = letters.write("me", News([f"run_{n:030d}" for n in range(2000)]))
    letter = letters.read(sent)
    assert letter is not None
    assert (letter.look, letter.runs) == (True, ())


def test_one_name_that_fits_no_letter_is_a_word_to_look() -> None:
    (sent,) = letters.write("me", News(["x" * 9000]))
    assert len(sent) < 8000
    letter = letters.read(sent)
    assert letter is not None
    assert letter.look


def test_what_is_no_letter_is_not_read() -> None:
    assert [letters.read(text) for text in ("", "hello", "[1]", "{}")] == [None] * 4


def test_words_have_their_places() -> None:
    assert vector_of("The river, the RIVER's end") == "'the':1,3 'river':2,4 's':5 'end':6"
    assert vector_of("…") == ""


def test_words_past_what_postgres_takes_are_left_out() -> None:
    assert vector_of("a " + "x" * (WORD_BYTES + 1) + " b") == "'a':1 'b':3"
    many = vector_of(" ".join(f"w{n}" for n in range(200_000)))
    assert VECTOR_BYTES // 2 < len(many) < 1 << 20
    assert ":16383 " in many
    assert vector_of("again " * 1000).count(",") == 199


def test_all_words_are_looked_for_and_the_last_may_be_only_begun() -> None:
    assert query_of("Two riv") == "'two' & 'riv':*"
    assert query_of("…") is None
    assert query_of("x" * (WORD_BYTES + 1)) is None


def test_locks_of_different_names_differ() -> None:
    names = [("a", "b"), ("ab",), ("a", "", "b"), ("a\0b",)]
    assert len({lock_number(*name) for name in names}) == 3
    assert all(-(1 << 63) <= lock_number(*name) < 1 << 63 for name in names)
