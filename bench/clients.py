"""A load generator: many chat streams at once, each checked word for word. A process of its own.

`python -m bench.clients PORT STREAMS REQUESTS TOKENS DELAY_US` prints one JSON object.
"""

import asyncio
import json
import sys
import time
from typing import cast

import uvloop

from bench.words import word


class Client(asyncio.Protocol):
    """One connection, one request after the other."""

    def __init__(self, load: "Load") -> None:
        self._load = load

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._received is not None:
            self._load.fail(f"connection lost: {exc}")

    def _next(self) -> None:
        self._received: bytearray | None = None
        if self._load.take():
            self._received = bytearray()
            self._asked_s = time.perf_counter()
            self._transport.write(self._load.request)
        else:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        assert self._received is not None
        if not self._received:
            self._load.first_s.append(time.perf_counter() - self._asked_s)
        self._received += data
        if data.endswith(b"0\r\n\r\n"):
            self._load.check(bytes(self._received))
            self._next()


class Load:
    def __init__(self, port: int, requests: int, tokens: int, delay_us: int) -> None:
        body = b'{"model":"words-%d-%d","messages":[{"role":"user","content":"Hi"}],"stream":true}' % (tokens, delay_us)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\n" % port
        self.request = b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)
        self._left = requests
        self._open = requests
        self._answer = "".join(map(word, range(tokens)))
        self.first_s: list[float] = []
        self.done = asyncio.get_running_loop().create_future()

    def take(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def check(self, received: bytes) -> None:
        """Every word, in order, and the ending: a gateway that drops or invents is not fast."""
        text = ""
        received = dechunked(received.partition(b"\r\n\r\n")[2])
        for line in received.split(b"\n"):
            if line.startswith(b"data: {"):
                choice = json.loads(line[6:])["choices"][0]
                text += choice["delta"].get("content") or ""
        if text != self._answer or b"data: [DONE]" not in received or b'"finish_reason":"stop"' not in received:
            self.fail(f"wrong answer: {received[:300]!r}…")
        self._open -= 1
        if not self._open and not self.done.done():
            self.done.set_result(None)

    def fail(self, what: str) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(what))


def dechunked(body: bytes) -> bytes:
    pieces = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        pieces.append(body[:length])
        body = body[length + 2 :]
    return b"".join(pieces)


async def main(port: int, streams: int, requests: int, tokens: int, delay_us: int) -> None:
    loop = asyncio.get_running_loop()
    load = Load(port, requests, tokens, delay_us)
    start_s = time.perf_counter()
    for n in range(streams):
        await loop.create_connection(lambda: Client(load), "127.0.0.1", port)
        if delay_us:
            # Spread over one token's time: real streams don't tick in step.
            await asyncio.sleep(max(0.0, start_s + (n + 1) * delay_us / 1e6 / streams - time.perf_counter()))
    await asyncio.wait_for(load.done, 120)
    wall_s = time.perf_counter() - start_s
    first = sorted(load.first_s)
    print(
        json.dumps(
            {
                "tokens": requests * tokens,
                "wall_s": wall_s,
                "first_ms_p50": first[len(first) // 2] * 1e3,
                "first_ms_p99": first[int(len(first) * 0.99)] * 1e3,
            }
        )
    )


if __name__ == "__main__":
    uvloop.run(main(*map(int, sys.argv[1:6])))
