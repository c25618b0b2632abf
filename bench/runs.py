"""What a recorded run costs from its source to its followers: CPU per event, delay, memory; on SQLite.

Sources push a token each, in turn, at a pace; every run has one follower that takes by callback, as the server's do.
"""

import asyncio
import gc
import os
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

import uvloop
from msgspec import Struct

from bench.store import whole_run_us
from headwater.clock import SystemClock
from headwater.events import AttemptStarted, Completed, TextDelta, make_id
from headwater.records import Run
from headwater.runs.habits import Habits
from headwater.runs.service import Runs
from headwater.source import Ended, Sink, Source, emit
from headwater.store.results import Start, Started
from headwater.store.sqlite import open_sqlite

OWNER = "local"


class Load(Struct, frozen=True):
    runs: int
    tokens_per_s: float
    """Of each run."""
    seconds: float = 4.0
    stored: int = 100
    """Runs that the store holds already."""


LOADS = (Load(1, 50), Load(32, 50), Load(256, 50), Load(1_000, 15), Load(32, 50, stored=10_000))


def new_id(prefix: str) -> str:
    return make_id(prefix, time.time_ns() // 1_000_000, os.urandom(16))


class Tap:
    """A source that gives what it is told to, when it is told to."""

    unwind_s: float | None = None

    def __init__(self) -> None:
        self.sink: Sink | None = None
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, sink: Sink) -> Ended:
        emit(sink, AttemptStarted("up", "m"))
        self.sink = sink
        await self.over
        return Ended(Completed("stop"))

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class Figures(Struct, frozen=True):
    us_per_event: float
    p50_ms: float
    p99_ms: float
    run_kb: float


async def measure(load: Load, folder: Path) -> Figures:
    clock = SystemClock()
    store = await open_sqlite(folder / f"{load.runs}-{load.stored}.db", address="", clock=clock, entropy=os.urandom)
    await whole_run_us(store, load.stored)
    taps: dict[str, Tap] = {}

    async def make_source(run: Run) -> Source:
        taps[run.id] = Tap()
        return taps[run.id]

    runs = Runs(Habits(store=store, clock=clock, make_id=new_id), make_source)
    await runs.open()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    pushed_s: dict[str, float] = {}
    delays_s: list[float] = []
    for _ in range(load.runs):
        run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=time.time())
        assert isinstance(await runs.start(Start(run=run)), Started)
        follow(runs, run.id, pushed_s, delays_s)
    while len(taps) < load.runs or not all(tap.sink for tap in taps.values()):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    gc.collect()
    run_kb = (tracemalloc.get_traced_memory()[0] - before) / load.runs / 1024
    tracemalloc.stop()
    delays_s.clear()
    start_s = time.process_time()
    pushed = await push(load, taps, pushed_s)
    cpu_s = time.process_time() - start_s
    # The ends come all at once, and are no answer to the last token: their delay would be a thousand runs' work.
    pushed_s.clear()
    for tap in taps.values():
        tap.over.set_result(None)
    await runs.close(10)
    await store.close()
    p99_ms = statistics.quantiles(delays_s, n=100)[98] * 1000
    return Figures(cpu_s / pushed * 1e6, statistics.median(delays_s) * 1000, p99_ms, run_kb)


def follow(runs: Runs, run_id: str, pushed_s: dict[str, float], delays_s: list[float]) -> None:
    follower = runs.follower(OWNER, run_id)

    def told() -> None:
        if follower.take_nowait() and run_id in pushed_s:
            delays_s.append(time.perf_counter() - pushed_s[run_id])

    follower.on_news(told)


async def push(load: Load, taps: dict[str, Tap], pushed_s: dict[str, float]) -> int:
    """Every run's tokens, spread evenly over time; how many."""
    ids, count = list(taps), 0
    per_s = load.runs * load.tokens_per_s
    start_s = time.perf_counter()
    while (now_s := time.perf_counter()) < start_s + load.seconds:
        while count < (now_s - start_s) * per_s:
            run_id = ids[count % len(ids)]
            sink = taps[run_id].sink
            assert sink is not None
            pushed_s[run_id] = time.perf_counter()
            emit(sink, TextDelta(" word"))
            count += 1
        # Not before the next one is due: with few runs, the looking would be most of what is measured.
        await asyncio.sleep(max(0.001, start_s + count / per_s - now_s))
    return count


def main() -> None:
    print("\n## Recorded runs, from the source to a follower (SQLite)\n")
    print("| | CPU µs an event | to the follower, p50 / p99 ms | kB an open run |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for load in LOADS:
            figures = uvloop.run(measure(load, Path(folder)))
            delay = f"{figures.p50_ms:.2f} / {figures.p99_ms:.2f}"
            name = f"{load.runs:,} runs × {load.tokens_per_s:g} tokens/s, {load.stored:,} stored"
            print(f"| {name} | {figures.us_per_event:.1f} | {delay} | {figures.run_kb:.1f} |")


if __name__ == "__main__":
    main()
