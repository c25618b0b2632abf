"""One look at all that waits, four times a second: no timer for each token, nor for each stream."""

import asyncio
from collections.abc import Callable

from headwater.clock import Clock

Tick = Callable[[float], None]


class Sweep:
    """Calls every `tick` that was added with the time, until it is discarded."""

    def __init__(self, clock: Clock, every_s: float = 0.25) -> None:
        self._clock = clock
        self._every_s = every_s
        self._ticks: dict[Tick, None] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, tick: Tick) -> None:
        self._ticks[tick] = None
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="sweep")

    def discard(self, tick: Tick) -> None:
        self._ticks.pop(tick, None)

    async def _run(self) -> None:
        while self._ticks:
            await self._clock.sleep(self._every_s)
            now_s = self._clock.now_s()
            for tick in list(self._ticks):
                try:
                    tick(now_s)
                except Exception as error:
                    # The others are told all the same, now and later.
                    asyncio.get_running_loop().call_exception_handler(
                        {"message": f"{tick!r} raised when it was told the time", "exception": error}
                    )
        self._task = None

    async def close(self) -> None:
        self._ticks.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
