"""What it costs to keep a run: CPU per event, per start and end, and bytes on disk, in the SQLite store.

An event is handed over by itself, as when each token comes in a read of its own; all runs' events of one moment are
one commit. CPU time, best of several rounds. Then the same in a store that holds many runs already.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from headwater.clock import SystemClock
from headwater.conversation import Assistant, Text, User
from headwater.errors import StoreError
from headwater.events import Completed, Entry, RunEnded, TextDelta, encode_entry, make_id
from headwater.records import Run, SessionMessage
from headwater.store.engine import Engine
from headwater.store.results import Batch, Ending, Start, Started
from headwater.store.sqlite import open_sqlite

ROUNDS = 5
EVENTS = 20_000
"""In each round, over all runs."""
ANSWER = "word " * 300


def new_id(prefix: str) -> str:
    return make_id(prefix, time.time_ns() // 1_000_000, os.urandom(16))


async def start(store: Engine, session_id: str | None = None) -> str:
    """With what was said, if in a session."""
    now = time.time()
    run = Run(id=new_id("run"), owner="local", model="fast", created_at=now, session_id=session_id)
    said = (SessionMessage(id=new_id("msg"), message=User((Text("Why?"),)), created_at=now),) if session_id else ()
    result = await store.start(Start(run=run, messages=said, create_session=True))
    assert isinstance(result, Started)
    return run.id


async def end(store: Engine, run_id: str, next_seq: int, *, in_session: bool = False) -> None:
    answer = SessionMessage(id=new_id("msg"), message=Assistant((Text(ANSWER),)), created_at=time.time())
    tail = Batch(run_id, next_seq, [encode_entry(Entry(next_seq, 1.0, RunEnded(Completed())))])
    await store.end(Ending(run_id=run_id, outcome=Completed(), tail=tail, messages=(answer,) if in_session else ()))


class Pump:
    """Gives each run its next event as soon as the one before is kept."""

    def __init__(self, store: Engine, run_ids: list[str], per_run: int) -> None:
        self._store = store
        self._seqs = dict.fromkeys(run_ids, 0)
        self._last_seq = per_run - 1
        self._left = len(run_ids)
        self._done = asyncio.Event()

    async def run(self) -> None:
        for run_id in self._seqs:
            self._give(run_id)
        await self._done.wait()

    def _give(self, run_id: str) -> None:
        seq = self._seqs[run_id]
        entry = encode_entry(Entry(seq, seq * 20.0, TextDelta(f" word{seq % 10}")))

        def committed(kept_seq: int, trouble: StoreError | None) -> None:
            assert trouble is None
            self._seqs[run_id] = kept_seq + 1
            if kept_seq < self._last_seq:
                self._give(run_id)
            else:
                self._left -= 1
                if not self._left:
                    self._done.set()

        self._store.append(Batch(run_id, seq, (entry,)), committed)


async def cpu_us(work: Callable[[], Awaitable[None]], number: int) -> float:
    began = time.process_time()
    await work()
    return (time.process_time() - began) / number * 1e6


async def event_us(store: Engine, runs: int, *, events: int = EVENTS, most: int = 2_000, rounds: int = ROUNDS) -> float:
    """With so many events in all, and no more than `most` of one run."""
    per_run = max(1, min(events // runs, most))
    best = float("inf")
    for _ in range(rounds):
        run_ids = [await start(store) for _ in range(runs)]
        best = min(best, await cpu_us(Pump(store, run_ids, per_run).run, runs * per_run))
        for run_id in run_ids:
            await end(store, run_id, per_run)
    return best


async def whole_run_us(store: Engine, number: int) -> float:
    """Start and end in a session of its own, with nothing between."""

    async def work() -> None:
        for _ in range(number):
            run_id = await start(store, new_id("ses"))
            await end(store, run_id, 0, in_session=True)

    return await cpu_us(work, number)


async def read_us(store: Engine, run_id: str, number: int) -> float:
    async def work() -> None:
        for _ in range(number):
            await store.read("local", run_id, 1_900)

    return await cpu_us(work, number)


def disk_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.iterdir())


async def measure(path: Path) -> None:
    store = await open_sqlite(path, address="bench", clock=SystemClock(), entropy=os.urandom)
    print("| stored runs | 1 run: µs an event | 32 runs | 1,000 runs | start + end, in a session: µs | a read: µs |")
    print("|---|---|---|---|---|---|")
    stored = 0
    for wanted in (100, 10_000):
        await whole_run_us(store, wanted - stored)
        stored = wanted
        events = [await event_us(store, runs) for runs in (1, 32, 1_000)]
        run_id = await start(store)
        await Pump(store, [run_id], 2_000).run()
        cells = [*events, await whole_run_us(store, 200), await read_us(store, run_id, 200)]
        print(f"| {wanted:,} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")
        await end(store, run_id, 2_000)
    await store.close()


async def disk_per_token(path: Path) -> float:
    store = await open_sqlite(path, address="bench", clock=SystemClock(), entropy=os.urandom)
    run_ids = [await start(store) for _ in range(32)]
    before = disk_bytes(path)
    await Pump(store, run_ids, 1_000).run()
    for run_id in run_ids:
        await end(store, run_id, 1_000)
    await store.close()
    return (disk_bytes(path) - before) / 32_000


def main() -> None:
    print('## Store: SQLite, `durability = "process"` (budget: 10 µs an event, recorded)\n')
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder) / "bench" / "headwater.db"))
        print(f"\nOn disk: {asyncio.run(disk_per_token(Path(folder) / 'disk' / 'headwater.db')):.0f} bytes a token.")


if __name__ == "__main__":
    main()
