"""The follower and the real server's native API (C50, C51)."""

import asyncio
import json
import urllib.request
from pathlib import Path

import pytest

from headwater.client import FollowError, follow
from headwater.events import Entry, Interrupted, RunEnded
from tests.test_serve import served

pytestmark = pytest.mark.anyio


def ask(url: str, body: object) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(json.load(answer)["id"])


async def test_a_model_run_is_followed_over_a_kill_of_the_server(tmp_path: Path) -> None:
    environ = {"HEADWATER_STORE__URL": f"sqlite:{tmp_path / 'h.db'}"}
    seen: list[Entry] = []

    async def collect(url: str) -> None:
        async for entry in follow(url):
            seen.append(entry)

    async with asyncio.timeout(90):
        with served("--port", "0", environ=environ) as (base, process):
            run_id = await asyncio.to_thread(ask, f"{base}/api/runs", {"model": "demo/story", "input": "Go on."})
            url = f"{base}/api/runs/{run_id}/events"
            following = asyncio.create_task(collect(url))
            while len(seen) < 8:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
            process.kill()
        with served("--port", base.rpartition(":")[2], environ=environ):
            await following
            assert [entry.seq for entry in seen] == list(range(len(seen)))
            assert seen[-1].event == RunEnded(Interrupted("crash"))
            assert [entry async for entry in follow(url)] == seen
            assert [entry async for entry in follow(url, after=seen[-1].seq)] == []
            with pytest.raises(FollowError) as ahead:
                await anext(follow(url, after=1_000))
            assert ahead.value.status == 410
            assert ahead.value.answer["error"]["run"]["id"] == run_id, ahead.value.answer
            with pytest.raises(FollowError) as missing:
                await anext(follow(f"{base}/api/runs/run_none/events"))
            assert missing.value.status == 404
