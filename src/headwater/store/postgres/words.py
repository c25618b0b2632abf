"""What search looks through, as Postgres keeps it: words with their places.

The words are ours (`store.words`), and go past Postgres' own parser, which would cut them by its own rules and differ
from the other stores.
"""

from itertools import islice
from typing import Final

from headwater.store.words import words_of

WORD_BYTES: Final = 2_000
"""Postgres takes words of up to 2,046 bytes."""
VECTOR_BYTES: Final = 500_000
"""And 1 MB of them in all, with their places."""
_PLACES: Final = 200
_LAST_PLACE: Final = 16_383


def vector_of(text: str) -> str:
    """As the input of `tsvector`. What is past its limits is not found."""
    places: dict[str, list[int]] = {}
    size = 0
    for place, word in enumerate(words_of(text), 1):
        length = len(word.encode())
        if length > WORD_BYTES:
            continue
        size += length + 4
        if size > VECTOR_BYTES:
            break
        places.setdefault(word, []).append(min(place, _LAST_PLACE))
    return " ".join(f"'{word}':{','.join(map(str, islice(found, _PLACES)))}" for word, found in places.items())


def query_of(words: str) -> str | None:
    """As the input of `tsquery`: all of them, the last one perhaps only begun. None: there is nothing to look for."""
    wanted = [f"'{word}'" for word in words_of(words) if len(word.encode()) <= WORD_BYTES]
    return " & ".join(wanted) + ":*" if wanted else None
