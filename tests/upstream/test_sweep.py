"""One look at all that waits."""

import asyncio
from typing import Any

import pytest

from headwater.testing import ManualClock
from headwater.upstream.sweep import Sweep

pytestmark = pytest.mark.anyio


async def test_one_that_raises_keeps_nobody_else_from_being_told() -> None:
    clock, told, reported = ManualClock(), list[float](), list[Any]()

    def broken(now_s: float) -> None:
        raise ValueError("on purpose")

    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    sweep = Sweep(clock)
    sweep.add(broken)
    sweep.add(told.append)
    for _ in range(3):
        await clock.advance(0.25)
    assert len(told) == len(reported) == 3
    await sweep.close()
