"""Exchanges without a network: steps that are played by a clock. The demo models are asked this way."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

from headwater.clock import Clock
from headwater.judge import Transport
from headwater.upstream.demo.steps import Cut, End, Hang, Pause, Send, Step
from headwater.upstream.exchange import OnBytes, OnEnd


class PlayedExchange:
    def __init__(
        self, steps: Iterator[Step], clock: Clock, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self._steps = steps
        self._clock = clock
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self.closed = False
        self.was_reset = False
        self._going = asyncio.Event()
        self._going.set()
        self._task: asyncio.Task[None] | None = None

    def listen(self, on_bytes: OnBytes, on_end: OnEnd) -> None:
        self._task = asyncio.create_task(self._play(on_bytes, on_end), name="played")

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    def finish(self) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True
        if self._task is not None:
            self._task.cancel()

    async def _play(self, on_bytes: OnBytes, on_end: OnEnd) -> None:
        on_end(await self._to_the_end(on_bytes))

    async def _to_the_end(self, on_bytes: OnBytes) -> Transport:
        for step in self._steps:
            match step:
                case Pause(seconds=seconds):
                    await self._clock.sleep(seconds)
                case Send(data=data):
                    await self._going.wait()
                    on_bytes(data)
                case Cut():
                    return "broken"
                case End():
                    break
                case Hang():
                    await asyncio.get_running_loop().create_future()
                case unreachable:
                    assert_never(unreachable)
        return "clean"


class PlayedOpener:
    def __init__(self, answer: Callable[[bytes], Iterator[Step]], clock: Clock) -> None:
        self._answer = answer
        self._clock = clock

    async def open(self, body: bytes, key: str | None) -> PlayedExchange:
        return PlayedExchange(self._answer(body), self._clock)
