"""One timer for all streams: a task or a timer each would cost more than the writes.

It sleeps on the clock that it is given until the first callback is due.
"""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import Final

from headwater.clock import Clock

# What is due so soon after a wake is not worth another one.
SLACK_S: Final = 0.0005


class Due:
    """A callback that waits for its time."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Pacer:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Due]] = []
        self._order = count()
        self._sleeper: asyncio.Task[None] | None = None
        self._wakes_s = 0.0

    def now_s(self) -> float:
        return self._clock.now_s()

    def at(self, due_s: float, callback: Callable[[], None]) -> Due:
        due = Due(callback)
        heapq.heappush(self._heap, (due_s, next(self._order), due))
        # It is done when a callback has raised: that is one stream's trouble, not all the others'.
        if self._sleeper is None or self._sleeper.done() or due_s < self._wakes_s:
            self._sleep()
        return due

    def close(self) -> None:
        self._heap.clear()
        if self._sleeper is not None:
            self._sleeper.cancel()
            self._sleeper = None

    def _sleep(self) -> None:
        # A cancel would silence what a task that has failed has to tell.
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.cancel()
        self._wakes_s = self._heap[0][0]
        self._sleeper = asyncio.get_running_loop().create_task(self._wake_later(self._wakes_s))

    async def _wake_later(self, due_s: float) -> None:
        while True:
            await self._clock.sleep(max(0.0, due_s - self._clock.now_s()))
            # While they run it is awake: what they add needs no other sleeper.
            self._wakes_s = float("-inf")
            until_s = self._clock.now_s() + SLACK_S
            while self._heap and self._heap[0][0] <= until_s:
                callback = heapq.heappop(self._heap)[2].callback
                if callback is not None:
                    callback()
            if not self._heap:
                self._sleeper = None
                return
            due_s = self._wakes_s = self._heap[0][0]
