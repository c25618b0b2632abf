"""What an answer's usage adds up to, for encoders that see its events one by one."""

from typing import Any

from msgspec import Struct

from headwater.dialects.details import added
from headwater.events import AttemptStarted, Usage


class Totals(Struct):
    """The sum over the turns, and over what was cut off in them; what was given up does not count."""

    _turn: int = 0
    _settled: Usage | None = None
    _this: Usage | None = None
    _settled_details: dict[str, Any] = {}
    _details: dict[str, Any] = {}

    def report(self, usage: Usage) -> None:
        """Of this turn; a later one replaces it."""
        self._this = usage

    def tell(self, details: dict[str, Any] | None) -> None:
        """What only its own dialect has, of this turn."""
        if details:
            self._details = added(self._details, details)

    def attempt(self, event: AttemptStarted) -> bool:
        """Another attempt begins. True: with a new turn."""
        new = event.turn > self._turn
        if new or (event.stands == "everything" and self._this is not None):
            self._settled = self.total()
        if new or event.stands == "everything":
            self._settled_details = self.details
        self._turn = event.turn
        self._this = None
        self._details = {}
        return new

    def total(self) -> Usage:
        this = self._this or Usage()
        return this if self._settled is None else self._settled + this

    @property
    def details(self) -> dict[str, Any]:
        summed: dict[str, Any] = added(self._settled_details, self._details)
        return summed
