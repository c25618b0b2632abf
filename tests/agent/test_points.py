"""A stop, and a kill, at each point of a loop: what has run is said, nothing runs again, and what is left is legal."""

import asyncio
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
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
    "between": (calls("note", "slow", word="between"), DONE),
    "turn2": (calls("note", word="turn2"), HANGS),
    "approval": (calls("long", word="5"), DONE),
}
"""What the model of each agent says. Named for the point at which it is."""
REACHED: Final[dict[str, Callable[[Any], bool]]] = {
    "turn1": lambda run: run["text"] == "t0 t1 t2 ",
    "tool": lambda run: states(run) == [("slow", "running")],
    "between": lambda run: states(run) == [("note", "done"), ("slow", "running")],
    "turn2": lambda run: str(run["text"]).endswith("t2 "),
    "approval": lambda run: run["status"] == "waiting",
}
LEFT: Final = {
    "turn1": [],
    "tool": [("slow", "unknown")],
    "between": [("note", "done"), ("slow", "unknown")],
    "turn2": [("note", "done")],
    "approval": [("long", "dropped")],
}
"""The calls, and what is known of them, once it was stopped there."""


def config(simulator: Simulator, journal: Path) -> str:
    """As a person would write it."""
    upstreams = "".join(
        f'[upstreams.{dialect}]\ndialect = "{dialect}"\nbase_url = "{simulator.url}/v1"\n'
        f'api_key = "any"\nretries = 0\nlist_models = false\n'
        for dialect in DIALECTS
    )
    agents = "".join(
        f'[agents.{point}]\nmodel = "chat/{point}"\ntools = ["rogue"]\napprove = ["rogue.long"]\n' for point in SCRIPTS
    )
    return f'{upstreams}{agents}[mcp.rogue]\ncommand = ["{sys.executable}", "{ROGUE}", "{journal}"]\n'


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

    async def begun(self) -> dict[str, tuple[str, str]]:
        """A session and a run at each point."""
        found: dict[str, tuple[str, str]] = {}
        for point in SCRIPTS:
            session_id = (await self.post("/api/sessions"))["id"]
            said = await self.post(f"/api/sessions/{session_id}/messages", {"content": "Go", "model": point})
            found[point] = session_id, said["run"]["id"]
        await asyncio.gather(*(self.until(run_id, REACHED[point]) for point, (_, run_id) in found.items()))
        return found

    async def left(self, session_id: str) -> list[tuple[str, str]]:
        """All calls in a session, and what is known of them."""
        items = (await self.get(f"/api/sessions/{session_id}/messages"))["items"]
        return [call for item in items if item.get("role") == "assistant" for call in states(item)]

    async def gone_on_with(self, session_id: str) -> None:
        """The session's next turn, with an upstream of each dialect in turn."""
        for dialect in DIALECTS:
            body = {"content": "And now?", "model": f"{dialect}/next"}
            said = await self.post(f"/api/sessions/{session_id}/messages", body)
            run = await self.until(said["run"]["id"], lambda run: run["outcome"] is not None)
            assert run["status"] == "completed", run["outcome"]


@asynccontextmanager
async def serving(folder: Path, store: str) -> AsyncIterator[Served]:
    environ = {"HEADWATER_STORE__URL": store}
    with start("serve", "--port", "0", "--config", str(folder / "c.toml"), environ=environ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = await asyncio.to_thread(process.stdout.readline)
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            assert found, line or process.stderr.read()
            served = Served(found[0], process)
            yield served
            await served.http.aclose()
        finally:
            process.kill()


@contextmanager
def stores(kind: str, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """An address, and how to say that the worker that had it is dead."""
    if kind == "sqlite":
        yield f"sqlite:{folder / 'h.db'}", lambda: None
        return
    with tempfile.TemporaryDirectory(prefix="hw", ignore_cleanup_errors=True) as place:
        server = PostgresServer(Path(place) / "pg")
        url = emptied(server, "agents")

        def fence() -> None:
            """As another worker does, once the lease of 15 s is over."""
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    """UPDATE headwater.worker SET fenced = true, record =
                    convert_to(jsonb_set(convert_from(record, 'UTF8')::jsonb, '{fenced}', 'true')::text, 'UTF8')"""
                )

        yield url, fence
        server.remove()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_stop_and_a_kill_at_each_point_of_a_loop(kind: str, tmp_path: Path) -> None:
    """C42, C45, C51: in the first turn, in a tool, between two, in the second turn, waiting for somebody."""
    journal = tmp_path / "journal"
    async with Simulator() as simulator:
        simulator.script("next", DONE)
        (tmp_path / "c.toml").write_text(config(simulator, journal))
        with stores(kind, tmp_path) as (store, fence):
            for point, script in SCRIPTS.items():
                simulator.script(point, *script)
            async with serving(tmp_path, store) as served:
                begun = await served.begun()
                for point, (session_id, run_id) in begun.items():
                    stopped = (await served.post(f"/api/runs/{run_id}/stop"))["run"]
                    assert (stopped["status"], states(stopped)) == ("stopped", LEFT[point]), point
                    assert await served.left(session_id) == LEFT[point]
                    await served.gone_on_with(session_id)
                for point, script in SCRIPTS.items():
                    simulator.script(point, *script)
                begun = await served.begun()
                served.process.kill()
                served.process.wait()
            fence()
            async with serving(tmp_path, store) as served:
                for point, (session_id, run_id) in begun.items():
                    if point == "approval":
                        run = await served.until(run_id, lambda run: True)
                        assert (run["status"], states(run)) == ("waiting", [("long", "waiting")])
                        if kind == "sqlite":
                            await approved(served, run_id)
                        else:
                            # At another worker, which takes it up.
                            async with serving(tmp_path, store) as other:
                                await approved(other, run_id)
                                await other.until(run_id, lambda run: run["outcome"] is not None)
                        run = await served.until(run_id, lambda run: run["outcome"] is not None)
                        assert (run["status"], states(run)) == ("completed", [("long", "done")])
                    else:
                        run = await served.until(run_id, lambda run: run["outcome"] is not None)
                        assert (run["status"], states(run)) == ("interrupted", LEFT[point]), point
                        assert await served.left(session_id) == LEFT[point]
                    await served.gone_on_with(session_id)
    complaints = [complaint for request in simulator.requests for complaint in request.complaints]
    assert complaints == []
    ran = [line for line in journal.read_text().splitlines() if "cancelled" not in line]
    once = ["note between", "note turn2", "slow between", "slow tool"]
    assert sorted(ran) == sorted([*once, *once, "long 5"])


async def approved(served: Served, run_id: str) -> None:
    async with served.http.stream("GET", f"/api/runs/{run_id}/events") as answer:
        async for line in answer.aiter_lines():
            if '"type":"approval"' in line:
                asked = msgspec.json.decode(line.removeprefix("data: "))
                break
    body = {"decision": "yes", "arguments_digest": asked["arguments_digest"]}
    await served.post(f"/api/runs/{run_id}/approvals/{asked['call_id']}", body)
