"""A thousand turns at once through one process: nothing of them stays."""

import asyncio
import gc
import os
from pathlib import Path
from typing import Any

import pytest

from headwater.accumulate import Accumulator
from headwater.clock import SystemClock
from headwater.config.settings import Settings, UpstreamSettings
from headwater.conversation import Request, Text, User
from headwater.events import Completed
from headwater.simulate.script import Answer, Pace, Stall
from headwater.source import Ended
from headwater.testing import Simulator
from headwater.upstream.attempt import Attempt
from headwater.upstream.http import HttpExchange
from headwater.upstream.model import ModelTurn
from headwater.upstream.upstreams import Upstreams
from tests.upstream.asking import Heard

pytestmark = pytest.mark.anyio

TURNS = 1000


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def left_over() -> list[object]:
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) in (Attempt, HttpExchange, ModelTurn, Accumulator)]


async def test_a_thousand_turns_leave_nothing_behind() -> None:
    before = len(left_over())
    files, tasks = open_files(), len(asyncio.all_tasks())
    async with Simulator() as simulator:
        simulator.script("whole", Answer(tokens=30, pace=Pace(tokens_per_s=10)))
        simulator.script("endless", Answer(pace=Pace(tokens_per_s=10), faults=(Stall(tokens=5),)))
        up = UpstreamSettings(base_url=f"{simulator.url}/v1", list_models=False, connect_timeout_s=60)
        settings = Settings(upstreams={"up": up})
        upstreams = Upstreams(settings, SystemClock(), Path("unused"))
        models = [await upstreams.model("up/whole"), await upstreams.model("up/endless")]

        async def one(n: int) -> Any:
            turn = models[n % 2].turn(Request((User((Text("Hello"),)),)), call_id_prefix="call_")
            heard = Heard()
            task = asyncio.create_task(heard.all_of(turn))
            if n % 2:
                # Half of them are stopped on the way, each at its own point.
                await heard.first.wait()
                await asyncio.sleep(n / TURNS)
                task.cancel()
            return (await asyncio.gather(task, return_exceptions=True))[0]

        try:
            ends = await asyncio.wait_for(asyncio.gather(*(one(n) for n in range(TURNS))), 120)
            assert ends[::2] == [Ended(Completed("stop"))] * (TURNS // 2)
            stopped = [n for n, end in enumerate(ends) if isinstance(end, asyncio.CancelledError)]
            assert stopped == list(range(1, TURNS, 2))
            # Connections whose turns were whole may be kept for the next; the others are closed by now.
            for request in simulator.requests:
                if request.ending != "answered":
                    await asyncio.wait_for(simulator.wait_for_close(request.number), 20)
            ends.clear()
        finally:
            await upstreams.close()
        await asyncio.wait_for(simulator.wait_for_connections(0), 20)
    del upstreams, simulator
    await asyncio.sleep(0.1)
    assert len(asyncio.all_tasks()) == tasks
    assert open_files() <= files + 2
    assert len(left_over()) <= before
