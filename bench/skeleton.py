"""The smallest gateway that has every layer: upstream → chat dialect → log → APSW group commit → client.

Not a product: it shows what the layers cost before they are built out. No task wakes for a token: the read
callback of the upstream's connection decodes, encodes and writes to the client's transport. A client that is behind
pauses the reading; one that is gone ends it.

    python -m bench.skeleton PORT UPSTREAM_PORT MODE [DATABASE]

MODE: `pass` hands the bytes through, on the same libraries; `chat` decodes and encodes every event;
`loop` and `thread` also commit it before it is shown, on the event loop or on a thread of its own.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvicorn

from bench.group_commit import Committer, Log, LoopCommitter, ThreadCommitter
from headwater.accumulate import Accumulator
from headwater.dialects import chat
from headwater.dialects.base import Head
from headwater.events import Event, RunEnded
from headwater.server.direct import OUTLET, DirectProtocol, Outlet
from headwater.turn import TurnReader
from headwater.upstream.connection import Connection, Ending, Headers
from headwater.upstream.pool import Pool, read_address

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
START = {"type": "http.response.start", "status": 200, "headers": HEADERS}


class Stream:
    """One answer: bytes of an upstream in, bytes to one client out."""

    __slots__ = ("_connection", "_outlet", "_write", "end")

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self._write = outlet.write
        self._connection: Connection | None = None
        self.end: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        """The last bytes of the answer, once it is over. None: nobody is there to read them."""

    async def start(self, pool: Pool, request: bytes) -> None:
        try:
            connection = pool.take() or await pool.connect()
        except OSError:
            self.on_end("broken", b"")
            return
        if self._outlet.gone:
            connection.close()
            return
        self._connection = connection
        connection.ask(request, self)

    # ------------------------------------------------------------ from the upstream

    def on_head(self, status: int, headers: Headers) -> None:
        """The client has had its own already."""

    def on_body(self, data: bytes) -> None:
        self._write(data)

    def on_end(self, ending: Ending, rest: bytes) -> None:
        self.finish(rest)

    def finish(self, rest: bytes | None) -> None:
        self._connection = None
        if not self.end.done():
            self.end.set_result(rest)

    # -------------------------------------------------------------- from the client

    def on_full(self) -> None:
        if self._connection is not None:
            self._connection.pause()

    def on_room(self) -> None:
        if self._connection is not None:
            self._connection.resume()

    def on_gone(self) -> None:
        if self._connection is not None:
            self._connection.leave(self)
        self.finish(None)


class ChatStream(Stream):
    """Every event decoded, accumulated, judged at the end, and encoded again."""

    __slots__ = ("_around", "_encoder", "_feed", "_reader")

    def __init__(self, outlet: Outlet, head: Head) -> None:
        super().__init__(outlet)
        self._reader = TurnReader(chat.decoder("call"), Accumulator())
        self._feed = self._reader.feed
        self._encoder = chat.encoder(head, include_usage=False, style="error")
        self._around: tuple[bytes, bytes] | None = None
        """What is to stand around a plain text."""

    def on_body(self, data: bytes) -> None:
        if (around := self._around) is not None and (text := self._reader.plain(data)) is not None:
            self._write(b"%b%b%b" % (around[0], text.encode(), around[1]))
        elif events := self._feed(data):
            self.show(events)

    def on_end(self, ending: Ending, rest: bytes) -> None:
        events = self._feed(rest)
        end = self._reader.end("clean" if ending == "clean" else "broken")
        self.show([*events, *end.events, RunEnded(end.outcome)])

    def show(self, events: list[Event]) -> None:
        body = b"".join(map(self._encoder.encode, events))
        if type(events[-1]) is RunEnded:
            self.finish(body)
        elif body:
            self._write(body)
            self._around = self._encoder.around_text()


class RecordedStream(ChatStream):
    """The same, committed before it is shown."""

    __slots__ = ("_committer", "_log")

    def __init__(self, outlet: Outlet, head: Head, committer: Committer) -> None:
        super().__init__(outlet, head)
        self._log = Log(head.run_id, super().show)
        self._committer = committer

    def on_body(self, data: bytes) -> None:
        if events := self._feed(data):
            self.show(events)

    def show(self, events: list[Event]) -> None:
        if self._log.append(events, time.perf_counter()):
            self._committer.add(self._log)


class Gateway:
    def __init__(self, upstream_port: int, mode: str, database: str) -> None:
        self._mode = mode
        self._database = database
        self._pool = Pool(read_address(f"http://127.0.0.1:{upstream_port}"))
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        self._request = self._pool.head("/v1/chat/completions", headers) + b"content-length: "
        self._committer: Committer | None = None
        self._runs = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["path"] == "/figures":
            await _answer(send, msgspec.json.encode(self._committer.figures() if self._committer else {}))
            return
        body = await _body(receive)
        outlet: Outlet = scope["extensions"][OUTLET]
        stream = self._stream(outlet)
        outlet.attach(stream)
        await send(START)
        await stream.start(self._pool, b"%b%d\r\n\r\n%b" % (self._request, len(body), body))
        rest = await stream.end
        if rest is not None:
            await send({"type": "http.response.body", "body": rest})

    def _stream(self, outlet: Outlet) -> Stream:
        self._runs += 1
        head = Head(f"run_{self._runs}", 1760000000, "bench")
        if self._mode == "pass":
            return Stream(outlet)
        if self._mode == "chat":
            return ChatStream(outlet, head)
        if self._committer is None:
            kind = LoopCommitter if self._mode == "loop" else ThreadCommitter
            self._committer = kind(self._database, asyncio.get_running_loop())
        return RecordedStream(outlet, head, self._committer)


async def _body(receive: Receive) -> bytes:
    pieces = []
    more = True
    while more:
        message = await receive()
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(pieces)


async def _answer(send: Send, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def serve(port: int, upstream_port: int, mode: str, database: str = "") -> None:
    # The default looks through the youngest objects every 700 containers: with 256 open streams, every few tokens.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    uvicorn.run(
        Gateway(upstream_port, mode, database),
        host="127.0.0.1",
        port=port,
        http=DirectProtocol,
        lifespan="off",
        proxy_headers=False,
        access_log=False,
        log_level="warning",
        backlog=4096,
    )


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
