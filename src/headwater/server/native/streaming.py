"""Server-sent events of the native API: one run, or many on one connection.

Replay and live are the same code, the run's `Follower`. Entries go out in the form that they are stored in. A
connection is a head, writers that take turns, a heartbeat for silence, and two who notice that the client left, or is
no longer to be let in.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec
from starlette.types import Receive, Send

from headwater import sse
from headwater.errors import StoreError
from headwater.events import Entry, RunStarted, encode_entry, wire_name
from headwater.runs.follow import ClosingError, Follower, GoneError, frame
from headwater.runs.many import Came
from headwater.server.refusals import Refusal
from headwater.server.services import Services
from headwater.store.results import Changed

_HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    # A proxy that gathers, or keeps, makes no stream of it.
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]
Write = Callable[[bytes], Coroutine[Any, Any, None]]
Work = Callable[[Write], Coroutine[Any, Any, None]]


class OpenStreams:
    """All connections that stream, so that a server that shuts down can end them."""

    def __init__(self) -> None:
        self._closers: set[Callable[[], None]] = set()
        self._closed = False

    def close(self) -> None:
        """Each ends cleanly, after what it is writing; clients come back with their cursors."""
        self._closed = True
        for close in tuple(self._closers):
            close()

    def add(self, close: Callable[[], None]) -> Callable[[], None]:
        self._closers.add(close)
        if self._closed:
            close()
        return lambda: self._closers.discard(close)


class EventStream:
    """`work` writes until there is no more, or until whoever reads it is `unwelcome`."""

    def __init__(
        self,
        streams: OpenStreams,
        heartbeat_s: float,
        work: Work,
        unwelcome: Callable[[], Coroutine[Any, Any, Refusal]],
    ) -> None:
        self._streams = streams
        self._heartbeat_s = heartbeat_s
        self._work = work
        self._unwelcome = unwelcome
        self._parting = b""
        self._turn = asyncio.Lock()
        self._silent = True

    async def send_to(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        self._send = send
        # So that a client knows at once that it is connected.
        await self._write(sse.comment("headwater"))
        work = asyncio.create_task(self._work(self._write))
        remove = self._streams.add(lambda: _cancel(work))
        watching = (self._beat(), self._until_unwelcome(work), _until_gone(receive, work))
        others = [asyncio.create_task(one) for one in watching]
        try:
            await asyncio.wait({work})
        finally:
            remove()
            for task in (work, *others):
                task.cancel()
            await asyncio.gather(work, *others, return_exceptions=True)
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error
        await send({"type": "http.response.body", "body": self._parting})

    async def _write(self, body: bytes) -> None:
        async with self._turn:
            self._silent = False
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _beat(self) -> None:
        """A comment after silence: no timer for each write, so it may come after less than twice that time."""
        while True:
            await asyncio.sleep(self._heartbeat_s / 2)
            if self._silent:
                await self._write(sse.comment())
            self._silent = True

    async def _until_unwelcome(self, work: asyncio.Task[None]) -> None:
        """They are told what they will be told when they come back."""
        refusal = await self._unwelcome()
        self._parting = _note("trouble", {"code": refusal.code, "message": refusal.message})
        work.cancel()


def _cancel(work: asyncio.Task[None]) -> None:
    work.cancel()


async def _until_gone(receive: Receive, work: asyncio.Task[None]) -> None:
    """Of a client that is gone uvicorn tells nobody who only writes."""
    while (await receive())["type"] != "http.disconnect":
        pass
    work.cancel()


# --------------------------------------------------------------------- one run


def one_run(services: Services, owner: str | None, run_id: str, after: int) -> Work:
    """`owner` None: whosever it is."""

    async def work(write: Write) -> None:
        follower = services.runs.follower(owner, run_id, after)
        await _follow(follower, write, lambda entries: b"".join(map(frame, entries)))

    return work


async def _follow(follower: Follower, write: Write, framed: Callable[[Sequence[Entry]], bytes]) -> None:
    try:
        while entries := await follower.next():
            await write(framed(entries))
    except StoreError as error:
        await write(_left(follower.run_id, error))
    finally:
        follower.leave()


def _left(run_id: str, error: StoreError) -> bytes:
    """No ending, and so without a number: unless it is gone, the client comes back with the cursor that it has."""
    match error:
        case GoneError():
            return _note("gone", {"run_id": run_id})
        case ClosingError():
            code, message = "shutting_down", error.message
        case _:
            code, message = "store_unavailable", f"The store: {error.trouble}."
    return _note("trouble", {"run_id": run_id, "code": code, "message": message})


def _note(event: str, said: Mapping[str, Any]) -> bytes:
    """An event without a place in a log."""
    return sse.encode(msgspec.json.encode(said), event=event)


# -------------------------------------------------------------------- many runs


class ManyRuns:
    """Every frame's id is where all the runs stand, so that a client that comes back misses and repeats nothing."""

    def __init__(self, services: Services, owner: str, cursors: Mapping[str, int], gone: Mapping[str, str]) -> None:
        """`gone`: runs that can't be followed, and why."""
        self._services = services
        self._owner = owner
        self._cursors = dict(cursors)
        self._gone = gone
        self._changed: dict[Changed, None] = {}
        self._news = asyncio.Event()

    async def work(self, write: Write) -> None:
        unwatch = self._services.store.watch_owner(self._owner, self._on_changed)
        try:
            for run_id, code in self._gone.items():
                await write(_note("gone", {"run_id": run_id, "code": code}))
            tasks = [asyncio.create_task(self._hint(write)), asyncio.create_task(self._follow(write))]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            unwatch()

    async def _follow(self, write: Write) -> None:
        many = self._services.runs.follow_many(self._owner, self._cursors)
        try:
            while True:
                for news in await many.next():
                    if isinstance(news, Came):
                        await write(self._frames(news))
                    else:
                        await write(_left(news.run_id, news.error))
        finally:
            many.leave()

    def _frames(self, came: Came) -> bytes:
        frames = []
        for entry in came.entries:
            self._cursors[came.run_id] = entry.seq
            line = encode_entry(entry)
            if not isinstance(entry.event, RunStarted):
                # That one says itself whose it is.
                line = b'{"run_id":"%b",%b' % (came.run_id.encode(), line[1:])
            frames.append(sse.encode(line, event=wire_name(entry.event), id=self._place()))
        return b"".join(frames)

    def _place(self) -> str:
        return ",".join(f"{run_id}:{seq}" for run_id, seq in self._cursors.items())

    def _on_changed(self, changed: Changed) -> None:
        self._changed[changed] = None
        self._news.set()

    async def _hint(self, write: Write) -> None:
        """What else has changed, each once however often it did while the client was being written to."""
        while True:
            await self._news.wait()
            self._news.clear()
            changed, self._changed = self._changed, {}
            await write(b"".join(_note("changed", {"kind": one.kind, "id": one.id}) for one in changed))
