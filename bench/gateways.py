"""The gateway benchmark: direct, nginx, Headwater recorded and not, LiteLLM, side by side in one run.

CPU per token is the figure that survives a noisy machine; each gateway is measured in turn, round by round, so that
what disturbs the machine for a while disturbs all of them. `python -m bench.gateways [ROUNDS]` prints the tables, and
writes them to `bench/results/`, with a plot.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from bench import report
from bench.clients import Order
from bench.contenders import Contender, Stage

ROUNDS: Final = 3
RESULTS: Final = Path(__file__).parent / "results"


class Load(Struct, frozen=True):
    name: str
    streams: int
    requests: int
    tokens: int
    tokens_per_s: float = 0
    """Of each stream; 0: as fast as it goes."""
    ramp_ms: int = 0
    """In so long all streams are opened, evenly."""


# The one with the most streams comes first: memory is taken in a process that has not had as many before.
OPEN = Load("1,000 streams × 15 tokens/s", 1_000, 1_000, 75, 15, 4_000)
PACED = Load("256 streams × 50 tokens/s", 256, 256, 200, 50, 1_000)
ONE = Load("1 stream, as fast as it goes", 1, 60, 200)
SATURATED = Load("32 streams, as fast as it goes", 32, 500, 200)
WIDE = Load("256 streams, as fast as it goes", 256, 512, 200)
SHORT = Load("32 streams of 20 tokens", 32, 1_500, 20)
WARM_UP = Load("warm-up", 8, 100, 100)
LOADS: Final = (OPEN, PACED, ONE, SATURATED, WIDE, SHORT)
FLOOR: Final = (PACED, SATURATED, SHORT)


class Figures(Struct, frozen=True):
    us_per_token: float
    tokens_per_s: float
    first_ms_p50: float
    first_ms_p99: float
    late_ms_p99: float
    kb_per_stream: float
    commits: float
    """Of the time, how much was spent on them."""


class Peak(threading.Thread):
    """The most memory that a contender has while it is watched."""

    def __init__(self, contender: Contender) -> None:
        super().__init__(daemon=True)
        self._contender = contender
        self._over = threading.Event()
        self.before_kb = self.kb = contender.memory_kb()

    def run(self) -> None:
        while not self._over.wait(0.25):
            self.kb = max(self.kb, self._contender.memory_kb())

    def stop(self) -> int:
        self._over.set()
        self.join()
        return self.kb - self.before_kb


def measure(contender: Contender, load: Load) -> Figures:
    peak = Peak(contender)
    peak.start()
    cpu_s, commits_s = contender.cpu_s(), contender.commits_s()
    found = run_clients(contender, load)
    cpu_s, commits_s = contender.cpu_s() - cpu_s, contender.commits_s() - commits_s
    return Figures(
        cpu_s / found["tokens"] * 1e6,
        found["tokens"] / found["wall_s"],
        found["first_ms_p50"],
        found["first_ms_p99"],
        found["late_ms_p99"],
        peak.stop() / load.streams,
        commits_s / found["wall_s"],
    )


def run_clients(contender: Contender, load: Load) -> dict[str, Any]:
    paced = load.tokens_per_s > 0
    # One that is slow gets fewer requests, but never fewer than there are streams.
    requests = max(load.streams, load.requests // 10) if contender.slow else load.requests
    tokens = load.tokens // 3 if contender.slow and paced else load.tokens
    order = Order(
        port=contender.port,
        streams=load.streams,
        requests=requests,
        tokens=tokens,
        delay_us=round(1e6 / load.tokens_per_s) if paced else 0,
        ramp_ms=load.ramp_ms,
        more=contender.more,
        headers=contender.headers,
    )
    command = [sys.executable, "-m", "bench.clients", msgspec.json.encode(order).decode()]
    done = subprocess.run(command, capture_output=True, timeout=200, check=False)
    if done.returncode:
        raise RuntimeError(f"{contender.name}: {done.stderr.decode()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def swift(stage: Stage) -> list[Contender]:
    every = [
        stage.direct(),
        stage.nginx(),
        stage.skeleton("skeleton, bytes only", "pass"),
        stage.skeleton("skeleton, unrecorded", "chat"),
        stage.skeleton("skeleton, recorded", "loop"),
        stage.headwater("Headwater, unrecorded"),
        stage.headwater("Headwater, recorded", on_disconnect="continue"),
    ]
    return [one for one in every if one is not None]


def medians(rounds: list[Figures]) -> Figures:
    """But of memory the most: what one round has taken from the system, the next one finds there."""
    found = {name: [getattr(one, name) for one in rounds] for name in Figures.__struct_fields__}
    figures = {name: statistics.median(values) for name, values in found.items()}
    return Figures(**figures | {"kb_per_stream": max(found["kb_per_stream"])})


def measured(contenders: list[Contender], load: Load, rounds: int) -> dict[str, Figures]:
    found: dict[str, list[Figures]] = {one.name: [] for one in contenders}
    for _ in range(rounds):
        for one in contenders:
            if one.floor and load not in FLOOR:
                continue
            try:
                found[one.name].append(measure(one, load))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                if not one.slow:
                    raise
                # Some can't keep up with so many streams at all.
                print(f"*{one.name}, {load.name}: {str(error)[-200:]}*", file=sys.stderr)
    return {name: medians(figures) for name, figures in found.items() if figures}


def main(rounds: int = ROUNDS) -> None:
    if not Path("/proc/self/schedstat").exists():
        print("*Gateways: this system has no /proc/PID/schedstat, so that no CPU time can be taken.*")
        return
    with ExitStack() as stack:
        stage = Stage(stack, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        contenders = swift(stage)
        for one in contenders:
            run_clients(one, WARM_UP)
        found = {load.name: measured(contenders, load, rounds) for load in LOADS}
        keep(found, rounds)
        # It is busy also while nobody asks, so that the others are measured without it.
        if (slow := stage.litellm()) is not None:
            run_clients(slow, WARM_UP)
            # The lighter ones first: what is measured is kept, whoever loses patience with the rest.
            for load in sorted(LOADS, key=lambda load: load.streams):
                found[load.name] |= measured([slow], load, 1)
                keep(found, rounds)
    print(keep(found, rounds))


def keep(found: report.Found, rounds: int) -> str:
    page = report.page(found, rounds)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "gateways.md").write_text(page)
    (RESULTS / "gateways.svg").write_text(report.plot(found))
    return page


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
