"""SIGKILL in mid-stream: a follower comes back with its cursor, misses nothing, repeats nothing, hears the end (C51)."""

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest

from headwater import sse

pytestmark = pytest.mark.anyio

KILLS = 3


@asynccontextmanager
async def server(folder: Path, port: int = 0) -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.server_native.killed", str(folder), str(port), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield int(await asyncio.wait_for(process.stdout.readline(), 20)), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def read(client: aiohttp.ClientSession, url: str, after: int, most: int | None = None) -> list[sse.Frame]:
    """What comes, until the end, so many, or until the other side is dead."""
    frames: list[sse.Frame] = []
    decoder = sse.Decoder()
    headers = {"last-event-id": str(after)} if after >= 0 else {}
    try:
        async with asyncio.timeout(20), client.get(url, headers=headers) as response:
            assert response.status == 200
            while (most is None or len(frames) < most) and (piece := await response.content.readany()):
                frames += decoder.feed(piece)
    except aiohttp.ClientError:
        pass
    return frames


async def test_a_follower_comes_back_after_a_kill_without_gap_or_repeat(tmp_path: Path) -> None:
    for _ in range(KILLS):
        async with aiohttp.ClientSession() as client:
            async with server(tmp_path) as (port, process):
                base = f"http://127.0.0.1:{port}"
                body = msgspec.json.encode({"id": None})
                async with client.post(f"{base}/api/sessions", data=body, headers=JSON) as made:
                    session_id = (await made.json())["id"]
                said = msgspec.json.encode({"content": "Tell me", "model": "demo/story"})
                path = f"{base}/api/sessions/{session_id}/messages"
                async with client.post(path, data=said, headers=JSON) as begun:
                    run_id = (await begun.json())["run"]["id"]
                seen = await read(client, f"{base}/api/runs/{run_id}/events", -1, random.randrange(3, 30))
                process.kill()
            async with server(tmp_path, port):
                cursor = int(seen[-1].id or -1)
                rest = await read(client, f"{base}/api/runs/{run_id}/events", cursor)
                frames = [*seen, *rest]
                assert [frame.id for frame in frames] == [str(n) for n in range(len(frames))]
                assert [frame.event for frame in frames if frame.event in ENDINGS] == ["run.interrupted"]
                said_words = [msgspec.json.decode(one.data)["text"] for one in frames if one.event == "run.text"]
                async with client.get(f"{base}/api/sessions/{session_id}/messages") as found:
                    items = (await found.json())["items"]
                assert items[1]["content"] == "".join(said_words)
                assert items[1]["status"] == "partial"
                assert items[-1]["code"] == "interrupted"


JSON = {"content-type": "application/json"}
ENDINGS = ("run.completed", "run.incomplete", "run.stopped", "run.failed", "run.interrupted")
