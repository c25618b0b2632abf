"""Server processes on one Postgres, each with an address of its own, and clients that go from one to another."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from headwater import sse
from headwater.testing import Simulator
from headwater.testing.postgres import PostgresServer
from tests.commands import NOTHING_HERE
from tests.store.postgres_backend import emptied
from tests.store.proxy import Proxy, proxied

SAFETY_S = 60.0
"""No test waits longer. It is no measure of anything."""
LEASE_S = 3.0
ENDINGS = ("run.completed", "run.incomplete", "run.stopped", "run.failed", "run.interrupted")


class Member:
    """One `headwater serve`."""

    def __init__(
        self, folder: Path, url: str, simulator: Simulator, proxy: Proxy, arguments: Sequence[str], lease_s: float
    ) -> None:
        self.proxy = proxy
        """Between it and Postgres."""
        self.process: subprocess.Popen[bytes]
        self._said = folder / "said"
        self._arguments = arguments
        self._folder = folder
        self.url = ""
        self._environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path),
            "HOME": str(NOTHING_HERE),
            "HEADWATER_STORE__URL": url,
            "HEADWATER_STORE__LEASE_S": str(lease_s),
            "HEADWATER_SERVER__HEARTBEAT_S": "1",
            "HEADWATER_SERVER__DRAIN_S": "0.5",
        }
        config = f'[upstreams.up]\nbase_url = "{simulator.url}/v1"\nlist_models = false\nretries = 0\n'
        (folder / "headwater.toml").write_text(config)

    async def begin(self) -> None:
        self._start()
        found = await self.says(r"serves (http://127\.0\.0\.1:\d+)/")
        self.url = found[1]

    def _start(self) -> None:
        command = [sys.executable, "-c", "from headwater.cli import main; main()", "serve", "--port", "0"]
        with open(self._said, "wb") as said:
            self.process = subprocess.Popen(
                [*command, *self._arguments], stdout=said, stderr=said, cwd=self._folder, env=self._environ
            )

    async def says(self, pattern: str) -> re.Match[str]:
        async with asyncio.timeout(SAFETY_S):
            while (found := re.search(pattern, self.said)) is None:
                assert self.process.poll() is None or re.search(pattern, self.said), self.said
                await asyncio.sleep(0.02)
        return found

    @property
    def said(self) -> str:
        return self._said.read_text()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        try:
            await asyncio.to_thread(self.process.wait, 20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)


class Fleet:
    def __init__(self, members: list[Member], simulator: Simulator, client: aiohttp.ClientSession) -> None:
        self.members = members
        self.simulator = simulator
        self._client = client

    async def ask(self, member: Member, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"content-type": "application/json"}
        async with (
            asyncio.timeout(SAFETY_S),
            self._client.request(method, f"{member.url}{path}", data=content, headers=headers) as answer,
        ):
            read = await answer.read()
            return answer.status, msgspec.json.decode(read) if read else None

    async def say(self, member: Member, session_id: str, model: str, **more: Any) -> str:
        """A run of this member's."""
        path = f"/api/sessions/{session_id}/messages"
        status, said = await self.ask(member, "POST", path, {"content": "Tell me", "model": f"up/{model}"} | more)
        assert status == 201, said
        return str(said["run"]["id"])

    async def session(self, member: Member) -> str:
        status, made = await self.ask(member, "POST", "/api/sessions", {})
        assert status == 201, made
        return str(made["id"])

    async def ready(self, member: Member) -> None:
        async with asyncio.timeout(SAFETY_S):
            while True:
                with suppress(aiohttp.ClientError):
                    async with self._client.get(f"{member.url}/readyz") as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def events(self, member: Member, path: str, after: str | None) -> AsyncIterator[AsyncIterator[sse.Frame]]:
        headers = {} if after is None else {"last-event-id": after}
        # The server is heard of every second at least.
        patience = aiohttp.ClientTimeout(total=None, sock_connect=4, sock_read=4)
        async with self._client.get(f"{member.url}{path}", headers=headers, timeout=patience) as answer:
            assert answer.status == 200, answer.status
            yield _frames(answer)


async def _frames(answer: aiohttp.ClientResponse) -> AsyncIterator[sse.Frame]:
    decoder = sse.Decoder()
    while piece := await answer.content.readany():
        for frame in decoder.feed(piece):
            yield frame


