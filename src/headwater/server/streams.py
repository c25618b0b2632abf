"""An answer on its way to one client: from a run's log, through an encoder, to a connection.

No task wakes for a token: the run tells `_on_news`, which takes what is past the cursor, encodes it and writes it, the
first time behind the head, the last time before the end. A client that falls behind is a cursor that stands still; only
what is in the store and nowhere else is read by the request's own task. A run that is in no store has no cursor: it
pours into `_show`, waits for a client that is behind, and needs no task at all. Nothing here decides how a run ends.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from headwater.errors import StoreError
from headwater.events import Event, Interrupted, RunEnded, TextDelta
from headwater.runs.follow import Follower
from headwater.runs.live import LiveRun
from headwater.server.direct import Headers, Outlet
from headwater.source import Straight
from headwater.upstream.sweep import Sweep

_log = logging.getLogger("headwater.server")

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


class Stream(ABC):
    """What is told, and to whom. Where it comes from is for `Followed` and `Poured` to say."""

    __slots__ = (
        "_answer",
        "_encode",
        "_ended",
        "_flowing",
        "_gone",
        "_heartbeat_s",
        "_limit_bytes",
        "_outlet",
        "_over",
        "_rest",
        "_silent_since_s",
        "_sweep",
        "_told_gone",
        "_waking",
    )

    def __init__(
        self,
        outlet: Outlet,
        answer: Answer,
        heartbeat_s: float,
        on_gone: Callable[[], None],
        limit_bytes: int | None = None,
    ) -> None:
        self._outlet = outlet
        self._answer = answer
        self._encode = answer.encode
        self._limit_bytes = limit_bytes
        self._told_gone = on_gone
        self._heartbeat_s = heartbeat_s
        self._silent_since_s: float | None = None
        """As far as `tick` knows: no token notes when it came."""
        self._rest = b""
        """What waits for the head to be sent, or is the last of all."""
        self._flowing = False
        """The head is sent, and nothing waits: what comes is written at once."""
        self._ended = False
        """There is no more to come."""
        self._gone = False
        self._over = False
        """All is said, or nobody is there to hear it."""
        self._waking: asyncio.Future[None] | None = None

    async def serve(self, sweep: Sweep) -> None:
        """Until it is over."""
        try:
            self.begin(sweep)
            while not self._over:
                await self._wait()
        finally:
            self._close()

    def begin(self, sweep: Sweep) -> None:
        """It has all that it needs, but for what is only in a store."""
        self._sweep = sweep
        sweep.add(self.tick)
        self._outlet.attach(self, limit_bytes=self._limit_bytes)
        if not self._gone:
            self._listen()

    def _close(self) -> None:
        self._over = True
        self._sweep.discard(self.tick)
        self._leave()
        self._outlet.detach()
        self._wake()

    # --------------------------------------------------------------- the source's

    @abstractmethod
    def _listen(self) -> None:
        """From now on, `_show` what comes."""

    @abstractmethod
    def _leave(self) -> None:
        """Nobody is there to show it to any more."""

    @abstractmethod
    def _go_straight(self, around: tuple[bytes, bytes] | None) -> None:
        """As long as nothing but plain text comes, it need not be taken apart: this stands around each. None: it must
        be, until `_show` says otherwise."""

    def _show(self, events: Sequence[Event]) -> None:
        if self._ended or self._gone or not events:
            return
        try:
            body = self._encode(events)
        except Exception:
            # What it would leave out must not stand before a success, nor leave a client waiting for its end.
            _log.exception("an answer is broken off: it can't be told")
            self._outlet.abort()
            self.on_gone()
            return
        if type(events[-1]) is RunEnded:
            self._finish(body)
        elif body and self._flowing:
            self._outlet.write(body)
        elif body:
            self._write(body)
        is_text = self._flowing and type(events[-1]) is TextDelta
        self._go_straight(self._answer.around_text() if is_text else None)

    # --------------------------------------------------------------- the task's

    async def _wait(self) -> None:
        # One future for each wait, and a wait for each stream: see `Follower`.
        self._waking = asyncio.get_running_loop().create_future()
        await self._waking

    def _wake(self) -> None:
        if self._waking is not None and not self._waking.done():
            self._waking.set_result(None)

    # --------------------------------------------------------------- to the client

    def _write(self, body: bytes) -> None:
        if self._flowing:
            self._outlet.write(body)
            return
        self._rest += body
        if not self._outlet.behind:
            # In this order: the headers go by the status, which stands from now on.
            status = self._answer.begin()
            rest, self._rest, self._flowing = self._rest, b"", True
            self._outlet.begin(status, [*_FIXED, *self._answer.headers], rest)

    def _finish(self, body: bytes) -> None:
        self._ended = True
        self._rest += body
        if not self._outlet.behind:
            self._end()

    def _end(self) -> None:
        if self._flowing:
            self._outlet.end(self._rest)
        else:
            status = self._answer.begin()
            self._outlet.whole(status, [*_FIXED, *self._answer.headers], self._rest)
        self._close()

    # -------------------------------------------------------------- the client's

    @abstractmethod
    def on_full(self) -> None: ...

    def on_room(self) -> None:
        if self._over:
            return
        if self._ended:
            self._end()
        elif self._rest:
            self._write(b"")

    def on_gone(self) -> None:
        self._gone = True
        self._told_gone()
        self._close()

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
        return not (self._ended or self._gone) and (self._flowing or not self._outlet.behind)


class Followed(Stream):
    """From a log, with a cursor: a client that is behind is one that stands still."""

    __slots__ = ("_around", "_follower", "_full", "_news", "_reading")

    def __init__(
        self,
        outlet: Outlet,
        follower: Follower,
        answer: Answer,
        *,
        heartbeat_s: float = 15.0,
        on_gone: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(outlet, answer, heartbeat_s, on_gone)
        self._follower = follower
        self._around: tuple[bytes, bytes] | None = None
        self._full = False
        self._news = False
        self._reading = False
        """What comes next is in the store: the task is to read it."""

    def _listen(self) -> None:
        self._follower.on_news(self._on_news)
        self._on_news()

    def _leave(self) -> None:
        self._follower.leave()

    def _go_straight(self, around: tuple[bytes, bytes] | None) -> None:
        self._around = around

    async def _wait(self) -> None:
        if self._reading:
            await self._read()
        else:
            await super()._wait()

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

    def _show_plain(self, texts: Sequence[bytes], before: bytes, after: bytes) -> None:
        if len(texts) == 1:
            self._outlet.write(b"%b%b%b" % (before, texts[0], after))
        elif texts:
            self._outlet.write(b"".join([b"%b%b%b" % (before, text, after) for text in texts]))

    def _break_off(self) -> None:
        """The store can't say how it goes on, and the client should not wait for it to."""
        self._show([RunEnded(Interrupted("store"))])

    def on_full(self) -> None:
        self._full = True

    def on_room(self) -> None:
        self._full = False
        super().on_room()
        self._on_news()

    def _hears(self) -> bool:
        return not self._full and super()._hears()


class Poured(Stream):
    """From a run that no store has: it is held up while its client is `limit_bytes` behind."""

    __slots__ = ("_live",)

    def __init__(
        self,
        outlet: Outlet,
        live: LiveRun,
        answer: Answer,
        *,
        heartbeat_s: float = 15.0,
        on_gone: Callable[[], None] = lambda: None,
        limit_bytes: int | None = None,
    ) -> None:
        super().__init__(outlet, answer, heartbeat_s, on_gone, limit_bytes)
        self._live = live

    def _listen(self) -> None:
        self._live.pour(self._show)

    def _go_straight(self, around: tuple[bytes, bytes] | None) -> None:
        # Not even by here. Whatever else comes has closed it already.
        if around is not None:
            self._live.straight = Straight(*around, self._outlet.write)

    def on_full(self) -> None:
        self._live.pause()

    def on_room(self) -> None:
        # First: what waits to be told may hold it up again.
        self._live.resume()
        super().on_room()

    def _leave(self) -> None:
        self._live.pour(None)
