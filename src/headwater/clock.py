"""The time, as something that can be handed in: a test brings its own (`testing.ManualClock`)."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now_s(self) -> float:
        """Seconds that only grow, from no particular start."""

    def unix_s(self) -> float:
        """Seconds since 1970."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    # Without a frame of ours: a request asks fourteen times.
    now_s = staticmethod(time.monotonic)
    unix_s = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
