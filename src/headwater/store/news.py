"""Who wants to hear of what, within one worker. Telling is a plain call on the event loop: no task wakes for it."""

import asyncio
from collections.abc import Callable
from typing import Generic, ParamSpec

from msgspec import Struct, field

from headwater.records import Run
from headwater.store.results import Changed

P = ParamSpec("P")


class News(Struct):
    """What a transaction has to tell once it is committed."""

    runs: list[str] = field(default_factory=list)
    orders: list[tuple[str, str]] = field(default_factory=list)
    """A worker, and the run of it that somebody wants something of."""
    changed: list[tuple[str, Changed]] = field(default_factory=list)
    """An owner, and what of theirs."""

    def of_run(self, run: Run) -> None:
        self.runs.append(run.id)
        self.changed.append((run.owner, Changed("run", run.id)))

    def of_session(self, owner: str, session_id: str) -> None:
        self.changed.append((owner, Changed("session", session_id)))

    def __bool__(self) -> bool:
        return bool(self.runs or self.orders or self.changed)


class Watchers(Generic[P]):
    """Callbacks by what they are about."""

    def __init__(self) -> None:
        self._told: dict[str, list[Callable[P, None]]] = {}

    def add(self, about: str, told: Callable[P, None]) -> Callable[[], None]:
        # A list and no set: the same callback may be there twice, and each goes by itself.
        self._told.setdefault(about, []).append(told)

        def unwatch() -> None:
            watchers = self._told.get(about, [])
            if told in watchers:
                watchers.remove(told)
            if not watchers:
                self._told.pop(about, None)

        return unwatch

    def tell(self, about: str, *args: P.args, **kwargs: P.kwargs) -> None:
        if watchers := self._told.get(about):
            for told in tuple(watchers):
                try:
                    told(*args, **kwargs)
                except Exception as error:
                    report(told, error)

    def watched(self) -> list[str]:
        return list(self._told)

    def __len__(self) -> int:
        return len(self._told)


def report(told: Callable[..., None], error: Exception) -> None:
    """One that raises keeps nobody else from being told."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"{told!r} raised while it was told of a commit", "exception": error}
    )


class Hub:
    def __init__(self) -> None:
        self.runs: Watchers[[]] = Watchers()
        self.orders: Watchers[[str]] = Watchers()
        self.owners: Watchers[[Changed]] = Watchers()

    def publish(self, news: News) -> None:
        # Mostly nobody watches, and a hundred runs may have ended at once.
        for run_id in news.runs if self.runs else ():
            self.runs.tell(run_id)
        for worker_id, run_id in news.orders:
            self.orders.tell(worker_id, run_id)
        for owner, changed in news.changed if self.owners else ():
            self.owners.tell(owner, changed)
