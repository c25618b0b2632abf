"""Whom a name leads to is found once, and anew when a list of models was read: never what the lists said before."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headwater.clock import SystemClock
from headwater.config.settings import ModelSettings, Settings, UpstreamSettings
from headwater.errors import CallerError
from headwater.upstream.upstreams import Upstreams

pytestmark = pytest.mark.anyio


class Lists:
    """A server that has lists of models by the first part of their path; None: it can't say."""

    def __init__(self, **lists: list[dict[str, Any]] | None) -> None:
        self.lists = lists
        self.asked = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        models = self.lists[head.split(b"/")[1].decode()]
        self.asked += 1
        body = msgspec.json.encode({"data": models})
        status = b"500 No" if models is None else b"200 OK"
        writer.write(b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body))
        writer.close()


@asynccontextmanager
async def asking(lists: Lists, *models: ModelSettings) -> AsyncIterator[Upstreams]:
    server = await asyncio.start_server(lists, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    settings = {name: UpstreamSettings(base_url=f"{url}/{name}/v1") for name in lists.lists}
    built = Upstreams(Settings(upstreams=settings, models=models), SystemClock(), Path("unused"))
    try:
        yield built
    finally:
        await built.close()
        server.close()


async def place(built: Upstreams, name: str) -> list[str] | int:
    """Who is asked, first and next; or the status of a refusal."""
    try:
        return [route.endpoint.name for route in (await built.model(name)).routes]
    except CallerError as error:
        return error.status


async def test_a_name_is_looked_for_once_for_as_long_as_no_list_is_read() -> None:
    lists = Lists(a=[{"id": "x"}], b=[{"id": "y"}])
    async with asking(lists) as built:
        assert await place(built, "x") == ["a"]
        first, again = await built.model("x"), await built.model("x")
        assert lists.asked == 2
        assert again.routes[0] is first.routes[0]
        # What a turn notes of its request is its own.
        assert again is not first


async def test_who_lists_a_name_is_asked_for_it_from_the_moment_that_the_list_is_read() -> None:
    lists = Lists(a=[{"id": "x"}], b=[{"id": "y"}])
    later = itertools.count(1e6, 1e6)
    async with asking(lists) as built:
        assert await place(built, "x") == ["a"]
        lists.lists["b"] = [{"id": "x"}]
        assert await place(built, "x") == ["a"]
        await built.catalog.refresh(next(later))
        assert await place(built, "x") == 400
        lists.lists["a"] = []
        await built.catalog.refresh(next(later))
        assert await place(built, "x") == ["b"]
        # One that can't say stays with what it has said.
        lists.lists["b"] = None
        await built.catalog.refresh(next(later))
        assert await place(built, "x") == ["b"]
        lists.lists["b"] = []
        await built.catalog.refresh(next(later))
        assert await place(built, "x") == 404


async def test_the_only_upstream_is_asked_for_anything_until_it_says_what_it_has() -> None:
    lists = Lists(a=None)
    async with asking(lists) as built:
        assert [await place(built, "x"), await place(built, "a/x"), await place(built, "x")] == [["a"]] * 3
        lists.lists["a"] = [{"id": "y"}]
        await built.catalog.refresh(1e6)
        assert [await place(built, "x"), await place(built, "a/x"), await place(built, "y")] == [404, 404, ["a"]]


async def test_what_a_list_says_of_a_model_counts_once_it_is_read() -> None:
    lists = Lists(a=[{"id": "x"}])
    fast = ModelSettings(name="fast", upstream="a", model="x")
    async with asking(lists, fast) as built:
        assert (await built.model("fast")).routes[0].prefill == "none"
        lists.lists["a"] = [{"id": "x", "owned_by": "vllm"}]
        await built.catalog.refresh(1e6)
        assert (await built.model("fast")).routes[0].prefill == "prefix_flag"


async def test_a_fallback_that_somebody_answers_for_by_now_is_fallen_back_to() -> None:
    lists = Lists(a=[{"id": "x"}], b=[{"id": "z"}])
    fast = ModelSettings(name="fast", upstream="a", model="x", fallbacks=("later",))
    async with asking(lists, fast) as built:
        assert [await place(built, "fast"), await place(built, "fast")] == [["a"], ["a"]]
        assert lists.asked == 2
        lists.lists["b"] = [{"id": "later"}]
        # Somebody else asks for it, which has the lists read.
        await built.catalog.resolve("later", 1e6)
        assert await place(built, "fast") == ["a", "b"]


async def test_ever_other_names_do_not_fill_the_memory() -> None:
    async with asking(Lists(a=None)) as built:
        assert await place(built, "first") == ["a"]
        kept = (await built.model("first")).routes[0]
        assert (await built.model("first")).routes[0] is kept
        for number in range(1000):
            await built.model(f"a/{number}")
        assert (await built.model("first")).routes[0] is not kept
