"""A row of the table of requests."""

from collections.abc import Callable, Iterable

from headwater.dialects.carry.fate import Row
from headwater.dialects.carry.question import Question


class Asked(Row, frozen=True):
    """A feature of a request, and its fate in the dialect of an upstream."""

    what: str
    found: Callable[[Question], Iterable[str]]
    """The fields that have it, as the conversation names them."""


def when(field: str, used: Callable[[Question], bool]) -> Callable[[Question], Iterable[str]]:
    return lambda question: (field,) if used(question) else ()
