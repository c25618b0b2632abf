"""A row of the table of requests."""

from collections.abc import Callable, Iterable

from headwater.dialects.carry.fate import Fate, Row
from headwater.dialects.carry.question import Question


class Asked(Row, frozen=True):
    """A feature of a request, and its fate in the dialect of an upstream."""

    what: str
    found: Callable[[Question], Iterable[str]]
    """The fields that have it, as the conversation names them."""


def when(field: str, used: Callable[[Question], bool]) -> Callable[[Question], Iterable[str]]:
    return lambda question: (field,) if used(question) else ()


def wherever(what: str, found: Callable[[Question], Iterable[str]], fate: Fate) -> Asked:
    """The same in every dialect that it did not come from."""
    return Asked(what=what, found=found, chat=fate, responses=fate, messages=fate)
