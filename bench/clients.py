"""A load generator: many chat streams at once, each checked word for word. A process of its own.

`python -m bench.clients '{"port": …, "streams": …, …}'` (the fields of `Order`) prints one JSON object.
"""

import asyncio
import json
import sys
import time
from typing import Any, cast

import msgspec
import uvloop
from msgspec import Struct

from bench.words import word


class Order(Struct, frozen=True, kw_only=True):
    port: int
    streams: int
    requests: int
    tokens: int
    delay_us: int = 0
    ramp_ms: int = 0
    """In so long all streams are opened, evenly."""
    more: dict[str, Any] = {}
    """Fields of the request besides."""
    headers: dict[str, str] = {}
    timeout_s: float = 120.0


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
            self._first_s = 0.0
            self._asked_s = time.perf_counter()
            self._transport.write(self._load.request)
        else:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        received = self._received
        assert received is not None
        received += data
        # Not the header of that name.
        if not self._first_s and b'"content"' in received:
            self._first_s = time.perf_counter()
            self._load.first_s.append(self._first_s - self._asked_s)
        # The end of a body in chunks, or, of an answer that came whole, of the stream itself.
        if data.endswith((b"0\r\n\r\n", b"[DONE]\n\n")) and is_whole(received):
            self._load.check(bytes(received), time.perf_counter() - self._first_s)
            self._next()


def is_whole(received: bytearray) -> bool:
    return received.endswith(b"0\r\n\r\n") or b"chunked" not in received.partition(b"\r\n\r\n")[0].lower()


class Load:
    def __init__(self, order: Order) -> None:
        said = [{"role": "user", "content": "Hi"}]
        asked = {"model": f"words-{order.tokens}-{order.delay_us}", "messages": said, "stream": True, **order.more}
        body = msgspec.json.encode(asked)
        named = {"host": f"127.0.0.1:{order.port}", "content-type": "application/json", **order.headers}
        lines = [f"{name}: {value}" for name, value in {**named, "content-length": len(body)}.items()]
        self.request = "\r\n".join(["POST /v1/chat/completions HTTP/1.1", *lines, "", ""]).encode() + body
        self._left = order.requests
        self._open = order.requests
        self._answer = "".join(map(word, range(order.tokens)))
        self._on_time_s = (order.tokens - 1) * order.delay_us / 1e6
        self.first_s: list[float] = []
        self.late_s: list[float] = []
        """By how much an answer took longer than its pace."""
        self.done = asyncio.get_running_loop().create_future()

    def take(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def check(self, received: bytes, took_s: float) -> None:
        """Every word, in order, and the ending: a gateway that drops or invents is not fast."""
        self.late_s.append(took_s - self._on_time_s)
        head, _, body = received.partition(b"\r\n\r\n")
        if b"chunked" in head.lower():
            body = dechunked(body)
        text = ""
        for line in body.split(b"\n"):
            if line.startswith(b"data: {"):
                choices = json.loads(line[6:])["choices"]
                text += (choices[0]["delta"].get("content") or "") if choices else ""
        ends = b'"finish_reason":"stop"' in body.replace(b'": "', b'":"')
        if text != self._answer or b"data: [DONE]" not in body or not ends:
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


async def main(order: Order) -> None:
    loop = asyncio.get_running_loop()
    load = Load(order)
    start_s = time.perf_counter()
    for n in range(order.streams):
        await loop.create_connection(lambda: Client(load), "127.0.0.1", order.port)
        await asyncio.sleep(max(0.0, start_s + (n + 1) * order.ramp_ms / 1e3 / order.streams - time.perf_counter()))
    await asyncio.wait_for(load.done, order.timeout_s)
    wall_s = time.perf_counter() - start_s
    first, late = sorted(load.first_s), sorted(load.late_s)
    found = {
        "tokens": order.requests * order.tokens,
        "wall_s": wall_s,
        "first_ms_p50": first[len(first) // 2] * 1e3,
        "first_ms_p99": first[int(len(first) * 0.99)] * 1e3,
        "late_ms_p99": late[int(len(late) * 0.99)] * 1e3,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    uvloop.run(main(msgspec.json.decode(sys.argv[1], type=Order)))
