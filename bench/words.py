"""What the mock upstream says and the load generator expects: the same words in the same order."""

from typing import Final

WORDS: Final = (
    " the",
    " with",
    " from",
    " that",
    " river",
    " begins",
    " above",
    " every",
    " town",
    " and",
    " runs",
    " on",
)


def word(n: int) -> str:
    return WORDS[(n * 7 + n // 12) % 12]
