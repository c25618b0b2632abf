"""Follows many runs at once: one reader, a cursor for each, and no task for any of them."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct

from headwater.errors import StoreError
from headwater.events import Entry
from headwater.runs.follow import Follower


class Came(Struct, frozen=True):
    run_id: str
    entries: Sequence[Entry]


class Left(Struct, frozen=True):
    """It is followed no longer, and has not ended: its log is gone, or the store is in trouble."""

    run_id: str
    error: StoreError


class ManyFollower:
    """`next` for ever; runs that end are left by themselves. `leave` it when done."""

    def __init__(self, followers: Iterable[Follower]) -> None:
        self._followers = {follower.run_id: follower for follower in followers}
        self.cursors = {run_id: follower.cursor for run_id, follower in self._followers.items()}
        """Also of those that have ended."""
        self._ready = dict.fromkeys(self._followers)
        """Whoever may have something; in the order in which they were told."""
        self._waking: asyncio.Future[None] | None = None
        for run_id, follower in self._followers.items():
            follower.on_news(partial(self._on_news, run_id))

    def leave(self) -> None:
        for follower in self._followers.values():
            follower.leave()
        self._followers.clear()

    async def next(self) -> list[Came | Left]:
        """What has come of any, as soon as there is something: each in its order."""
        while True:
            ready, self._ready = self._ready, {}
            found = await asyncio.gather(*(self._take(run_id) for run_id in ready if run_id in self._followers))
            if news := [one for one in found if one is not None]:
                return news
            if not self._ready:
                self._waking = asyncio.get_running_loop().create_future()
                await self._waking

    async def _take(self, run_id: str) -> Came | Left | None:
        follower = self._followers[run_id]
        try:
            entries = follower.take_nowait()
            if entries is None:
                entries = await follower.read()
        except StoreError as error:
            self._drop(run_id)
            return Left(run_id, error)
        if entries:
            self.cursors[run_id] = follower.cursor
            # There may be more than one reading gives.
            self._ready[run_id] = None
        if follower.ended:
            self._drop(run_id)
        return Came(run_id, entries) if entries else None

    def _drop(self, run_id: str) -> None:
        self._followers.pop(run_id).leave()
        self._ready.pop(run_id, None)

    def _on_news(self, run_id: str) -> None:
        self._ready[run_id] = None
        if self._waking is not None and not self._waking.done():
            self._waking.set_result(None)
