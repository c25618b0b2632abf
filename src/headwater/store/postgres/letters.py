"""News as they travel from worker to worker: letters of at most so many bytes, as NOTIFY takes them.

Pure. A letter is a hint: one that is lost, or too large to be sent, costs time and nothing else.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from headwater.store.news import News
from headwater.store.results import Changed

T = TypeVar("T")

LETTER_BYTES: Final = 7_900
"""NOTIFY takes less than 8,000."""
LETTERS: Final = 4
"""More than so many at once, some 1,000 runs, and all are told to look for themselves."""


class Letter(Struct, frozen=True, omit_defaults=True, array_like=True):
    sender: str
    """Each hears its own letters, too, and has known before."""
    runs: tuple[str, ...] = ()
    orders: tuple[tuple[str, str], ...] = ()
    changed: tuple[tuple[str, Changed], ...] = ()
    look: bool = False
    """There is more than is in it: look for yourself."""


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Letter).decode


def write(sender: str, news: News) -> list[str]:
    """The letters that say it."""
    once = Letter(sender, _once(news.runs), _once(news.orders), _once(news.changed))
    letters = _split(once, LETTERS)
    return [letter.decode() for letter in letters or [_encode(Letter(sender, look=True))]]


def is_from(sender: str, letter: str) -> bool:
    """Without reading all of it."""
    return letter.startswith(f'["{sender}"')


def read(letter: str) -> Letter | None:
    """None: nobody here wrote that."""
    try:
        return _decode(letter)
    except msgspec.DecodeError:
        return None


def news_of(letter: Letter) -> News:
    return News(list(letter.runs), list(letter.orders), list(letter.changed))


def _split(letter: Letter, limit: int) -> list[bytes]:
    """Into halves, until they fit. Nothing, if that makes more than the limit, or can't be done."""
    whole = _encode(letter)
    if len(whole) <= LETTER_BYTES:
        return [whole]
    if limit == 1 or len(whole) > limit * LETTER_BYTES:
        return []
    first, second = _half(letter, 0), _half(letter, 1)
    letters = [_split(first, limit // 2), _split(second, limit // 2)]
    return [*letters[0], *letters[1]] if all(letters) else []


def _half(letter: Letter, which: int) -> Letter:
    runs, orders, changed = letter.runs, letter.orders, letter.changed
    return Letter(letter.sender, _half_of(runs, which), _half_of(orders, which), _half_of(changed, which))


def _half_of(items: tuple[T, ...], which: int) -> tuple[T, ...]:
    middle = (len(items) + 1) // 2
    return items[middle:] if which else items[:middle]


def _once(items: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
