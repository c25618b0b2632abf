"""Group commit: what all runs have waiting, as one transaction; followers are told after it.

A row is what one run brought since the last commit: one blob of its log entries, one a line. At most one commit
a millisecond: with 256 slow streams each read would else be a transaction of its own.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import apsw

from headwater.events import Entry, Event, encode_entry

GAP_S: Final = 0.001
SCHEMA: Final = "CREATE TABLE batch (run TEXT, first INTEGER, last INTEGER, data BLOB, PRIMARY KEY (run, first))"
INSERT: Final = "INSERT INTO batch VALUES (?, ?, ?, ?)"

Row = tuple[str, int, int, bytes]


class Log:
    """A run's log, as far as it is not committed yet."""

    def __init__(self, run_id: str, show: Callable[[list[Event]], None]) -> None:
        self.run_id = run_id
        self.show = show
        self.waiting: list[Event] = []
        self.read_s = 0.0
        self.next_seq = 0
        self._started_s: float | None = None

    def append(self, events: list[Event], now_s: float) -> bool:
        """True: it had nothing waiting before."""
        fresh = not self.waiting
        if fresh:
            self.read_s = now_s
        if self._started_s is None:
            self._started_s = now_s
        self.waiting += events
        return fresh

    def take(self) -> tuple[list[Event], Row]:
        events, self.waiting = self.waiting, []
        first = self.next_seq
        self.next_seq += len(events)
        t = (self.read_s - (self._started_s or 0.0)) * 1e3
        data = b"\n".join(encode_entry(Entry(first + n, t, event)) for n, event in enumerate(events))
        return events, (self.run_id, first, self.next_seq - 1, data)


class Committer:
    """Gathers; subclasses say where the commit runs."""

    def __init__(self, database: str, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._connection = connect(database)
        self._connection.execute(SCHEMA)
        self._logs: list[Log] = []
        self._busy = False
        self._free_s = 0.0
        self._latencies_s: list[float] = []
        self._commits = 0
        self._commit_cpu_s = 0.0

    def add(self, log: Log) -> None:
        """It has begun to wait."""
        self._logs.append(log)
        if not self._busy:
            self._schedule()

    def _schedule(self) -> None:
        self._busy = True
        self.loop.call_later(max(0.0, self._free_s - time.perf_counter()), self._go)

    def _go(self) -> None:
        logs, self._logs = self._logs, []
        taken = [(log, log.read_s, *log.take()) for log in logs]
        self.commit([row for *_, row in taken], lambda: self._committed([entry[:3] for entry in taken]))

    def commit(self, rows: list[Row], then: Callable[[], None]) -> None:
        """Write the rows, then call `then` on the loop."""
        raise AssertionError

    def write(self, rows: list[Row]) -> None:
        cpu_s = time.thread_time()
        with self._connection:
            self._connection.executemany(INSERT, rows)
        self._commits += 1
        self._commit_cpu_s += time.thread_time() - cpu_s

    def _committed(self, shown: list[tuple[Log, float, list[Event]]]) -> None:
        self._busy = False
        self._free_s = time.perf_counter() + GAP_S
        if self._logs:
            self._schedule()
        for log, read_s, events in shown:
            log.show(events)
            self._latencies_s.append(time.perf_counter() - read_s)

    def figures(self) -> dict[str, Any]:
        """Since the last call."""
        latencies = sorted(self._latencies_s) or [0.0]
        found = {
            "latency_ms_p50": latencies[len(latencies) // 2] * 1e3,
            "latency_ms_p99": latencies[int(len(latencies) * 0.99)] * 1e3,
            "commits": self._commits,
            "commit_cpu_s": self._commit_cpu_s,
        }
        self._latencies_s = []
        self._commits = 0
        self._commit_cpu_s = 0.0
        return found


class LoopCommitter(Committer):
    def commit(self, rows: list[Row], then: Callable[[], None]) -> None:
        self.write(rows)
        then()


class ThreadCommitter(Committer):
    def __init__(self, database: str, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(database, loop)
        self._work: queue.SimpleQueue[tuple[list[Row], Callable[[], None]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def commit(self, rows: list[Row], then: Callable[[], None]) -> None:
        self._work.put((rows, then))

    def _run(self) -> None:
        while True:
            rows, then = self._work.get()
            self.write(rows)
            self.loop.call_soon_threadsafe(then)


def connect(database: str) -> apsw.Connection:
    connection = apsw.Connection(database)
    # One by one: `execute` of several stops at the first that returns a row, and the rest is silently not set.
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "off")
    assert (connection.pragma("journal_mode"), connection.pragma("synchronous")) == ("wal", 0)
    return connection
