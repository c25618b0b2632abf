"""Unrecorded runs that have ended and are not written yet: whoever looks for one finds it here meanwhile.

Values only: when they are written, and how, is the engine's.
"""

from headwater.records import Run


class Notes:
    def __init__(self) -> None:
        self._waiting: dict[str, Run] = {}
        self._under_way: list[dict[str, Run]] = []
        """Taken, and not known to be in the store: where that is slow, several."""

    def add(self, run: Run) -> None:
        self._waiting[run.id] = run

    def take(self) -> dict[str, Run]:
        """All that wait. They are still found until they are `done`."""
        taken, self._waiting = self._waiting, {}
        self._under_way.append(taken)
        return taken

    def done(self, taken: dict[str, Run]) -> None:
        """They are in the store, or never will be."""
        self._under_way = [one for one in self._under_way if one is not taken]

    def find(self, run_id: str) -> Run | None:
        if run_id in self._waiting:
            return self._waiting[run_id]
        return next((taken[run_id] for taken in self._under_way if run_id in taken), None)

    def all(self) -> list[Run]:
        return [run for notes in (self._waiting, *self._under_way) for run in notes.values()]
