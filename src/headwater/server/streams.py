"""An answer on its way to one client: from a run's log, through an encoder, to a connection.

No task wakes for a token: the run tells `_on_news`, which takes what is past the cursor, encodes it and writes it, the
first time behind the head, the last time before the end. The request's own task reads what is only in the store, and
sends a head or an end for which the client is too far behind. One that falls behind in between is a cursor that stands
still; a run that is in no store waits for it. Nothing here decides how a run ends.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from typing import Any, Final, Protocol

from headwater.errors import StoreError
from headwater.events import Event, Interrupted, RunEnded, TextDelta
from headwater.runs.follow import Follower
from headwater.runs.live import LiveRun
from headwater.server.direct import Headers, Outlet, Send
from headwater.source import Straight

_FIXED: Final[Headers] = [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
"""Nobody between us and the client is to keep anything, or to wait for more."""


class Answer(Protocol):
    """What is said, and how it begins."""

    @property
    def beat(self) -> bytes:
        """Keeps a silent connection alive; nothing where the client waits for one piece."""

    @property
    def headers(self) -> Headers: ...

    def encode(self, events: Sequence[Event]) -> bytes:
        """The bytes for what has come; often none."""

    def begin(self) -> int:
        """The status: something is about to be sent. It stands from now on."""

    def around_text(self) -> tuple[bytes, bytes] | None:
        """See `Encoder`."""


class Stream:
    __slots__ = (
        "_answer",
        "_around",
        "_context",
        "_encode",
        "_ended",
        "_flowing",
        "_follower",
        "_full",
        "_gone",
        "_heartbeat_s",
        "_limit_bytes",
        "_live",
        "_news",
        "_outlet",
        "_over",
        "_reading",
        "_rest",
        "_send",
        "_silent_since_s",
        "_told_gone",
        "_waking",
    )

    def __init__(
        self,
        outlet: Outlet,
        follower: Follower,
        answer: Answer,
        *,
        live: LiveRun | None = None,
        limit_bytes: int | None = None,
        heartbeat_s: float = 15.0,
        on_gone: Callable[[], None] = lambda: None,
    ) -> None:
        """`live`: a run that no store has, to be held up while its client is `limit_bytes` behind."""
        self._outlet = outlet
        self._follower = follower
        self._answer = answer
        self._encode = answer.encode
        self._live = live
        self._limit_bytes = limit_bytes
        self._told_gone = on_gone
        self._heartbeat_s = heartbeat_s
        self._silent_since_s: float | None = None
        """As far as `tick` knows: no token notes when it came."""
        self._around: tuple[bytes, bytes] | None = None
        """What stands around a plain text of a run that a store has, as long as nothing else comes."""
        self._rest = b""
        """What waits for the head to be sent, or is the last of all."""
        self._flowing = False
        """The head is sent, and nothing waits: what comes is written at once."""
        self._full = False
        self._news = False
        self._reading = False
        """What comes next is in the store: the task is to read it."""
        self._ended = False
        self._over = False
        """The end was sent, too."""
        self._gone = False
        self._waking: asyncio.Future[None] | None = None

    async def serve(self, send: Send) -> None:
        """Until all is said, or nobody is there to hear it."""
        self._send, self._context = send, copy_context()
        self._outlet.attach(self, limit_bytes=self._limit_bytes)
        try:
            self._follower.on_news(self._on_news)
            self._on_news()
            if self._live is not None and not self._ended:
                self._follower.pour(self._show)
            while not self._ended and not self._gone:
                if self._reading:
                    await self._read()
                elif self._rest:
                    await self._outlet.drain()
                    if self._rest and not self._gone:
                        # Else a token was quicker.
                        self._write(b"")
                else:
                    await self._wait()
            if not self._gone and not self._over:
                await self._end()
        finally:
            self._follower.leave()
            self._outlet.detach()

    # --------------------------------------------------------------- the task's

    async def _end(self) -> None:
        end = {"type": "http.response.body", "body": self._rest}
        if self._flowing:
            await self._send(end)
            return
        length = (b"content-length", b"%d" % len(self._rest))
        head = {"type": "http.response.start", "status": self._answer.begin(), "headers": [*self._headers(), length]}
        with self._outlet.together():
            await self._send(head)
            await self._send(end)

    def _headers(self) -> Headers:
        return [*_FIXED, *self._answer.headers]

    async def _read(self) -> None:
        self._news = False
        try:
            entries = await self._follower.read()
        except StoreError:
            self._break_off()
            return
        self._reading = False
        self._show([entry.event for entry in entries])
        if entries or self._news:
            self._on_news()

    async def _wait(self) -> None:
        # One future for each wait, and a wait for each stream: see `Follower`.
        self._waking = asyncio.get_running_loop().create_future()
        await self._waking

    def _wake(self) -> None:
        if self._waking is not None and not self._waking.done():
            self._waking.set_result(None)

    # ----------------------------------------------------------------- the run's

    def _on_news(self) -> None:
        self._news = True
        if self._full or self._reading or self._ended or self._gone:
            return
        if self._around is not None and (texts := self._follower.take_plain()) is not None:
            self._show_plain(texts, *self._around)
            return
        try:
            entries = self._follower.take_nowait()
        except StoreError:
            self._break_off()
            return
        if entries is None:
            self._reading = True
            self._wake()
        else:
            self._show([entries[0].event] if len(entries) == 1 else [entry.event for entry in entries])

    def _show(self, events: Sequence[Event]) -> None:
        if self._ended or self._gone or not events:
            return
        body = self._encode(events)
        if type(events[-1]) is RunEnded:
            self._finish(body)
        elif body and self._flowing:
            self._outlet.write(body)
        elif body:
            self._write(body)
        self._around = None
        if self._flowing and type(events[-1]) is TextDelta:
            self._go_straight()

    def _show_plain(self, texts: Sequence[bytes], before: bytes, after: bytes) -> None:
        if len(texts) == 1:
            self._outlet.write(b"%b%b%b" % (before, texts[0], after))
        elif texts:
            self._outlet.write(b"".join([b"%b%b%b" % (before, text, after) for text in texts]))

    def _write(self, body: bytes) -> None:
        if self._flowing:
            self._outlet.write(body)
            return
        self._rest += body
        if self._outlet.behind:
            self._wake()
            return
        with self._outlet.together():
            # In this order: the headers go by the status, which stands from now on.
            status = self._answer.begin()
            self._outlet.begin(status, self._headers())
            rest, self._rest, self._flowing = self._rest, b"", True
            self._outlet.write(rest)

    def _at_once(self, sending: Coroutine[Any, Any, None]) -> None:
        """Without the task: ASGI's `send` waits only for a client that is behind.

        In the task's context all the same: behind an end, the next request of the connection may begin.
        """
        try:
            self._context.run(sending.send, None)
        except StopIteration:
            return
        raise RuntimeError("what has to wait is the task's to send")

    def _go_straight(self) -> None:
        """As long as nothing but a text comes, a run that no store has need not come by here; one that a store has is
        not taken apart into events."""
        around = self._answer.around_text()
        if self._live is None:
            self._around = around
        elif around is not None:
            self._live.straight = Straight(*around, self._outlet.write)

    def _break_off(self) -> None:
        """The store can't say how it goes on, and the client should not wait for it to."""
        self._finish(self._encode([RunEnded(Interrupted("store"))]))

    def _finish(self, body: bytes) -> None:
        self._ended = True
        self._rest += body
        self._wake()
        if not self._outlet.behind:
            self._at_once(self._end())
            self._over = True

    # -------------------------------------------------------------- the client's

    def on_full(self) -> None:
        if self._live is not None:
            self._live.pause()
        else:
            self._full = True

    def on_room(self) -> None:
        if self._live is not None:
            self._live.resume()
        else:
            self._full = False
            self._on_news()

    def on_gone(self) -> None:
        self._gone = True
        if self._live is not None:
            self._live.straight = None
        self._told_gone()
        self._wake()

    # --------------------------------------------------------------------- time

    def tick(self, now_s: float) -> None:
        beat = self._answer.beat
        if self._silent_since_s is None or self._outlet.wrote:
            self._silent_since_s, self._outlet.wrote = now_s, False
        elif beat and self._hears() and now_s - self._silent_since_s >= self._heartbeat_s:
            self._silent_since_s = now_s
            self._write(beat)
            self._outlet.wrote = False

    def _hears(self) -> bool:
        """A client that is behind has enough to hear; and none is told that it goes well before it has a status."""
        return not (self._full or self._ended or self._gone) and (self._flowing or not self._outlet.behind)
