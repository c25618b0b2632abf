"""A client that is behind from the start, as in a pipeline that is not read: what waits for its head (C64, C69)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import msgspec
import pytest

from headwater.clock import SystemClock
from headwater.dialects import DIALECTS
from headwater.dialects.base import Head
from headwater.events import Failed
from headwater.records import Run
from headwater.runs.live import LiveRun
from headwater.server.direct import Headers, Outlet, Writer
from headwater.server.encoding import Streamed
from headwater.server.streams import Poured, Stream
from headwater.upstream.sweep import Sweep
from tests.runs.puppets import OWNER, Puppet, memory, new_id, stage
from tests.runs.test_ends import make

pytestmark = pytest.mark.anyio


class Wire:
    """An `Outlet` whose client reads when the test says so; and what it was sent."""

    def __init__(self) -> None:
        self.behind = True
        self.wrote = False
        self.writer: Writer | None = None
        self.heads: list[int] = []
        self.body: list[bytes] = []
        self.ended = False

    def attach(self, writer: Writer, *, limit_bytes: int | None = None) -> None:
        self.writer = writer

    def detach(self) -> None:
        self.writer = None

    def begin(self, status: int, headers: Headers, body: bytes = b"") -> None:
        self.heads.append(status)
        if body:
            self.body.append(body)

    def write(self, body: bytes) -> None:
        assert body, "an empty chunk is the end of an answer"
        assert self.heads, "there is no head"
        self.body.append(body)

    def end(self, body: bytes = b"") -> None:
        assert self.heads, "there is no head"
        self.body.append(body)
        self.ended = True

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        self.heads.append(status)
        self.end(body)

    def has_room(self) -> None:
        self.behind = False
        if self.writer is not None:
            self.writer.on_room()


class Told:
    def __init__(self, wire: Wire, stream: Stream, puppet: Puppet, live: LiveRun) -> None:
        self.wire, self.stream, self.puppet, self.live = wire, stream, puppet, live


@asynccontextmanager
async def told() -> AsyncIterator[Told]:
    async with stage(memory()) as staged:
        run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=0.0, recorded=False, on_disconnect="cancel")
        puppet, wire, chat, sweep = Puppet(), Wire(), DIALECTS["chat"], Sweep(SystemClock())
        live = staged.runs.start_unrecorded(run, make(puppet))
        head = Head(run.id, 0, "m", {})
        answer = Streamed(chat, head, chat.encoder(head, include_usage=False, style="error"))
        stream = Poured(cast(Outlet, wire), live, answer)
        serving = asyncio.create_task(stream.serve(sweep))
        await puppet.begun.wait()
        await asyncio.sleep(0)
        yield Told(wire, stream, puppet, live)
        async with asyncio.timeout(10):
            await serving
        await sweep.close()


async def test_what_waits_for_room_goes_out_behind_the_head_and_what_comes_follows() -> None:
    async with told() as one:
        one.puppet.say("first ")
        await asyncio.sleep(0)
        assert (one.wire.heads, one.wire.body) == ([], [])
        one.wire.has_room()
        assert one.wire.heads == [200]
        one.puppet.say("second")
        for _ in range(5):
            await asyncio.sleep(0)
        assert not one.wire.ended
        one.puppet.end()
    body = b"".join(one.wire.body)
    assert one.wire.heads == [200]
    assert body.index(b"first ") < body.index(b"second") < body.index(b"[DONE]")


async def test_an_end_that_waits_for_room_goes_out_once_there_is_some() -> None:
    async with told() as one:
        one.puppet.say("word")
        one.puppet.end()
        await asyncio.wait({one.live.over})
        assert (one.wire.heads, one.wire.ended) == ([], False)
        one.wire.has_room()
        assert (one.wire.heads, one.wire.ended) == ([200], True)
    assert b"word" in b"".join(one.wire.body)


async def test_no_beat_takes_the_status_from_a_refusal() -> None:
    """C64: nothing was said yet, and so it can still be said with the right status."""
    async with told() as one:
        one.stream.tick(0.0)
        one.stream.tick(100.0)
        one.puppet.end(Failed("refused", "No.", 400))
        one.wire.has_room()
    assert one.wire.heads == [400]
    assert msgspec.json.decode(b"".join(one.wire.body))["error"]["message"] == "No."


async def test_a_beat_is_the_first_that_a_client_with_room_may_hear() -> None:
    async with told() as one:
        one.wire.has_room()
        one.stream.tick(0.0)
        one.stream.tick(100.0)
        assert (one.wire.heads, one.wire.body) == ([200], [b": keep-alive\n\n"])
        one.puppet.end()


async def test_the_end_goes_out_with_the_last_words() -> None:
    async with told() as one:
        one.wire.has_room()
        one.puppet.say("word")
        one.puppet.end()
        async with asyncio.timeout(10):
            while one.live.run.outcome is None:  # noqa: ASYNC110 -- turn by turn
                await asyncio.sleep(0)
        assert one.wire.ended
    assert b"".join(one.wire.body).endswith(b"[DONE]\n\n")


async def test_nothing_is_written_to_one_who_has_left() -> None:
    async with told() as one:
        one.puppet.say("word")
        one.stream.on_gone()
        one.wire.has_room()
        one.stream.tick(0.0)
        one.stream.tick(100.0)
        one.puppet.end()
    assert (one.wire.heads, one.wire.body) == ([], [])


async def test_nor_to_one_who_leaves_while_the_end_waits_for_room() -> None:
    async with told() as one:
        one.puppet.say("word")
        one.puppet.end()
        await asyncio.wait({one.live.over})
        for _ in range(5):
            await asyncio.sleep(0)
        one.stream.on_gone()
        one.wire.has_room()
    assert (one.wire.heads, one.wire.body) == ([], [])
