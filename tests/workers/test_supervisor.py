"""`headwater serve --workers N`: one address, several processes, and what becomes of each."""

import asyncio
import os
import re
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from headwater.testing.postgres import PostgresServer
from tests.commands import finished
from tests.workers.fleet import SAFETY_S, Fleet, Member, Talk, fleet_of

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="there is no /proc here"),
]

LONG = "sim/tokens-4000@40"


@asynccontextmanager
async def family(postgres: PostgresServer, lease_s: float = 3600) -> AsyncIterator[tuple[Fleet, Member]]:
    """Nobody is found to be dead by waiting for so long a lease."""
    async with fleet_of(1, postgres, "family", "--workers", "2", lease_s=lease_s) as fleet:
        yield fleet, fleet.members[0]


def children(member: Member) -> list[int]:
    pid = member.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def until_gone(pids: list[int]) -> None:
    async with asyncio.timeout(SAFETY_S):
        while any(_lives(pid) for pid in pids):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_one_that_is_killed_is_replaced_and_its_runs_are_ended_at_once(postgres: PostgresServer) -> None:
    async with family(postgres) as (fleet, parent):
        assert "with 2 workers" in parent.said
        first, second = children(parent)
        # Which of them has a run is for the kernel to say: until both have some.
        talks: list[Talk] = []
        busy: set[int] = set()
        while busy != {first, second}:
            talks.append(await Talk.begin(fleet, parent, LONG))
            busy = {pid for pid in (first, second) if _connections(pid, fleet)}
        await asyncio.gather(*(watcher.words(3) for talk in talks for watcher in talk.watchers))
        os.kill(first, signal.SIGKILL)
        await parent.says(r"was killed \(SIGKILL\); another begins")
        ended = [talk for talk in talks if await _ends(talk)]
        assert 0 < len(ended) < len(talks)
        for talk in ended:
            assert await talk.check(parent) == "run.interrupted"
        assert _lives(second)
        third = (set(children(parent)) - {second}).pop()
        # A signal goes to all of them; those that are left end in time.
        parent.signal(signal.SIGHUP)
        async with asyncio.timeout(SAFETY_S):
            while parent.said.count("was read again") < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        parent.signal(signal.SIGTERM)
        assert await asyncio.to_thread(parent.process.wait, SAFETY_S) == 0
        assert not _lives(second)
        assert not _lives(third)
        assert "Traceback" not in parent.said


def _connections(pid: int, fleet: Fleet) -> bool:
    """Whether this process has a run: the simulator's port is at the other end of some socket of its."""
    port = int(fleet.simulator.url.rpartition(":")[2])
    theirs = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[2].partition(":")[2], 16) == port and f"socket:[{fields[9]}]" in theirs:
            return True
    return False


async def _ends(talk: Talk) -> bool:
    """Those of the one that lives go on; they are asked what they are, for no ending can be waited for."""
    until = time.monotonic() + SAFETY_S
    while time.monotonic() < until:
        try:
            _, run = await talk.fleet.ask(talk.owner, "GET", f"/api/runs/{talk.run_id}")
        except aiohttp.ClientError:
            # On a connection to the one that was killed.
            continue
        if run["status"] != "running":
            return True
        before = run["last_seq"]
        await asyncio.sleep(0.1)
        _, run = await talk.fleet.ask(talk.owner, "GET", f"/api/runs/{talk.run_id}")
        # Its end is an entry more, too.
        if run["status"] == "running" and run["last_seq"] > before:
            return False
    raise AssertionError("it neither ends nor goes on")


async def test_one_that_says_nothing_is_killed_and_replaced(postgres: PostgresServer) -> None:
    async with family(postgres, lease_s=2) as (fleet, parent):
        hanging, _ = children(parent)
        os.kill(hanging, signal.SIGSTOP)
        await parent.says(f"{hanging} has said nothing for 2 s: it is killed")
        await until_gone([hanging])
        await parent.says(r"was killed \(SIGKILL\); another begins")
        async with asyncio.timeout(SAFETY_S):
            while len(children(parent)) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        # Whoever comes now is served, also those whom the kernel had given to the one that hung.
        answers = await asyncio.gather(*(fleet.ask(parent, "GET", "/api/sessions") for _ in range(20)))
        assert {status for status, _ in answers} == {200}


async def test_workers_do_not_outlive_their_parent(postgres: PostgresServer) -> None:
    async with family(postgres) as (_, parent):
        pids = children(parent)
        parent.signal(signal.SIGKILL)
        await until_gone(pids)
        assert parent.said.count("the process that began this one is gone") == 2


def test_a_store_that_can_not_be_shared_is_refused(tmp_path: Path) -> None:
    environ = {"HEADWATER_STORE__URL": f"sqlite:{tmp_path / 'h.db'}"}
    code, out, err = finished("serve", "--port", "0", "--workers", "2", environ=environ)
    assert (code, out) == (2, "")
    assert "postgresql://" in err
    assert "Traceback" not in err


def test_workers_that_can_not_begin_say_why_and_are_not_begun_again(tmp_path: Path) -> None:
    environ = {"HEADWATER_STORE__URL": f"postgresql:///nothing?host={tmp_path}&connect_timeout=1"}
    code, out, err = finished("serve", "--port", "0", "--workers", "2", environ=environ)
    assert (code, out) == (1, "")
    assert "the store can't be opened" in err
    assert "Traceback" not in err


async def test_whichever_worker_is_asked_tells_what_all_have_counted(postgres: PostgresServer) -> None:
    async with family(postgres) as (fleet, parent):
        # A connection each: some come to the one worker, some to the other.
        for _ in range(12):
            await _alone(parent, "POST", "/v1/chat/completions", {
                "model": "up/sim/tokens-2", "messages": [{"role": "user", "content": "Hi"}],
            })  # fmt: skip
        async with asyncio.timeout(SAFETY_S):
            counted: set[str] = set()
            # Each counts a moment after the end.
            while counted != {"12.0"}:
                told = [await _alone(parent, "GET", "/metrics") for _ in range(12)]
                counted = {re.findall(r"^headwater_runs_total{[^}]*} (\S+)$", text, re.M)[0] for text in told}
        assert {re.findall(r"^headwater_runs_going_on (\S+)$", text, re.M)[0] for text in told} == {"0.0"}
        # What one has counted outlives it.
        os.kill(children(parent)[0], signal.SIGKILL)
        await parent.says(r"was killed \(SIGKILL\); another begins")
        await fleet.ready(parent)
        text = await _alone(parent, "GET", "/metrics")
        assert re.findall(r"^headwater_runs_total{[^}]*} (\S+)$", text, re.M) == ["12.0"]


async def _alone(member: Member, method: str, path: str, body: object = None) -> str:
    """On a connection of its own."""
    async with (
        asyncio.timeout(SAFETY_S),
        aiohttp.ClientSession() as client,
        client.request(method, f"{member.url}{path}", json=body) as answer,
    ):
        assert answer.status == 200
        return await answer.text()
