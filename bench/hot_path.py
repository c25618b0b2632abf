"""CPU per event of the pure layers: bytes → frames → events → accumulator → client bytes, for each dialect.

Next to it, doing only the reading of chat: the `openai` SDK's own stream, and `json` with
pydantic models. CPU time, best of several rounds, so that a noisy machine
costs accuracy but not truth.
"""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx2
import openai
from openai import OpenAI, Stream
from openai.types.chat import ChatCompletionChunk
from pydantic import BaseModel

from headwater import sse
from headwater.accumulate import Accumulator
from headwater.dialects import DIALECTS
from headwater.dialects.base import Head
from headwater.events import Completed, DialectName, RunEnded, TextDelta
from headwater.turn import TurnReader

EVENTS = 5_000
ROUNDS = 7
HEAD = Head("run_bench", 1760000000, "bench")


def frames(dialect: DialectName) -> list[bytes]:
    """A long answer, one token a frame, as an upstream of this dialect sends it."""
    encoder = DIALECTS[dialect].encoder(HEAD, include_usage=True, style="error")
    events = [TextDelta(f" word{n % 10}") for n in range(EVENTS)]
    return [*map(encoder.encode, events), encoder.encode(RunEnded(Completed()))]


def reads(dialect: DialectName, per_read: int) -> list[bytes]:
    """The same, with so many frames in each read."""
    whole = frames(dialect)
    return [b"".join(whole[n : n + per_read]) for n in range(0, len(whole), per_read)]


def cpu_us_per_event(work: Callable[[], None]) -> float:
    """The best round: everything that disturbs a round makes it longer."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / EVENTS * 1e6


def pipeline(dialect: DialectName, pieces: list[bytes]) -> None:
    """What the server does with a token, less the I/O."""
    module = DIALECTS[dialect]
    reader = TurnReader(module.decoder("call"), Accumulator())
    encoder = module.encoder(HEAD, include_usage=False, style="error")
    for piece in pieces:
        b"".join(map(encoder.encode, reader.feed(piece)))
    end = reader.end("clean")
    assert isinstance(end.outcome, Completed)
    b"".join(map(encoder.encode, [*end.events, RunEnded(end.outcome)]))


def framing(pieces: list[bytes]) -> None:
    decoder = sse.Decoder()
    for piece in pieces:
        decoder.feed(piece)


class _Delta(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    index: int
    delta: _Delta
    finish_reason: str | None = None


class _Chunk(BaseModel):
    id: str = ""
    model: str = ""
    choices: list[_Choice]


def json_and_pydantic(pieces: list[bytes]) -> None:
    decoder = sse.Decoder()
    for piece in pieces:
        for frame in decoder.feed(piece):
            if frame.data != b"[DONE]":
                _Chunk.model_validate(json.loads(frame.data))


class _Body(httpx2.SyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)


def sdk_stream(client: OpenAI, pieces: list[bytes]) -> None:
    """The SDK's reader on a response that is already there: no socket, no request."""
    response = httpx2.Response(200, stream=_Body(pieces), request=httpx2.Request("POST", "http://127.0.0.1/"))
    stream: Stream[Any] = Stream(cast_to=ChatCompletionChunk, response=response, client=client)
    for _ in stream:
        pass


def dialect_row(dialect: DialectName) -> str:
    cells = []
    for per_read in (1, 8):
        pieces = reads(dialect, per_read)
        whole, framed = cpu_us_per_event(partial(pipeline, dialect, pieces)), cpu_us_per_event(partial(framing, pieces))
        cells.append(f"{framed:.2f} + {whole - framed:.2f} = {whole:.2f}")
    return f"| {dialect} | {' | '.join(cells)} |"


def main() -> None:
    print("## Hot path: CPU µs per event (budget: 3 for decode → accumulate → encode)\n")
    print("| dialect | 1 event a read: framing + the rest | 8 events a read |\n|---|---|---|")
    for dialect in DIALECTS:
        print(dialect_row(dialect))
    client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1/")
    pieces = reads("chat", 8)
    print("\n| others, decoding of chat alone, 8 events a read | µs |\n|---|---|")
    print(f"| `json` + pydantic | {cpu_us_per_event(lambda: json_and_pydantic(pieces)):.1f} |")
    print(f"| `openai` SDK's stream | {cpu_us_per_event(lambda: sdk_stream(client, pieces)):.1f} |")


if __name__ == "__main__":
    main()
