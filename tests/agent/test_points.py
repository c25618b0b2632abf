"""A stop, and a kill, at each point of a loop: what has run is said, nothing runs again, and what is left is legal."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import psycopg
import pytest

from headwater.testing import Simulator
from headwater.testing.postgres import PostgresServer
from tests.agent.company import DIALECTS, DONE, HANGS, ROGUE, SAFETY_S, calls, states
from tests.commands import start
from tests.store.postgres_backend import emptied

pytestmark = pytest.mark.anyio

SCRIPTS: Final = {
    "turn1": (HANGS,),
    "tool": (calls("slow", word="tool"), DONE),
    "late": (calls("late", word="late"), DONE),
    "between": (calls("note", "slow", word="between"), DONE),
    "turn2": (calls("note", word="turn2"), HANGS),
    "approval": (calls("long", word="5"), DONE),
    "own": (DONE,),
}
"""What the model of each agent says. Named for the point at which it is; the last is a user's own, inside a tool."""
REACHED: Final[dict[str, Callable[[Any], bool]]] = {
    "turn1": lambda run: run["text"] == "t0 t1 t2 ",
    "tool": lambda run: states(run) == [("slow", "running")],
    "late": lambda run: states(run) == [("late", "running")],
    "between": lambda run: states(run) == [("note", "done"), ("slow", "running")],
    "turn2": lambda run: str(run["text"]).endswith("t2 "),
    "approval": lambda run: run["status"] == "waiting",
    "own": lambda run: states(run) == [("slow", "running")],
}
LEFT: Final = {
    "turn1": [],
    "tool": [("slow", "unknown")],
    "late": [("late", "unknown")],
    "between": [("note", "done"), ("slow", "unknown")],
    "turn2": [("note", "done")],
    "approval": [("long", "dropped")],
    "own": [("slow", "unknown")],
}
"""The calls, and what is known of them, once it was killed there."""
STOPPED: Final = {**LEFT, "late": [("late", "done")]}
"""Once it was stopped: a tool that is told may still answer."""
ONCE: Final = ["note between", "note turn2", "slow between", "slow own", "slow tool", "late late"]
"""What tools write, each in a process of its own, when they are run."""


def config(simulator: Simulator, journal: Path) -> str:
    """As a person would write it."""
    upstreams = "".join(
        f'[upstreams.{dialect}]\ndialect = "{dialect}"\nbase_url = "{simulator.url}/v1"\n'
        f'api_key = "any"\nretries = 0\nlist_models = false\n'
        for dialect in DIALECTS
    )
    agents = "".join(
        f'[agents.{point}]\nmodel = "chat/{point}"\ntools = ["rogue"]\napprove = ["rogue.long"]\n'
        for point in SCRIPTS
        if point != "own"
    )
    agents += '[agents.own]\npython = "tests.agent.bots:is_held_up_by_its_tool"\ntools = ["rogue"]\n'
    rogue = f'[mcp.rogue]\ncommand = ["{sys.executable}", "{ROGUE}", "{journal}"]\ncancel_timeout_s = 3\n'
    return f"{upstreams}{agents}{rogue}"


class Served:
    def __init__(self, url: str, process: Any) -> None:
        self.process = process
        self.http = httpx2.AsyncClient(base_url=url, timeout=SAFETY_S)

    async def get(self, path: str) -> Any:
        return (await self.http.get(path)).json()

    async def post(self, path: str, body: Any = None) -> Any:
        answer = await self.http.post(path, json=body or {})
        assert answer.is_success, answer.text
        return answer.json()

    async def until(self, run_id: str, good: Callable[[Any], bool]) -> Any:
        async with asyncio.timeout(SAFETY_S):
            while not good(run := await self.get(f"/api/runs/{run_id}")):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return run

    async def ended(self, run_id: str) -> Any:
        return await self.until(run_id, lambda run: run["outcome"] is not None)

    async def begun(self) -> dict[str, tuple[str, str]]:
        """A session and a run at each point."""
        return dict(zip(SCRIPTS, await asyncio.gather(*map(self._begun, SCRIPTS)), strict=True))

    async def _begun(self, point: str) -> tuple[str, str]:
        session_id = (await self.post("/api/sessions"))["id"]
        said = await self.post(f"/api/sessions/{session_id}/messages", {"content": "Go", "model": point})
        await self.until(said["run"]["id"], REACHED[point])
        return session_id, said["run"]["id"]

    async def left(self, session_id: str) -> list[tuple[str, str]]:
        """All calls in a session, and what is known of them."""
        items = (await self.get(f"/api/sessions/{session_id}/messages"))["items"]
        return [call for item in items if item.get("role") == "assistant" for call in states(item)]

    async def gone_on_with(self, point: str, session_id: str, run_id: str) -> None:
        """By continuing it, where it was cut in its text, and by a turn with an upstream of each dialect."""
        if point in ("turn1", "turn2"):
            said = await self.post(f"/api/runs/{run_id}/continue", {"model": "chat/next"})
            assert (await self.ended(said["run"]["id"]))["status"] == "completed"
        for dialect in DIALECTS:
            body = {"content": "And now?", "model": f"{dialect}/next"}
            said = await self.post(f"/api/sessions/{session_id}/messages", body)
            run = await self.ended(said["run"]["id"])
            assert run["status"] == "completed", run["outcome"]


