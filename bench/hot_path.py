"""CPU per event of the pure layers: bytes → frames → events → accumulator → client bytes.

Next to it, doing only the reading: the `openai` SDK's own stream, and `json` with
pydantic models. CPU time, best of several rounds, so that a noisy machine
costs accuracy but not truth.
"""

import json
import time
from collections.abc import Callable, Iterator
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
from headwater.events import DialectName, RunEnded
from headwater.turn import TurnReader

EVENTS = 5_000
ROUNDS = 7
HEAD = Head("run_bench", 1760000000, "bench")
CHUNK = (
    'data: {"id":"chatcmpl-bench0123456789","object":"chat.completion.chunk","created":1760000000,"model":"bench",'
    '"service_tier":"default","system_fingerprint":"fp_bench",'
    '"choices":[{"index":0,"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}]}\n\n'
)
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
CHAT = [(CHUNK % (n % 10)).encode() for n in range(EVENTS)]


def cpu_us_per_event(work: Callable[[], None]) -> float:
    """The best round: everything that disturbs a round makes it longer."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / EVENTS * 1e6


def reads(per_read: int) -> list[bytes]:
    """The stream, with so many events in each read."""
    return [b"".join(CHAT[n : n + per_read]) for n in range(0, EVENTS, per_read)] + [END]


def pipeline(dialect: DialectName, pieces: list[bytes]) -> None:
    """What the server does with a token, less the I/O."""
    module = DIALECTS[dialect]
    reader = TurnReader(module.decoder("call"), Accumulator())
    encoder = module.encoder(HEAD, include_usage=False, style="error")
    for piece in pieces:
        b"".join(map(encoder.encode, reader.feed(piece)))
    end = reader.end("clean")
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


def rows() -> list[tuple[str, float]]:
    client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1/")
    one, eight = reads(1), reads(8)
    return [
        ("chat: frame → decode → accumulate → encode, 1 event a read", cpu_us_per_event(lambda: pipeline("chat", one))),
        ("chat: the same, 8 events a read", cpu_us_per_event(lambda: pipeline("chat", eight))),
        ("of which framing, 1 event a read", cpu_us_per_event(lambda: framing(one))),
        ("of which framing, 8 events a read", cpu_us_per_event(lambda: framing(eight))),
        ("`json` + pydantic, decoding alone", cpu_us_per_event(lambda: json_and_pydantic(eight))),
        ("`openai` SDK's stream, decoding alone", cpu_us_per_event(lambda: sdk_stream(client, eight))),
    ]


def main() -> None:
    print("## Hot path: CPU per event (budget: 3 µs)\n")
    print("| work | µs |\n|---|---|")
    for name, us in rows():
        print(f"| {name} | {us:.2f} |")


if __name__ == "__main__":
    main()
