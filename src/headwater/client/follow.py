"""Follows a run over HTTP from Python, and comes back with its cursor whenever the connection is lost.

    async for entry in follow("http://127.0.0.1:8790/api/runs/run_…/events"):
        ...

Owns the coming back: no event is missed, none is given twice, and it ends where the run does. A refusal that will not
pass (404, 410, 401, …) is raised at once. Starts and stops nothing: a follower that leaves leaves the run alone.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from headwater import sse
from headwater.clock import Clock, SystemClock
from headwater.errors import HeadwaterError
from headwater.events import Entry, RunEnded, decode_entry
from headwater.judge import Transport
from headwater.policy import backoff
from headwater.upstream.http import HttpExchange
from headwater.upstream.pool import Pool, proxy_of_environment, read_address

_REFUSAL_LIMIT_BYTES: Final = 1 << 20
_SETTLED_S: Final = 10.0
"""A connection that has lasted so long was a good one, also if nothing was said on it."""


class Persistence(Struct, frozen=True, kw_only=True):
    """How hard a follower tries."""

    attempts: int = 10
    """In a row that bring nothing new, before it gives up: with these waits, after about half a minute."""
    backoff_s: float = 0.25
    backoff_cap_s: float = 5.0
    retry_after_cap_s: float = 30.0
    connect_timeout_s: float = 10.0
    idle_s: float = 45.0
    """Silence after which the connection counts as lost. The server sends a comment every 15 s."""


class FollowError(HeadwaterError):
    """The server refuses for good, or can't be reached: `status` None."""

    def __init__(self, message: str, *, status: int | None = None, answer: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.answer = answer or {}
        """What it said, if that was JSON; with 410 a snapshot of the run, in its `error`."""


class _Lost(Exception):
    """This connection is over and the run is not, or nobody knows."""

    def __init__(self, what: str, retry_after_s: float | None = None) -> None:
        super().__init__(what)
        self.retry_after_s = retry_after_s


async def follow(
    url: str,
    after: int = -1,
    *,
    key: str | None = None,
    persistence: Persistence = Persistence(),
    clock: Clock = SystemClock(),
    on_lost: Callable[[str], None] | None = None,
) -> AsyncGenerator[Entry, None]:
    """Every event after the cursor, in its place, to the run's ending. Raises `FollowError`.

    `on_lost` is told why, each time that a connection was lost and another one is about to be tried.
    """
    place = _Place(url, after, key, persistence)
    failures = 0
    try:
        while True:
            began_s, before = clock.now_s(), place.cursor
            try:
                async with aclosing(place.connected()) as entries:
                    async for entry in entries:
                        yield entry
                return
            except _Lost as lost:
                lasted = place.cursor > before or clock.now_s() - began_s > _SETTLED_S
                failures = 1 if lasted else failures + 1
                if failures >= persistence.attempts:
                    raise FollowError(f"Gave up on {url}: {lost}.") from lost
                delay_s = backoff(failures, persistence.backoff_s, persistence.backoff_cap_s, random.random())
                asked_s = min(lost.retry_after_s or 0.0, persistence.retry_after_cap_s)
                if on_lost is not None:
                    on_lost(str(lost))
            await clock.sleep(max(delay_s, asked_s))
    finally:
        place.close()


class _Place:
    """Where a follower is: at an address, and in a log."""

    def __init__(self, url: str, after: int, key: str | None, persistence: Persistence) -> None:
        address = read_address(url)
        parts = urlsplit(url)
        self.cursor = after
        self._path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        self._headers = {"accept": "text/event-stream", "accept-encoding": "identity"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        self._idle_s = persistence.idle_s
        self._pool = Pool(address, proxy=proxy_of_environment(address), connect_timeout_s=persistence.connect_timeout_s)

    def close(self) -> None:
        self._pool.close()

    async def connected(self) -> AsyncGenerator[Entry, None]:
        """What one connection brings. It returns at the run's ending, and raises `_Lost` at any other."""
        exchange = HttpExchange(lambda: None)
        try:
            await self._open(exchange)
            if exchange.status == 204:
                return
            body = _Body(exchange, self._idle_s)
            await _check(exchange, body)
            frames = sse.Decoder()
            while data := await body.next():
                for frame in frames.feed(data):
                    entry = self._take(frame)
                    if entry is not None:
                        yield entry
                        if type(entry.event) is RunEnded:
                            return
            raise _Lost("the connection was closed before the run had ended")
        finally:
            exchange.close()

    async def _open(self, exchange: HttpExchange) -> None:
        headers = self._headers if self.cursor < 0 else {**self._headers, "last-event-id": str(self.cursor)}
        try:
            connection = await self._pool.connect()
            request = self._pool.head(self._path, headers, "GET") + b"\r\n"
            async with asyncio.timeout(self._idle_s):
                ending = await exchange.ask(connection, request)
        except OSError as error:
            raise _Lost(str(error) or type(error).__name__) from error
        if ending is not None:
            raise _Lost("the connection was closed before there was an answer")

    def _take(self, frame: sse.Frame) -> Entry | None:
        """None: it has no place in the log, was here before, or is of a kind that only a later version knows."""
        if frame.event is None or not frame.event.startswith("run.") or not (frame.id or "").isdecimal():
            return None
        seq = int(frame.id or "")
        if seq <= self.cursor:
            return None
        if seq > self.cursor + 1:
            raise _Lost(f"event {seq} came after event {self.cursor}")
        self.cursor = seq
        try:
            return decode_entry(frame.data)
        except msgspec.ValidationError:
            return None
        except ValueError as error:
            raise FollowError(f"Event {seq} can't be read: {error}.") from error


async def _check(exchange: HttpExchange, body: "_Body") -> None:
    status = exchange.status
    if status == 200 and exchange.headers.get("content-type", "").startswith("text/event-stream"):
        return
    if status in (408, 425, 429) or status >= 500:
        seconds = exchange.headers.get("retry-after", "")
        raise _Lost(f"the server answered {status}", float(seconds) if seconds.isdecimal() else None)
    answer = await body.whole()
    error = answer.get("error")
    said = error.get("message") if isinstance(error, dict) else None
    raise FollowError(str(said or f"The server answered {status}, and no events."), status=status, answer=answer)


class _Body:
    """An answer's body, read by a task at its own pace: what it has not asked for yet stays with the peer."""

    def __init__(self, exchange: HttpExchange, idle_s: float) -> None:
        self._exchange = exchange
        self._idle_s = idle_s
        self._read: list[bytes] = []
        self._news = asyncio.Event()
        exchange.listen(self._on_bytes, self._on_end)

    async def next(self) -> bytes:
        """Nothing: that was all of it. Raises `_Lost` if it is silent for too long."""
        if not self._read:
            self._exchange.resume()
            try:
                async with asyncio.timeout(self._idle_s):
                    await self._news.wait()
            except TimeoutError:
                raise _Lost(f"nothing came for {self._idle_s:g} s") from None
        self._news.clear()
        data, self._read = b"".join(self._read), []
        return data

    async def whole(self) -> dict[str, Any]:
        """A small one, of JSON. Empty if it is none."""
        body = b""
        while len(body) < _REFUSAL_LIMIT_BYTES and (data := await self.next()):
            body += data
        try:
            answer = msgspec.json.decode(body)
        except ValueError:
            return {}
        return answer if isinstance(answer, dict) else {}

    def _on_bytes(self, data: bytes) -> None:
        self._read.append(data)
        self._exchange.pause()
        self._news.set()

    def _on_end(self, transport: Transport) -> None:
        # However it ended, the last that `next` gives is nothing. It comes after all that was read: a pause holds it.
        self._news.set()
