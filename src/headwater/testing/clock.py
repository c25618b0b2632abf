"""Time that passes when a test says so."""

import asyncio
import heapq
from itertools import count


class ManualClock:
    """`advance` wakes the sleepers whose time has come, in order, and lets each run before the next."""

    def __init__(self, start_s: float = 1000.0, unix_s: float = 1_800_000_000.0) -> None:
        self._now_s = start_s
        self._offset_s = unix_s - start_s
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now_s(self) -> float:
        return self._now_s

    def unix_s(self) -> float:
        return self._now_s + self._offset_s

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now_s + seconds, next(self._order), woken))
        await woken

    @property
    def sleepers(self) -> int:
        return sum(not woken.done() for _, _, woken in self._sleepers)

    async def advance(self, seconds: float) -> None:
        await _settle()
        end_s = self._now_s + seconds
        while self._sleepers and self._sleepers[0][0] <= end_s:
            due_s, _, woken = heapq.heappop(self._sleepers)
            self._now_s = max(self._now_s, due_s)
            if not woken.done():
                woken.set_result(None)
                await _settle()
        self._now_s = end_s
        await _settle()


async def _settle() -> None:
    """Lets everything that can go on go on, as far as it needs no I/O."""
    for _ in range(20):
        await asyncio.sleep(0)
