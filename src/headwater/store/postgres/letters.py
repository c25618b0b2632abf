"""News as they travel from worker to worker: letters of at most so many bytes, as NOTIFY takes them.

Pure. A letter is a hint: one that is lost, or too large to be sent, costs time and nothing else.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct, field

from headwater.store.news import News
from headwater.store.results import Changed

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


class _Sized(Struct):
    """What one letter is to have."""

    size: int
    news: News = field(default_factory=News)


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Letter).decode


def write(sender: str, news: News) -> list[str]:
    """The letters that say it."""
    letters = [_encode(_letter(sender, part)) for part in _parts(sender, news)]
    if len(letters) > LETTERS or max(map(len, letters)) > LETTER_BYTES:
        letters = [_encode(Letter(sender, look=True))]
    return [letter.decode() for letter in letters]


def read(letter: str) -> Letter | None:
    """None: nobody here wrote that."""
    try:
        return _decode(letter)
    except msgspec.DecodeError:
        return None


def news_of(letter: Letter) -> News:
    return News(list(letter.runs), list(letter.orders), list(letter.changed))


def _letter(sender: str, news: News) -> Letter:
    return Letter(sender, tuple(news.runs), tuple(news.orders), tuple(news.changed))


def _parts(sender: str, news: News) -> Iterator[News]:
    room = LETTER_BYTES - len(_encode(Letter(sender, ("",), (("", ""),), look=True)))
    part = _Sized(0)
    for kind, items in (("runs", news.runs), ("orders", news.orders), ("changed", news.changed)):
        for item in _once(items):
            size = len(_encode(item)) + 1
            if part.size + size > room:
                yield part.news
                part = _Sized(0)
            getattr(part.news, kind).append(item)
            part.size += size
    yield part.news


def _once(items: Sequence[object]) -> Sequence[object]:
    return list(dict.fromkeys(items))
