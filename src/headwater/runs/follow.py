"""A reader of a run's log, with a cursor: replay and live are the same code, wherever the run is.

A follower holds no queue. It takes what lies past its cursor when it has time for it: from the memory of the worker
that has the run if it is this one, else, and for what is older, from the store.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from headwater import sse
from headwater.errors import StoreError
from headwater.events import Entry, RunEnded, decode_entry, encode_entry, wire_name
from headwater.runs.live import LiveRun
from headwater.store.base import Store
from headwater.store.news import report

_LEFT: Final = object()
"""Who has read a run that no store has, and is gone: nobody else will."""


class Finder(Protocol):
    """Where live runs are found: `Runs`."""

    def live(self, run_id: str) -> LiveRun | None: ...

    def left(self, follower: "Follower") -> None:
        """It has left."""


class GoneError(StoreError):
    """There is no such log: it was deleted, or dropped after its time."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"{run_id} has no log any more", trouble="lost")


class ClosingError(StoreError):
    """This worker ends, and the run does not: whoever follows is to come back, to any worker."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"The server ends, and {run_id} does not: come back for the rest.", trouble="unreachable")


class Follower:
    """`next` until it gives nothing. `leave` it when done."""

    def __init__(self, finder: Finder, store: Store, owner: str | None, run_id: str, after: int = -1) -> None:
        self.run_id = run_id
        self.cursor = after
        """The last that was taken."""
        self._finder = finder
        self._store = store
        self._owner = owner
        self._live: LiveRun | None = None
        self._unwatch: Callable[[], None] | None = None
        self._told: Callable[[], None] | None = None
        self._waking: asyncio.Future[None] | None = None
        self._news = False
        self._closing = False
        self.ended = False

    def close(self) -> None:
        """What there is can still be taken; instead of waiting for more, `ClosingError` is raised."""
        self._closing = True
        try:
            self._on_news()
        except Exception as error:
            # One that breaks keeps nobody else from being told.
            report(self._on_news, error)

    def leave(self) -> None:
        live = self._live
        self._finder.left(self)
        self._detach()
        # It and whom it tells, it and what it reads would hold each other until the next garbage collection.
        self._told = None
        if live is not None and live.reader is self:
            live.reader = _LEFT

    def _detach(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = self._live = None

    def on_news(self, told: Callable[[], None]) -> None:
        """Instead of waiting in `next`: be told, on the event loop, that `take_nowait` may have something."""
        self._told = told
        self._attach()

    def take_nowait(self) -> Sequence[Entry] | None:
        """What can be had at once, which may be nothing. None: it has to be read from the store, by `next` or `read`.

        Raises the store's trouble, if it has any: an error that is no ending.
        """
        live = self._live
        if live is None or live.lost:
            self._attach()
            live = self._live
            if live is None:
                return None
        if live.trouble is not None:
            raise live.trouble
        if live.lost:
            return None
        if not live.run.recorded:
            # Nobody else has its log, and what was taken is gone: it is for the first one who follows it.
            live.reader = live.reader or self
            if live.reader is not self:
                raise GoneError(self.run_id)
            # What is not there any more it has had.
            self.cursor = max(self.cursor, live.log.first_seq - 1)
        entries = live.log.after(self.cursor)
        if entries:
            last = entries[-1]
            self.cursor, self.ended = last.seq, type(last.event) is RunEnded
            if not live.run.recorded:
                live.log.forget(self.cursor)
        elif live.run.outcome is not None and self.cursor >= live.log.last_seq:
            self.ended = True
        return entries

    def take_plain(self) -> Sequence[bytes] | None:
        """The same, if it is plain text and nothing else: as in JSON, without the quotes. None: ask `take_nowait`."""
        live = self._live
        if live is None or live.lost or live.trouble is not None or not live.run.recorded:
            return None
        texts = live.log.plain_after(self.cursor)
        if texts:
            self.cursor += len(texts)
        return texts

    async def next(self) -> Sequence[Entry]:
        """At least one entry, as soon as there is one; nothing after the end."""
        while not self.ended:
            self._attach()
            self._news = False
            entries = self.take_nowait()
            if entries is None:
                entries = await self.read()
            if entries:
                return entries
            if not self._news and not self.ended:
                await self._wait()
        return ()

    async def read(self) -> Sequence[Entry]:
        """What the store has past the cursor, which may be nothing yet. Raises `GoneError`."""
        found = await self._store.read(self._owner, self.run_id, self.cursor)
        if found is None or found.run.log_dropped:
            raise GoneError(self.run_id)
        lines = [line for batch in found.batches for line in batch.after(self.cursor)]
        entries = [decode_entry(line) for line in lines]
        if entries:
            self.cursor = entries[-1].seq
            self.ended = type(entries[-1].event) is RunEnded
        elif found.run.outcome is not None:
            self.ended = True
        elif self._closing:
            raise ClosingError(self.run_id)
        return entries

    def _attach(self) -> None:
        """Listen where the news is: at the live run if this worker has it, else at the store."""
        live = self._finder.live(self.run_id)
        if live is not None and self._owner not in (None, live.run.owner):
            # Another's: as if it were not there, which is what the store will say.
            live = None
        known = self._live
        if known is not None and not known.lost and live in (None, known):
            # One that is over is read to its end from memory.
            return
        if known is None and live is None and self._unwatch is not None:
            return
        self._detach()
        if live is None or live.lost:
            self._unwatch = self._store.watch_run(self.run_id, self._on_news)
        else:
            self._live = live
            # Whoever is told by callback waits for nothing here.
            self._unwatch = live.watch(self._told or self._on_news)

    def _on_news(self) -> None:
        self._news = True
        if self._waking is not None and not self._waking.done():
            self._waking.set_result(None)
        if self._told is not None:
            self._told()

    async def _wait(self) -> None:
        # One future a follower: cancelling one that waits for a shared future would cancel it for all.
        self._waking = asyncio.get_running_loop().create_future()
        await self._waking


def frame(entry: Entry) -> bytes:
    """As native followers get it: the stored form, under its name and number."""
    return sse.encode(encode_entry(entry), event=wire_name(entry.event), id=entry.seq)
