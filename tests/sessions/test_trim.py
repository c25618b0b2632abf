"""A context that no longer fits."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.conversation import (
    Assistant,
    Image,
    Message,
    Opaque,
    Parameters,
    Reasoning,
    Request,
    System,
    Text,
    Tool,
    ToolCall,
    User,
)
from headwater.sessions.trim import room, tokens, trim


def exchange(size: int) -> list[Message]:
    """Of `size` tokens, for some size of 9 and more."""
    return [User((Text("u"),)), Assistant((Text("a" * 4 * (size - 9)),))]


def test_tokens_are_estimated_from_all_that_is_sent() -> None:
    assert tokens(User((Text("x" * 40),))) == 14
    assert tokens(User((Text("河は流れる。" * 4),))) == 4 + 18
    assert tokens(User((Image("https://example.com/a.png"),))) > 1000
    assert tokens(Assistant((Reasoning("x" * 8), ToolCall("c", "look", '{"a":1}')))) == 4 + 2 + 1 + 2
    assert tokens(User((Opaque("messages", {"type": "document"}),))) == 4 + 5
    assert tokens(User((Text("\ud800"),))) == 5


def test_what_fits_stays_as_it_is() -> None:
    exchanges = [exchange(10), exchange(10)]
    trimmed = trim(exchanges, 20)
    assert list(trimmed.kept) == exchanges
    assert trimmed.left_out == 0


def test_the_oldest_exchanges_go_first_and_whole() -> None:
    exchanges = [exchange(10) for _ in range(10)]
    trimmed = trim(exchanges, 80)
    assert list(trimmed.kept) == exchanges[2:]
    assert trimmed.left_out == 4


def test_the_last_one_stays_whatever_it_takes() -> None:
    exchanges = [exchange(10), exchange(1000)]
    assert list(trim(exchanges, 50).kept) == exchanges[1:]
    assert list(trim(exchanges, -50).kept) == exchanges[1:]
    assert trim([], -50).kept == ()


def test_the_beginning_stays_the_same_for_some_turns() -> None:
    """A provider's cache holds what it has seen from the beginning on."""
    exchanges = [exchange(10) for _ in range(100)]
    firsts = [len(trim(exchanges[:n], 200).kept) for n in range(20, 100)]
    begins = [n - kept for n, kept in zip(range(20, 100), firsts, strict=True)]
    assert len(set(begins)) <= 80 // 5 + 1


@given(st.lists(st.integers(9, 60), min_size=1, max_size=20), st.integers(1, 300))
def test_what_is_kept_fits_and_nothing_but_the_beginning_is_gone(sizes: list[int], room_tokens: int) -> None:
    exchanges = [exchange(size) for size in sizes]
    trimmed = trim(exchanges, room_tokens)
    kept = len(trimmed.kept)
    assert kept >= 1
    assert list(trimmed.kept) == exchanges[-kept:]
    assert trimmed.left_out == 2 * (len(exchanges) - kept)
    assert kept == 1 or sum(sizes[-kept:]) <= room_tokens


def test_there_must_be_room_for_the_answer_and_all_that_comes_with_it() -> None:
    request = Request((System((Text("x" * 36),)),), parameters=Parameters(max_tokens=100))
    assert room(request, 1000) == 1000 - 100 - 13
    assert room(Request(()), 1000) == 750
    assert room(Request(()), 100_000) == 100_000 - 4096
    assert room(Request((), tools=(Tool("look", "It looks."),)), 1000) < 750
