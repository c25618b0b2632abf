"""Several worker processes on one Postgres: events a second, CPU a token, and how late a follower at another one is.

Each worker has runs of its own, whose sources push words that say when they were pushed, and follows some of its
neighbour's. Clocks are those of one machine, so that the times of two processes can be compared.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.runs import OWNER, Tap, new_id
from bench.store_postgres import server_cpu_s
from headwater.clock import SystemClock
from headwater.events import TextDelta
from headwater.records import Run
from headwater.runs.habits import Habits
from headwater.runs.service import Runs
from headwater.source import Source, emit
from headwater.store.postgres import open_postgres
from headwater.store.results import Start, Started
from headwater.testing.postgres import PostgresServer

SECONDS = 4.0
FOLLOWED = 8
"""Of each worker's runs, by its neighbour."""


class Load(Struct, frozen=True):
    runs: int
    """In all."""
    tokens_per_s: float
    """Of each run; 0: as fast as what came before is kept."""


PACED = Load(128, 50)
UNPACED = Load(64, 0)


# -------------------------------------------------------------------- a worker


class Worker:
    def __init__(self, runs: Runs, taps: dict[str, Tap]) -> None:
        self._runs = runs
        self._taps = taps
        self.pushed = 0
        self.late_s: list[float] = []

    def follow(self, run_ids: list[str]) -> asyncio.Task[None]:
        many = self._runs.follow_many(OWNER, dict.fromkeys(run_ids, -1))

        async def read() -> None:
            while True:
                for news in await many.next():
                    now_s = time.monotonic()
                    for entry in getattr(news, "entries", ()):
                        if isinstance(entry.event, TextDelta):
                            self.late_s.append(now_s - float(entry.event.text))

        return asyncio.create_task(read())

    async def push(self, tokens_per_s: float) -> None:
        if tokens_per_s:
            await self._paced(tokens_per_s)
        else:
            await asyncio.gather(*(self._unpaced(run_id) for run_id in self._taps))

    async def _paced(self, tokens_per_s: float) -> None:
        ids, per_s, start_s = list(self._taps), len(self._taps) * tokens_per_s, time.monotonic()
        while (now_s := time.monotonic()) < start_s + SECONDS:
            while self.pushed < (now_s - start_s) * per_s:
                self._push(ids[self.pushed % len(ids)])
            await asyncio.sleep(0.001)

    async def _unpaced(self, run_id: str) -> None:
        """The next word when the one before is committed, as an upstream that is never the slower one."""
        live, until_s = self._runs.live(run_id), time.monotonic() + SECONDS
        assert live is not None
        while time.monotonic() < until_s:
            self._push(run_id)
            await live.kept()

    def _push(self, run_id: str) -> None:
        sink = self._taps[run_id].sink
        assert sink is not None
        emit(sink, TextDelta(f"{time.monotonic():.6f}"))
        self.pushed += 1


async def work(url: str, runs_number: int, tokens_per_s: float) -> None:
    clock, taps = SystemClock(), dict[str, Tap]()
    store = await open_postgres(url, address="bench", clock=clock, entropy=os.urandom)

    async def make_source(run: Run) -> Source:
        taps[run.id] = Tap()
        return taps[run.id]

    runs = Runs(Habits(store=store, clock=clock, make_id=new_id), make_source)
    await runs.open()
    for _ in range(runs_number):
        run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=time.time())
        assert isinstance(await runs.start(Start(run=run)), Started)
    while len(taps) < runs_number or not all(tap.sink for tap in taps.values()):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    worker = Worker(runs, taps)
    _say({"runs": list(taps)})
    following = worker.follow(json.loads(await asyncio.to_thread(sys.stdin.readline)))
    await asyncio.to_thread(sys.stdin.readline)
    before_s = time.process_time()
    await worker.push(tokens_per_s)
    await asyncio.sleep(0.5)
    _say({"pushed": worker.pushed, "cpu_s": time.process_time() - before_s, "late_s": worker.late_s})
    await asyncio.to_thread(sys.stdin.readline)
    following.cancel()
    for tap in taps.values():
        tap.over.set_result(None)
    await runs.close(10)
    await store.close()


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


# -------------------------------------------------------------------- the bench


class Figures(Struct, frozen=True):
    per_s: float
    ours_us: float
    servers_us: float
    late_ms: str


def measure(url: str, folder: Path, workers: int, load: Load) -> Figures:
    command = [sys.executable, "-m", "bench.workers", url, str(load.runs // workers), str(load.tokens_per_s)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(workers)
    ]
    run_ids = [_heard(process)["runs"] for process in processes]
    for n, process in enumerate(processes):
        _tell(process, run_ids[(n + 1) % workers][:FOLLOWED])
    # Until each has heard of the others.
    time.sleep(1.0)
    before_s = server_cpu_s(folder)
    for process in processes:
        _tell(process, "go")
    found = [_heard(process) for process in processes]
    servers_s = server_cpu_s(folder) - before_s
    for process in processes:
        _tell(process, "end")
    for process in processes:
        process.communicate(timeout=60)
    pushed = sum(one["pushed"] for one in found)
    late_s = sorted(late for one in found for late in one["late_s"])
    late = f"{statistics.median(late_s) * 1e3:.1f} / {late_s[int(len(late_s) * 0.99)] * 1e3:.1f}"
    ours_s = sum(one["cpu_s"] for one in found)
    return Figures(pushed / SECONDS, ours_s / pushed * 1e6, servers_s / pushed * 1e6, late)


def _heard(process: "subprocess.Popen[str]") -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def _tell(process: "subprocess.Popen[str]", what: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(what) + "\n")
    process.stdin.flush()


def main() -> None:
    print("\n## Several workers, one Postgres, all on this machine\n")
    print("| workers | load, in all | tokens/s | our CPU, µs a token | Postgres' | pushed → follower, p50 / p99 ms |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="hw", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "pg"
        server = PostgresServer(folder, fsync=True)
        for load in (PACED, UNPACED):
            shown = f"{load.runs} runs × {load.tokens_per_s:g}/s" if load.tokens_per_s else f"{load.runs} runs, unpaced"
            for workers in (1, 2, 4):
                figures = measure(server.url(), folder, workers, load)
                print(
                    f"| {workers} | {shown} | {figures.per_s:,.0f} | {figures.ours_us:.1f} | {figures.servers_us:.1f}"
                    f" | {figures.late_ms} |",
                    flush=True,
                )
        server.remove()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import uvloop

        uvloop.run(work(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
    else:
        main()
