"""Five hundred clients that leave a real server in every phase: how long until each upstream connection is closed.

And what is left of them in the server's process afterwards: sockets, memory.
"""

import asyncio
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from headwater.testing import Simulator

CLIENTS = 500
ROUNDS = 4
PHASES = {
    "before the upstream's head": "sim/stall-at-before_head",
    "before the first token": "sim/stall-at-after_head",
    "between tokens": "sim/tokens-100000@10",
    "in a silence": "sim/tokens-9,stall-after-4",
}
_CONFIG = """
[server]
log_level = "error"
[upstreams.up]
base_url = "{url}/v1"
list_models = false
retries = 0
[store]
url = "sqlite:{folder}/h.db"
"""


class Client:
    """One request on a connection of its own, by its number."""

    def __init__(self, writer: asyncio.StreamWriter, number: int, phase: str) -> None:
        self.writer = writer
        self.phase = phase
        body = msgspec.json.encode(
            {
                "model": f"up/{PHASES[phase]}",
                "stream": True,
                "messages": [{"role": "user", "content": str(number)}],
                # Every other one is recorded.
                **({"session_id": f"s-{number}-{time.time_ns()}"} if number % 2 else {}),
            }
        )
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)

    def leave(self, *, reset: bool) -> float:
        if reset:
            wire = self.writer.get_extra_info("socket")
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        at = time.time()
        self.writer.transport.abort() if reset else self.writer.close()
        return at


async def leave_all(simulator: Simulator, port: int) -> dict[str, list[float]]:
    """Milliseconds from each client's leaving to the close of its upstream connection, by phase."""
    before = len(simulator.requests)
    clients = []
    for number in range(CLIENTS):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        clients.append(Client(writer, number, list(PHASES)[number % len(PHASES)]))
    await simulator.wait_for_requests(before + CLIENTS)
    await asyncio.sleep(0.5)
    left_at = [client.leave(reset=number % 2 == 0) for number, client in enumerate(clients)]
    took_ms: dict[str, list[float]] = {phase: [] for phase in PHASES}
    for n in range(before, before + CLIENTS):
        number = int(simulator.requests[n].body["messages"][-1]["content"])
        closed = await asyncio.wait_for(simulator.wait_for_close(n), 30)
        assert closed.closed_unix_s is not None
        took_ms[clients[number].phase].append(max(0.0, closed.closed_unix_s - left_at[number]) * 1000)
    return took_ms


def held(pid: int) -> tuple[int, int]:
    """Open files, and resident bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return len(os.listdir(f"/proc/{pid}/fd")), pages * os.sysconf("SC_PAGE_SIZE")


def started(folder: str, upstream: str) -> subprocess.Popen[str]:
    Path(folder, "headwater.toml").write_text(_CONFIG.format(url=upstream, folder=folder))
    command = [sys.executable, "-c", "from headwater.cli import main; main()", "serve", "--port", "0"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)


async def measure() -> tuple[dict[str, list[float]], list[tuple[int, int]]]:
    with tempfile.TemporaryDirectory() as folder:
        async with Simulator() as simulator:
            process = started(folder, simulator.url)
            try:
                assert process.stdout is not None
                found = re.search(r":(\d+)/", await asyncio.to_thread(process.stdout.readline))
                assert found is not None
                return await rounds(simulator, int(found[1]), process.pid)
            finally:
                process.terminate()
                process.communicate(timeout=30)


async def rounds(simulator: Simulator, port: int, pid: int) -> tuple[dict[str, list[float]], list[tuple[int, int]]]:
    times: dict[str, list[float]] = {phase: [] for phase in PHASES}
    left = []
    for _ in range(ROUNDS):
        for phase, took in (await leave_all(simulator, port)).items():
            times[phase] += took
        await asyncio.sleep(1.0)
        left.append(held(pid))
    return times, left


def main() -> None:
    print(f"\n## {CLIENTS} clients leave at once: until their upstream connections are closed, ms\n")
    times, left = asyncio.run(measure())
    print("| in which phase | p50 | p99 | most |\n|---|---|---|---|")
    for phase, took in times.items():
        p99 = statistics.quantiles(took, n=100)[98]
        print(f"| {phase} | {statistics.median(took):.1f} | {p99:.1f} | {max(took):.1f} |")
    said = "; ".join(f"{files} open files, {resident / 1e6:.0f} MB" for files, resident in left)
    print(f"\nOf the server after each of {ROUNDS} rounds: {said}.")


if __name__ == "__main__":
    main()
