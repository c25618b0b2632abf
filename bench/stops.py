"""How long a stop takes: from the cancel of a turn to the upstream's seeing its connection closed, phase by phase."""

import asyncio
import os
import socket
import statistics
import time
from contextlib import ExitStack
from pathlib import Path

from headwater.clock import SystemClock
from headwater.config.settings import ModelSettings, Settings, UpstreamSettings
from headwater.conversation import Request, Text, User
from headwater.simulate.script import Answer, Http, Pace, Stall
from headwater.testing import Simulator
from headwater.testing.upstream import Heard
from headwater.upstream.upstreams import Upstreams

STOPS = 100
HELLO = Request((User((Text("Hello"),)),))
PHASES = {
    "waiting for the head": Answer(faults=(Stall(at="before_head"),)),
    "between chunks": Answer(tokens=1000, pace=Pace(tokens_per_s=50)),
    "in a silent read": Answer(faults=(Stall(tokens=2),)),
    "in backoff": Answer(http=Http(status=503, headers={"retry-after": "20"})),
}


async def stop_once(upstreams: Upstreams, simulator: Simulator, n: int) -> float:
    model = await upstreams.model("m")
    task = asyncio.create_task(model.turn(HELLO, call_id_prefix="call_").run(Heard()))
    await simulator.wait_for_requests(n + 1)
    await asyncio.sleep(0.03)
    start_unix_s = time.time()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    done_s = time.time() - start_unix_s
    if simulator.requests[n].ending == "answered":
        # In backoff there is no connection to close.
        return done_s * 1000
    closed_unix_s = (await simulator.wait_for_close(n)).closed_unix_s
    assert closed_unix_s is not None
    return (max(closed_unix_s, start_unix_s + done_s) - start_unix_s) * 1000


async def measure(answer: Answer) -> list[float]:
    async with Simulator() as simulator:
        simulator.script("m", answer)
        up = UpstreamSettings(base_url=f"{simulator.url}/v1", list_models=False)
        settings = Settings(upstreams={"up": up}, models=(ModelSettings(name="m", upstream="up"),))
        upstreams = Upstreams(settings, SystemClock(), Path("unused"))
        times = [await stop_once(upstreams, simulator, n) for n in range(STOPS)]
        await upstreams.close()
        return times


async def measure_connecting() -> list[float]:
    """No handshake ever ends, so there is no upstream to see it: until the turn is over and its socket closed."""
    with socket.socket() as listener, ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        up = UpstreamSettings(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1", list_models=False)
        upstreams = Upstreams(Settings(upstreams={"up": up}), SystemClock(), Path("unused"))
        times = [await stop_connecting(upstreams) for _ in range(STOPS)]
        await upstreams.close()
        return times


async def stop_connecting(upstreams: Upstreams) -> float:
    model = await upstreams.model("up/m")
    before = len(os.listdir("/dev/fd"))
    task = asyncio.create_task(model.turn(HELLO, call_id_prefix="call_").run(Heard()))
    await asyncio.sleep(0.03)
    assert len(os.listdir("/dev/fd")) == before + 1
    start_s = time.perf_counter()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    took_s = time.perf_counter() - start_s
    assert len(os.listdir("/dev/fd")) == before
    return took_s * 1000


def main() -> None:
    print("\n## A stop: until the upstream sees its connection closed, ms\n")
    print("| in which phase | p50 | p99 |\n|---|---|---|")
    phases = {"connecting": measure_connecting()} | {phase: measure(answer) for phase, answer in PHASES.items()}
    for phase, measuring in phases.items():
        times = asyncio.run(measuring)
        p99 = statistics.quantiles(times, n=100)[98]
        print(f"| {phase} | {statistics.median(times):.2f} | {p99:.2f} |")


if __name__ == "__main__":
    main()
