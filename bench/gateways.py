"""Runs gateways between the mock upstream and the load generator, side by side, and takes their CPU time.

CPU per token is the figure that survives a noisy machine; each gateway is measured in turn, several times, next
to nginx as a plain proxy (where it is installed) and to a byte pass-through on our own libraries.
"""

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

ROUNDS = 3
NGINX = """
daemon off; worker_processes 1; pid {run}/nginx.pid; error_log stderr error;
events {{ worker_connections 8192; }}
http {{
  access_log off; client_body_temp_path {run}; proxy_temp_path {run}; fastcgi_temp_path {run};
  uwsgi_temp_path {run}; scgi_temp_path {run};
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 1024; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }}
  }}
}}
"""


class Load(Struct, frozen=True):
    name: str
    streams: int
    requests: int
    tokens: int
    delay_us: int


PACED = Load("256 streams × 50 tokens/s", 256, 256, 150, 20_000)
SATURATED = Load("32 streams, as fast as it goes", 32, 1_500, 200, 0)
SHORT = Load("32 streams of 20 tokens", 32, 3_000, 20, 0)


class Figures(Struct, frozen=True):
    us_per_token: float
    tokens_per_s: float
    first_ms_p99: float
    latency_ms_p50: float = 0.0
    latency_ms_p99: float = 0.0
    commit_percent: float = 0.0
    """Of one core."""


class Gateway:
    def __init__(self, name: str, port: int, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.port = port
        self._process = process

    def cpu_s(self) -> float:
        """Of the process, its threads and its children, to the nanosecond."""
        pids = [self._process.pid, *_children(self._process.pid)]
        tasks = [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def measure(self, load: Load) -> Figures:
        self._own_figures()
        cpu_s = self.cpu_s()
        result = run_clients(self.port, load)
        cpu_s = self.cpu_s() - cpu_s
        own = self._own_figures()
        return Figures(
            cpu_s / result["tokens"] * 1e6,
            result["tokens"] / result["wall_s"],
            result["first_ms_p99"],
            own.get("latency_ms_p50", 0.0),
            own.get("latency_ms_p99", 0.0),
            own.get("commit_cpu_s", 0.0) / result["wall_s"] * 100,
        )

    def _own_figures(self) -> dict[str, float]:
        if not self.name.startswith("skeleton, recorded"):
            return {}
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/figures", timeout=10) as answer:
            found: dict[str, float] = json.load(answer)
            return found


def run_clients(port: int, load: Load) -> dict[str, Any]:
    numbers = [port, load.streams, load.requests, load.tokens, load.delay_us]
    command = [sys.executable, "-m", "bench.clients", *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, timeout=150, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode()[-2000:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(stat.parent.name))
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError(f"{command} ended with {process.returncode}") from None
                time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def gateways() -> Iterator[list[Gateway]]:
    """The mock upstream, and all gateways to it, running."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        upstream = free_port()
        stack.enter_context(running([sys.executable, "-m", "bench.upstream", str(upstream)], upstream))
        found = []
        if nginx := shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin"):
            port = free_port()
            config = Path(folder, "nginx.conf")
            user = "user root;" if os.geteuid() == 0 else ""
            config.write_text(user + NGINX.format(run=folder, upstream=upstream, port=port))
            command = [nginx, "-p", folder, "-c", str(config), "-e", "stderr"]
            found.append(Gateway("nginx, a plain proxy", port, stack.enter_context(running(command, port))))
        else:
            print("*nginx is not installed: no ratio to it is given.*\n")
        for name, mode in (
            ("byte pass-through, our libraries", "pass"),
            ("skeleton, unrecorded", "chat"),
            ("skeleton, recorded, commits on the event loop", "loop"),
            ("skeleton, recorded, commits on a thread", "thread"),
        ):
            port = free_port()
            command = [sys.executable, "-m", "bench.skeleton", str(port), str(upstream), mode, f"{folder}/{mode}.db"]
            found.append(Gateway(name, port, stack.enter_context(running(command, port))))
        yield found


def medians(rounds: list[Figures]) -> Figures:
    return Figures(*(statistics.median(getattr(one, name) for one in rounds) for name in Figures.__struct_fields__))


def main() -> None:
    if not Path("/proc/self/schedstat").exists():
        print("*Gateways: this system has no /proc/PID/schedstat, so that no CPU time can be taken.*")
        return
    with gateways() as all_gateways:
        for gateway in all_gateways:
            run_clients(gateway.port, Load("warm-up", 8, 100, 200, 0))
        for load in (PACED, SATURATED, SHORT):
            # In turn, round by round: what disturbs the machine for a while disturbs all of them.
            rounds = [[gateway.measure(load) for gateway in all_gateways] for _ in range(ROUNDS)]
            report(load, all_gateways, [medians([one[n] for one in rounds]) for n in range(len(all_gateways))])


def report(load: Load, all_gateways: list[Gateway], figures: list[Figures]) -> None:
    base = figures[0].us_per_token
    per_request = load is SHORT
    columns = [
        "gateway",
        f"CPU µs/{'request' if per_request else 'token'}",
        f"× {all_gateways[0].name}",
        "tokens/s",
        "first byte p99 ms",
        "read → send p50 / p99 ms",
        "commits, % of a core",
    ]
    print(f"\n## Gateways: {load.name} (median of {ROUNDS})\n")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for gateway, one in zip(all_gateways, figures, strict=True):
        recorded = one.latency_ms_p50 > 0
        cells = [
            gateway.name,
            f"{one.us_per_token * (load.tokens if per_request else 1):.1f}",
            f"{one.us_per_token / base:.2f}",
            f"{one.tokens_per_s:,.0f}",
            f"{one.first_ms_p99:.1f}",
            f"{one.latency_ms_p50:.2f} / {one.latency_ms_p99:.2f}" if recorded else "",
            f"{one.commit_percent:.1f}" if recorded else "",
        ]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