class Watcher:
    """Follows a run to its ending, from whichever member is there."""

    def __init__(self, fleet: Fleet, run_id: str, first: Member) -> None:
        self._fleet = fleet
        self.run_id = run_id
        self._at = fleet.members.index(first)
        self.frames: list[sse.Frame] = []
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while not self.frames or self.frames[-1].event not in ENDINGS:
            member = self._fleet.members[self._at % len(self._fleet.members)]
            after = self.frames[-1].id if self.frames else None
            with suppress(aiohttp.ClientError, TimeoutError, AssertionError):
                async with self._fleet.events(member, f"/api/runs/{self.run_id}/events", after) as frames:
                    async for frame in frames:
                        if str(frame.event).startswith("run."):
                            self.frames.append(frame)
                            self._news.set()
            self._at += 1
            await asyncio.sleep(0.05)

    async def words(self, number: int) -> None:
        """Until so many have come."""
        async with asyncio.timeout(SAFETY_S):
            while len(self.texts) < number:
                self._news.clear()
                await self._news.wait()

    async def until(self, event: str) -> Any:
        """What the first of these says."""
        async with asyncio.timeout(SAFETY_S):
            while not (found := [frame for frame in self.frames if frame.event == event]):
                self._news.clear()
                await self._news.wait()
        return msgspec.json.decode(found[0].data)

    async def ended(self) -> str:
        try:
            async with asyncio.timeout(SAFETY_S):
                await self.task
        except TimeoutError:
            said = "\n".join(member.said for member in self._fleet.members)
            raise AssertionError(f"{self.run_id} has no end at {self._at}: {self.frames[-1:]}\n{said}") from None
        assert [frame.id for frame in self.frames] == [str(n) for n in range(len(self.frames))], self.frames
        assert sum(frame.event in ENDINGS for frame in self.frames) == 1
        return str(self.frames[-1].event)

    @property
    def texts(self) -> list[str]:
        return [msgspec.json.decode(one.data)["text"] for one in self.frames if one.event == "run.text"]


class Talk:
    """A session with a run in it, followed from two members."""

    def __init__(self, fleet: Fleet, owner: Member, session_id: str, run_id: str, others: list[Member]) -> None:
        self.fleet = fleet
        self.owner = owner
        self.session_id = session_id
        self.run_id = run_id
        self.watchers = [Watcher(fleet, run_id, member) for member in (owner, *others)]

    @classmethod
    async def begin(cls, fleet: Fleet, owner: Member, model: str) -> "Talk":
        session_id = await fleet.session(owner)
        run_id = await fleet.say(owner, session_id, model)
        others = [member for member in fleet.members if member is not owner]
        return cls(fleet, owner, session_id, run_id, others[:1])

    async def check(self, asked: Member) -> str:
        """Every follower got every event once, and one ending; it was saved once, as it was shown."""
        endings = {await watcher.ended() for watcher in self.watchers}
        assert len(endings) == 1, endings
        assert len({tuple((one.id, one.data) for one in watcher.frames) for watcher in self.watchers}) == 1
        said = "".join(self.watchers[0].texts)
        _, found = await self.fleet.ask(asked, "GET", f"/api/sessions/{self.session_id}/messages")
        answers = [item for item in found["items"] if item["kind"] == "message" and item["role"] == "assistant"]
        assert Counter(item["run_id"] for item in answers) == {self.run_id: 1}
        assert answers[0]["content"] == said
        (ending,) = endings
        notices = [item["code"] for item in found["items"] if item["kind"] == "notice"]
        assert (answers[0]["status"], notices) == (
            ("complete", []) if ending == "run.completed" else ("partial", [ending.removeprefix("run.")])
        )
        return ending


@asynccontextmanager
async def fleet_of(
    number: int, postgres: PostgresServer, name: str, *arguments: str, lease_s: float = LEASE_S
) -> AsyncIterator[Fleet]:
    url = emptied(postgres, name)
    async with AsyncExitStack() as stack:
        simulator = await stack.enter_async_context(Simulator())
        # Each request may go to another process of an address.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        client = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        members: list[Member] = []
        for _ in range(number):
            # The path of a socket is short, and pytest's own folders are not.
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hw", ignore_cleanup_errors=True)))
            proxy, by_proxy = await stack.enter_async_context(proxied(url, folder))
            members.append(Member(folder, by_proxy, simulator, proxy, arguments, lease_s))
            stack.push_async_callback(members[-1].end)
        # The first makes the tables, or any of them does.
        await asyncio.gather(*(member.begin() for member in members))
        yield Fleet(members, simulator, client)
