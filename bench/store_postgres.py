"""What it costs to keep a run in Postgres: CPU per event in our process and in the server, and how late others hear.

The server is on this machine, with its own settings (`fsync` on). Two workers, each with connections of its own.
"""

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from msgspec import Struct

from bench.store import Pump, end, event_us, read_us, start, whole_run_us
from headwater.clock import SystemClock
from headwater.errors import StoreError
from headwater.events import Entry, TextDelta, encode_entry
from headwater.store.engine import Engine
from headwater.store.postgres import open_postgres
from headwater.store.results import Batch, Committed
from headwater.testing.postgres import PostgresServer

PACED_S = 4.0
TICK_S = 0.020


class Cpu(Struct, frozen=True):
    ours_s: float
    servers_s: float
    at_s: float

    @classmethod
    def now(cls, folder: Path) -> "Cpu":
        return cls(time.process_time(), server_cpu_s(folder), time.perf_counter())


def server_cpu_s(folder: Path) -> float:
    """Of the server and all of its backends, also those that have ended."""
    server = int((folder / "postmaster.pid").read_text().split("\n")[0])
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(path.parent.name) == server:
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == server:
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Paced:
    """Gives each run an event every 20 ms, whether the one before is kept or not; notes when it was handed over."""

    def __init__(self, store: "Engine | Nowhere", run_ids: list[str]) -> None:
        self._store = store
        self._seqs = dict.fromkeys(run_ids, 0)
        self.given_s: dict[tuple[str, int], float] = {}
        self.late_s: list[float] = []
        """From the hand-over to the commit."""

    async def run(self, duration_s: float) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for n, run_id in enumerate(self._seqs):
            loop.call_at(began_s + TICK_S * n / len(self._seqs), self._give, run_id, began_s + duration_s)
        await asyncio.sleep(duration_s + 1.0)

    def _give(self, run_id: str, until_s: float) -> None:
        loop = asyncio.get_running_loop()
        seq = self._seqs[run_id]
        self._seqs[run_id] = seq + 1
        given_s = self.given_s[run_id, seq] = loop.time()

        def committed(kept_seq: int, trouble: StoreError | None) -> None:
            assert trouble is None, trouble
            self.late_s.append(loop.time() - given_s)

        entry = encode_entry(Entry(seq, seq * 20.0, TextDelta(f" word{seq % 10}")))
        self._store.append(Batch(run_id, seq, (entry,)), committed)
        if given_s + TICK_S < until_s:
            loop.call_at(given_s + TICK_S, self._give, run_id, until_s)

    @property
    def given(self) -> int:
        return sum(self._seqs.values())

    async def end(self) -> None:
        assert isinstance(self._store, Engine)
        for run_id, seq in self._seqs.items():
            await end(self._store, run_id, seq)


def ms(values: list[float]) -> str:
    """p50 / p99."""
    ordered = sorted(values)
    return f"{statistics.median(ordered) * 1e3:.1f} / {ordered[int(len(ordered) * 0.99)] * 1e3:.1f}"


async def costs(store: Engine) -> None:
    print("| 1 run: µs of CPU an event | 32 runs | 1,000 runs | start + end, in a session: µs | a read: µs |")
    print("|---|---|---|---|---|")
    await whole_run_us(store, 50)
    events = [await event_us(store, runs, events=10_000, most=100, rounds=1) for runs in (1, 32, 1_000)]
    run_id = await start(store)
    await Pump(store, [run_id], 200).run()
    cells = [*events, await whole_run_us(store, 50), await read_us(store, run_id, 200)]
    print(f"| {' | '.join(f'{cell:.1f}' for cell in cells)} |\n")
    await end(store, run_id, 200)


class Nowhere:
    """Says that all is kept, and keeps nothing."""

    def append(self, batch: Batch, committed: Committed) -> None:
        asyncio.get_running_loop().call_soon(committed, batch.last_seq, None)


async def pacing_us(runs: int) -> float:
    """The same load without a store: timers, entries and figures."""
    load = Paced(Nowhere(), [str(n) for n in range(runs)])
    before_s = time.process_time()
    await load.run(PACED_S / 2)
    return (time.process_time() - before_s) / load.given * 1e6


async def paced(store: Engine, folder: Path) -> None:
    print("| 50 tokens/s each | tokens/s | our µs a token | the server's | hand-over → commit, p50 / p99 ms |")
    print("|---|---|---|---|---|")
    for runs in (16, 64, 256):
        load = Paced(store, [await start(store) for _ in range(runs)])
        before = Cpu.now(folder)
        await load.run(PACED_S)
        after = Cpu.now(folder)
        # What it takes to hand over, which is this benchmark's and not the store's.
        ours = after.ours_s - before.ours_s - await pacing_us(runs) * load.given / 1e6
        servers = after.servers_s - before.servers_s
        per_s = load.given / PACED_S
        print(
            f"| {runs} runs | {per_s:,.0f} | {ours / load.given * 1e6:.1f} | {servers / load.given * 1e6:.1f}"
            f" | {ms(load.late_s)} |"
        )
        await load.end()
    print()


async def heard(first: Engine, second: Engine, runs: int) -> tuple[str, str]:
    """From the commit, and from the hand-over, to the watcher on another worker."""
    loop = asyncio.get_running_loop()
    load = Paced(first, [await start(first) for _ in range(runs)])
    busy = asyncio.create_task(load.run(PACED_S))
    run_id = await start(first)
    told: asyncio.Queue[float] = asyncio.Queue()
    unwatch = second.watch_run(run_id, lambda: told.put_nowait(loop.time()))
    from_commit: list[float] = []
    from_given: list[float] = []
    for seq in range(200):
        await asyncio.sleep(0.02)
        # Of the start, or of a look.
        while not told.empty():
            told.get_nowait()
        kept: asyncio.Future[float] = loop.create_future()
        given_s = loop.time()
        entry = encode_entry(Entry(seq, 0.0, TextDelta("word")))
        first.append(Batch(run_id, seq, (entry,)), lambda *_, kept=kept: kept.set_result(loop.time()))
        kept_s, heard_s = await kept, await told.get()
        from_commit.append(heard_s - kept_s)
        from_given.append(heard_s - given_s)
    unwatch()
    await busy
    await end(first, run_id, 200)
    await load.end()
    return ms(from_commit), ms(from_given)


async def measure(url: str, folder: Path) -> None:
    async def worker() -> Engine:
        return await open_postgres(url, address="bench", clock=SystemClock(), entropy=os.urandom)

    first = await worker()
    # Until it knows that it is alone.
    await asyncio.sleep(16.0)
    await costs(first)
    await paced(first, folder)
    second = await worker()
    print("| beside it, 50 tokens/s each | commit → watcher on another worker, p50 / p99 ms | hand-over → there |")
    print("|---|---|---|")
    for runs in (0, 64):
        print(f"| {runs} runs | {' | '.join(await heard(first, second, runs))} |")
    await first.close()
    await second.close()


def main() -> None:
    print("\n## Store: Postgres on the same machine\n")
    with tempfile.TemporaryDirectory(prefix="hw", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "pg"
        server = PostgresServer(folder, fsync=True)
        asyncio.run(measure(server.url(), folder))
        server.remove()


if __name__ == "__main__":
    main()
