"""A stream ends with the right to read it: whoever comes back is told why."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from headwater.records import Key
from headwater.server.callers import KNOWN_S, hash_of
from headwater.testing import ManualClock
from tests.server_native.serving import Events, Served, served, settings_of, store_url

pytestmark = pytest.mark.anyio

ANNS = Key(id="key_1", owner="ann", hash=hash_of("secret"), created_at=0.0)
OTHER = Key(id="key_2", owner="bob", hash=hash_of("other"), created_at=0.0)


@asynccontextmanager
async def doors(tmp_path: Path, *keys: Key) -> AsyncIterator[tuple[Served, ManualClock]]:
    clock = ManualClock()
    async with served(settings_of(store_url("memory", tmp_path)), doors_clock=clock) as server:
        for key in keys:
            await server.services.store.put_key(key)
        yield server, clock


async def hanging(server: Served, key: str | None = None) -> str:
    return str((await server.post("/api/runs", {"input": "x", "model": "hang"}, key=key)).json["id"])


@asynccontextmanager
async def both(server: Served, run_id: str, **headers: str) -> AsyncIterator[tuple[Events, ...]]:
    """One run, and many, each as far as the run has come."""
    one, many = f"/api/runs/{run_id}/events", f"/api/events?runs={run_id}:-1"
    async with server.stream(one, **headers) as a, server.stream(many, **headers) as b:
        for events in (a, b):
            for _ in range(3):
                await events.until("run.text")
        yield a, b


async def passed(clock: ManualClock) -> None:
    """As long as a key may be believed, and until the next look after that."""
    await clock.advance(KNOWN_S)
    await clock.advance(KNOWN_S)


async def parting(events: Events) -> tuple[str | None, str]:
    [last] = [frame for frame in await events.rest() if frame.event != "changed"]
    assert b"id:" not in events.seen.rpartition(b"event: trouble")[2]
    return last.event, msgspec.json.decode(last.data)["code"]


async def test_streams_end_with_the_key_that_opened_them(tmp_path: Path) -> None:
    async with doors(tmp_path, ANNS, OTHER) as (server, clock):
        run_id = await hanging(server, "secret")
        bearer = {"authorization": "Bearer secret"}
        async with (
            both(server, run_id, **bearer) as streams,
            server.stream("/api/events", authorization="Bearer other"),
        ):
            await passed(clock)
            assert not any(events.response.content.at_eof() for events in streams)
            await server.services.store.put_key(replace(ANNS, revoked_at=1.0))
            await passed(clock)
            for events in streams:
                assert await parting(events) == ("trouble", "key_unknown")
        # The run is no stream: it goes on.
        live = server.services.runs.live(run_id)
        assert live is not None
        assert live.run.outcome is None
        assert (await server.get(f"/api/runs/{run_id}/events", key="secret")).code == "key_unknown"


async def test_streams_that_were_opened_before_there_were_keys_end_with_the_first(tmp_path: Path) -> None:
    async with doors(tmp_path) as (server, clock):
        run_id = await hanging(server)
        async with both(server, run_id) as streams:
            await server.services.store.put_key(OTHER)
            await passed(clock)
            for events in streams:
                assert await parting(events) == ("trouble", "key_needed")


async def test_a_key_that_is_less_than_it_was_opens_its_streams_anew(tmp_path: Path) -> None:
    async with doors(tmp_path, ANNS) as (server, clock):
        run_id = await hanging(server, "secret")
        async with both(server, run_id, authorization="Bearer secret") as streams:
            await server.services.store.put_key(replace(ANNS, scopes=("approve",)))
            await passed(clock)
            for events in streams:
                assert await parting(events) == ("trouble", "key_changed")
