"""The smallest gateway that has every layer: aiohttp → chat dialect → log → APSW group commit → raw ASGI.

Not a product: it shows what the layers cost before they are built out. No task wakes
for a token: the socket's read callback decodes, and writes to the client as far as the client keeps up.

    python -m bench.skeleton PORT UPSTREAM_PORT MODE [DATABASE]

MODE: `pass` hands the bytes through, on the same libraries; `chat` decodes and encodes every event;
`loop` and `thread` also commit it before it is shown, on the event loop or on a thread of its own.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import msgspec
import uvicorn
from aiohttp.client_proto import ResponseHandler

from bench.group_commit import Committer, Log, LoopCommitter, ThreadCommitter
from headwater.accumulate import Accumulator
from headwater.dialects import chat
from headwater.dialects.base import Head
from headwater.events import Event, RunEnded
from headwater.judge import Transport
from headwater.turn import TurnReader

Send = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]
Receive = Callable[[], Coroutine[Any, Any, dict[str, Any]]]

HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
START = {"type": "http.response.start", "status": 200, "headers": HEADERS}


class Handler(ResponseHandler):
    """aiohttp's connection, which tells a stream of each read, once, after the parser is done with it."""

    stream: "Stream | None" = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.stream is not None:
            self.stream.on_read()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self.stream is not None:
            # aiohttp may set neither an end nor an exception (a malformed chunk): this is the last we hear.
            self.stream.on_lost()

    def resume_reading(self, resume_parser: bool = True) -> None:
        # aiohttp asks for it after every read, paused or not: 2 µs a token.
        if self._reading_paused:
            super().resume_reading(resume_parser)


class Stream:
    """One answer: reads from the upstream's content, writes to one client."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._content: aiohttp.StreamReader | None = None
        self._handler: Handler | None = None
        self._response: aiohttp.ClientResponse | None = None
        self._late: asyncio.Task[None] | None = None
        """A send that had to wait for the client; until then nothing more is written."""
        self.ended = False

    async def start(self, session: aiohttp.ClientSession, url: str, body: bytes) -> None:
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        self._response = response = await session.post(url, data=body, headers=headers)
        self._content = response.content
        await self._send(START)
        if response.connection is not None and isinstance(response.connection.protocol, Handler):
            self._handler = response.connection.protocol
            self._handler.stream = self
        self.on_read()

    def on_read(self) -> None:
        content = self._content
        if content is None or self.ended or self._late is not None:
            return
        if data := content.read_nowait():
            self.on_data(data)
        if content.is_eof() and not self.ended:
            self.on_end("clean")

    def on_lost(self) -> None:
        self.on_read()
        if not self.ended:
            self.on_end("broken")

    def on_data(self, data: bytes) -> None:
        self.write(data)

    def on_end(self, transport: Transport) -> None:
        self.leave()
        self.write(b"", more=False)

    def write(self, body: bytes, *, more: bool = True) -> None:
        """`send`, driven here as far as it goes: it suspends only while the client is behind."""
        sending = self._send({"type": "http.response.body", "body": body, "more_body": more})
        try:
            waiting_for = sending.send(None)
        except StopIteration:
            return
        self._late = asyncio.get_running_loop().create_task(_finish(sending, waiting_for))
        self._late.add_done_callback(self._caught_up)

    def _caught_up(self, task: asyncio.Task[None]) -> None:
        self._late = None
        if not task.cancelled() and task.exception() is None:
            self.on_read()

    def leave(self) -> None:
        """The upstream's connection goes back to its pool, or is closed if it was in the midst of an answer."""
        self.ended = True
        if self._handler is not None:
            self._handler.stream = None
        if self._response is not None and not self._response.content.is_eof():
            self._response.close()


class _Rest:
    """What is left of a coroutine that has already yielded a future."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], waiting_for: Any) -> None:
        self._coroutine = coroutine
        self._waiting_for = waiting_for

    def __await__(self) -> Any:
        yield self._waiting_for
        return (yield from self._coroutine.__await__())


async def _finish(coroutine: Coroutine[Any, Any, None], waiting_for: Any) -> None:
    await _Rest(coroutine, waiting_for)


class ChatStream(Stream):
    """Every event decoded, accumulated, judged at the end, and encoded again."""

    def __init__(self, send: Send, head: Head) -> None:
        super().__init__(send)
        self._reader = TurnReader(chat.decoder("call"), Accumulator())
        self._encoder = chat.encoder(head, include_usage=False, style="error")

    def on_data(self, data: bytes) -> None:
        if events := self._reader.feed(data):
            self.show(events)

    def on_end(self, transport: Transport) -> None:
        self.leave()
        end = self._reader.end(transport)
        self.show([*end.events, RunEnded(end.outcome)])

    def show(self, events: list[Event]) -> None:
        more = not isinstance(events[-1], RunEnded)
        self.write(b"".join(map(self._encoder.encode, events)), more=more)


class RecordedStream(ChatStream):
    """The same, committed before it is shown."""

    def __init__(self, send: Send, head: Head, committer: Committer) -> None:
        super().__init__(send, head)
        self._log = Log(head.run_id, super().show)
        self._committer = committer

    def show(self, events: list[Event]) -> None:
        if self._log.append(events, time.perf_counter()):
            self._committer.add(self._log)


class Gateway:
    def __init__(self, upstream_port: int, mode: str, database: str) -> None:
        self._url = f"http://127.0.0.1:{upstream_port}/v1/chat/completions"
        self._mode = mode
        self._database = database
        self._session: aiohttp.ClientSession | None = None
        self._committer: Committer | None = None
        self._runs = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/figures":
            await _answer(send, msgspec.json.encode(self._committer.figures() if self._committer else {}))
            return
        body = b""
        message: dict[str, Any] = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        stream = self._stream(send)
        head = asyncio.create_task(stream.start(self._open(), self._url, body))
        # It comes when the client goes away, and also once the answer is complete.
        while (await receive())["type"] != "http.disconnect":
            pass
        head.cancel()
        if not stream.ended:
            stream.leave()

    def _stream(self, send: Send) -> Stream:
        self._runs += 1
        head = Head(f"run_{self._runs}", 1760000000, "bench")
        if self._mode == "pass":
            return Stream(send)
        if self._mode == "chat":
            return ChatStream(send, head)
        if self._committer is None:
            kind = LoopCommitter if self._mode == "loop" else ThreadCommitter
            self._committer = kind(self._database, asyncio.get_running_loop())
        return RecordedStream(send, head, self._committer)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            loop = asyncio.get_running_loop()
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
            connector._factory = lambda: Handler(loop)  # type: ignore[assignment]
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


async def _answer(send: Send, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    # The default looks through the youngest objects every 700 containers: with 256 open streams, every few tokens.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    port, upstream_port, mode, *database = sys.argv[1:]
    gateway = Gateway(int(upstream_port), mode, database[0] if database else "")
    uvicorn.run(gateway, host="127.0.0.1", port=int(port), log_level="warning", access_log=False, backlog=4096)