@asynccontextmanager
async def serving(folder: Path, store: str) -> AsyncIterator[Served]:
    environ = {"HEADWATER_STORE__URL": store}
    with (
        (folder / "log").open("a+") as log,
        start(
            "serve", "--port", "0", "--config", str(folder / "c.toml"), environ=environ, stderr=log.fileno()
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = await asyncio.to_thread(process.stdout.readline)
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            assert found, line or (folder / "log").read_text()
            served = Served(found[0], process)
            yield served
            await served.http.aclose()
        finally:
            process.kill()


def fence(url: str) -> None:
    """The worker that had it is dead: said as another one does, once the lease of 15 s is over."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            """UPDATE headwater.worker SET fenced = true, record =
            convert_to(jsonb_set(convert_from(record, 'UTF8')::jsonb, '{fenced}', 'true')::text, 'UTF8')"""
        )


async def stopped(served: Served, point: str, session_id: str, run_id: str) -> None:
    run = (await served.post(f"/api/runs/{run_id}/stop", {"wait_s": 60}))["run"]
    assert (run["status"], states(run)) == ("stopped", STOPPED[point]), point
    assert await served.left(session_id) == STOPPED[point]
    await served.gone_on_with(point, session_id, run_id)


async def found_again(served: Served, point: str, session_id: str, run_id: str) -> None:
    if point == "approval":
        run = await served.get(f"/api/runs/{run_id}")
        assert (run["status"], states(run)) == ("waiting", [("long", "waiting")])
        await approved(served, run_id)
        run = await served.ended(run_id)
        assert (run["status"], states(run)) == ("completed", [("long", "done")])
    else:
        run = await served.ended(run_id)
        assert (run["status"], states(run)) == ("interrupted", LEFT[point]), point
        assert await served.left(session_id) == LEFT[point]
    await served.gone_on_with(point, session_id, run_id)


async def approved(served: Served, run_id: str) -> None:
    async with served.http.stream("GET", f"/api/runs/{run_id}/events") as answer:
        async for line in answer.aiter_lines():
            if '"type":"approval"' in line:
                asked = msgspec.json.decode(line.removeprefix("data: "))
                break
    body = {"decision": "yes", "arguments_digest": asked["arguments_digest"]}
    await served.post(f"/api/runs/{run_id}/approvals/{asked['call_id']}", body)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_stop_and_a_kill_at_each_point_of_a_loop(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """C42, C45, C51: in the first turn, in a tool, between two, in the second turn, waiting for somebody."""
    journal, store = tmp_path / "journal", f"sqlite:{tmp_path / 'h.db'}"
    if kind == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        store = emptied(server, "points")
    async with Simulator() as simulator:
        (tmp_path / "c.toml").write_text(config(simulator, journal))
        simulator.script("next", DONE)
        for point, script in SCRIPTS.items():
            simulator.script(point, *script)
        async with serving(tmp_path, store) as served:
            begun = await served.begun()
            await asyncio.gather(*(stopped(served, point, *ids) for point, ids in begun.items()))
            for point, script in SCRIPTS.items():
                simulator.script(point, *script)
            begun = await served.begun()
            served.process.kill()
            served.process.wait()
        if kind == "postgres":
            fence(store)
        async with serving(tmp_path, store) as served:
            await asyncio.gather(*(found_again(served, point, *ids) for point, ids in begun.items()))
    complaints = [complaint for asked in simulator.requests for complaint in asked.complaints]
    assert complaints == []
    ran = [line for line in journal.read_text().splitlines() if "cancelled" not in line]
    assert sorted(ran) == sorted([*ONCE, *ONCE, "long 5"])
