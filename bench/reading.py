"""CPU per token from the socket to the event, next to clients that do only the reading.

Ours decodes, judges and folds every token; `httpx2` only gives the lines, the `openai` SDK its objects. Each reads the
same mock upstream, in a process of its own, whose CPU time is taken.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import httpx2
import openai
import uvloop
from msgspec import Struct

from bench.contenders import free_port, running
from headwater.accumulate import Accumulator
from headwater.clock import SystemClock
from headwater.config.settings import Settings, UpstreamSettings
from headwater.conversation import Request, Text, User
from headwater.events import Completed, Event, Stopped
from headwater.source import Straight
from headwater.upstream.upstreams import Upstreams

HELLO = "Hello"


class Load(Struct, frozen=True):
    name: str
    streams: int
    tokens: int
    delay_us: int

    @property
    def model(self) -> str:
        return f"words-{self.tokens}-{self.delay_us}"


LOADS = (
    Load("64 streams × 50 tokens/s", 64, 100, 20_000),
    Load("32 streams, as fast as it goes", 32, 1_000, 0),
)


class Nobody:
    """A sink that only counts."""

    def __init__(self) -> None:
        self.fold = Accumulator()
        self.straight: Straight | None = None
        self.stopping: Stopped | None = None
        self.count = 0

    def take(self, events: Sequence[Event]) -> None:
        self.count += len(events)

    async def kept(self) -> None:
        """At once."""


async def read_by_headwater(port: int, load: Load) -> None:
    settings = Settings(upstreams={"up": UpstreamSettings(base_url=f"http://127.0.0.1:{port}/v1", list_models=False)})
    upstreams = Upstreams(settings, SystemClock(), Path("unused"))
    model = await upstreams.model(f"up/{load.model}")

    async def one() -> None:
        sink = Nobody()
        turn = model.turn(Request((User((Text(HELLO),)),)), call_id_prefix="call_")
        ended = await turn.run(sink)
        assert ended.outcome == Completed("stop")
        assert sink.count + len(ended.last) > load.tokens

    await asyncio.gather(*(one() for _ in range(load.streams)))
    await upstreams.close()


async def read_by_httpx(port: int, load: Load) -> None:
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as client:

        async def one() -> None:
            count = 0
            async with client.stream(
                "POST", url, json={"model": load.model, "messages": [{"role": "user", "content": HELLO}]}
            ) as response:
                async for line in response.aiter_lines():
                    count += line.startswith("data:")
            assert count > load.tokens

        await asyncio.gather(*(one() for _ in range(load.streams)))


async def read_by_openai(port: int, load: Load) -> None:
    async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k", timeout=60) as client:

        async def one() -> None:
            count = 0
            stream = await client.chat.completions.create(
                model=load.model, messages=[{"role": "user", "content": HELLO}], stream=True
            )
            async for _ in stream:
                count += 1
            assert count > load.tokens

        await asyncio.gather(*(one() for _ in range(load.streams)))


READERS: dict[str, Callable[[int, Load], Awaitable[None]]] = {
    "Headwater: to events, judged and folded": read_by_headwater,
    "httpx2: lines": read_by_httpx,
    "openai SDK: chunks": read_by_openai,
}


async def measure(reader: str, port: int, load: Load) -> float:
    await READERS[reader](port, Load("warm-up", 2, 20, 0))
    start = time.process_time()
    await READERS[reader](port, load)
    return (time.process_time() - start) / (load.streams * load.tokens) * 1e6


def in_its_own_process(reader: str, port: int, load: int) -> float:
    command = [sys.executable, "-m", "bench.reading", reader, str(port), str(load)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    print("\n## From the socket to the event, CPU µs a token\n")
    print(f"| | {' | '.join(load.name for load in LOADS)} |\n|---|{'---|' * len(LOADS)}")
    port = free_port()
    with running([sys.executable, "-m", "bench.upstream", str(port)], port):
        for reader in READERS:
            figures = [min(in_its_own_process(reader, port, n) for _ in range(3)) for n in range(len(LOADS))]
            print(f"| {reader} | {' | '.join(f'{figure:.1f}' for figure in figures)} |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(uvloop.run(measure(sys.argv[1], int(sys.argv[2]), LOADS[int(sys.argv[3])])))
    else:
        main()
