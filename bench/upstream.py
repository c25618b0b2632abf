"""A mock upstream: chat completions, streamed, as fast as it can or at a pace. A process of its own.

The model's name says what to send: `words-<tokens>-<delay_us>`. With a delay every token is a write of its
own, on time; without one they are written as fast as the gateway takes them, and its reads carry several.
"""

import asyncio
import sys
import time
from collections import deque
from itertools import islice
from typing import cast

import uvloop

from bench.words import WORDS, word

TOKENS_PER_WRITE = 1
TICK_S = 0.001
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNK = (
    'data: {"id":"chatcmpl-mock0123456789","object":"chat.completion.chunk","created":1760000000,"model":"mock",'
    '"service_tier":"default","system_fingerprint":"fp_mock",'
    '"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]}\n\n'
)


def chunked(text: str) -> bytes:
    data = text.encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


TOKENS = {text: chunked(CHUNK % (f'{{"content":"{text}"}}', "null")) for text in WORDS}
END = chunked(CHUNK % ("{}", '"stop"')) + chunked("data: [DONE]\n\n") + b"0\r\n\r\n"


class Stream(asyncio.Protocol):
    def __init__(self, pacer: "Pacer") -> None:
        self._pacer = pacer
        self._request = b""
        self.transport: asyncio.Transport | None = None
        self.blocked = False
        self.due_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None

    def pause_writing(self) -> None:
        self.blocked = True

    def resume_writing(self) -> None:
        self.blocked = False

    def data_received(self, data: bytes) -> None:
        self._request += data
        head, sep, body = self._request.partition(b"\r\n\r\n")
        if not sep or len(body) < int(head.lower().partition(b"content-length:")[2].split(None, 1)[0]):
            return
        self._request = b""
        tokens, delay_us = body.partition(b"words-")[2].partition(b'"')[0].split(b"-")
        self.left = iter([*(TOKENS[word(n)] for n in range(int(tokens))), END])
        self.delay_s = int(delay_us) / 1e6
        assert self.transport is not None
        self.transport.write(HEAD)
        self.due_s = time.monotonic() + self.delay_s
        self._pacer.add(self)

    def step(self, count: int) -> bool:
        """Write the next tokens. False: there are no more, or nobody wants them."""
        if self.transport is None:
            return False
        if not self.blocked:
            data = b"".join(islice(self.left, count))
            if not data:
                return False
            self.transport.write(data)
        return True


class Pacer:
    """One timer for all streams: a timer each would cost more than the writes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._flat: deque[Stream] = deque()
        self._paced: list[Stream] = []
        self._ticking = False

    def add(self, stream: Stream) -> None:
        if stream.delay_s:
            self._paced.append(stream)
        else:
            self._flat.append(stream)
        if not self._ticking:
            self._ticking = True
            self._loop.call_soon(self._tick)

    def _tick(self) -> None:
        for _ in range(len(self._flat)):
            stream = self._flat.popleft()
            if stream.step(TOKENS_PER_WRITE):
                self._flat.append(stream)
        now_s = time.monotonic()
        done = []
        for stream in self._paced:
            if stream.due_s <= now_s:
                stream.due_s += stream.delay_s
                if not stream.step(1):
                    done.append(stream)
        for stream in done:
            self._paced.remove(stream)
        self._ticking = bool(self._flat or self._paced)
        if self._flat:
            self._loop.call_soon(self._tick)
        elif self._paced:
            self._loop.call_later(TICK_S, self._tick)


async def main(port: int) -> None:
    loop = asyncio.get_running_loop()
    pacer = Pacer(loop)
    server = await loop.create_server(lambda: Stream(pacer), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
