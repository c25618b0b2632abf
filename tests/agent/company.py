"""A server with agents, in front of a simulator that is as strict as providers are, with a rogue for its tools."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anthropic
import httpx2
import openai

from headwater import sse
from headwater.config.secret import Secret, SecretUrl
from headwater.config.settings import (
    AgentSettings,
    McpSettings,
    ServerSettings,
    Settings,
    StoreSettings,
    UpstreamSettings,
)
from headwater.events import DialectName, Entry, Event, ToolCallStarted, decode_entry
from headwater.server.process import server_for
from headwater.server.services import Services
from headwater.simulate import Answer, Call, Stall
from headwater.testing import Simulator

DIALECTS: Final[tuple[DialectName, ...]] = ("chat", "responses", "messages")
ROGUE: Final = str(Path(__file__).parent / "rogue.py")
SAFETY_S: Final = 60.0
"""No test waits longer. It is no measure of anything."""
DONE: Final = Answer(text="All done.")
HANGS: Final = Answer(tokens=9, faults=(Stall(tokens=3),))


def calls(*names: str, times: int = 1, **arguments: Any) -> Answer:
    """A turn that calls tools of the rogue."""
    given = tuple(Call(name=f"rogue__{name}", arguments=arguments or {"word": f"w{n}"}) for n, name in enumerate(names))
    return Answer(text="Let me see.", calls=given, times=times)


def upstreams(simulator: Simulator) -> dict[str, UpstreamSettings]:
    return {
        dialect: UpstreamSettings(
            dialect=dialect,
            base_url=f"{simulator.url}/v1",
            api_key=(Secret("any"),),
            retries=0,
            backoff_s=0,
            list_models=False,
            cool_down_s=0,
        )
        for dialect in DIALECTS
    }


def rogue(journal: Path, **more: Any) -> McpSettings:
    return McpSettings(**{"command": (sys.executable, ROGUE, str(journal)), **more})


class Company:
    def __init__(self, url: str, simulator: Simulator, services: Services, journal: Path) -> None:
        self.url = url
        self.simulator = simulator
        self.services = services
        self._journal = journal
        self.http = httpx2.AsyncClient(base_url=url, timeout=SAFETY_S)
        self.openai = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any", timeout=SAFETY_S, max_retries=0)
        self.anthropic = anthropic.AsyncAnthropic(base_url=url, api_key="any", timeout=SAFETY_S, max_retries=0)

    async def close(self) -> None:
        await self.http.aclose()
        await self.openai.close()
        await self.anthropic.close()

    @property
    def journal(self) -> list[str]:
        return self._journal.read_text().splitlines() if self._journal.exists() else []

    @property
    def complaints(self) -> list[Any]:
        """What a provider would have refused."""
        return [complaint for request in self.simulator.requests for complaint in request.complaints]

    def sent(self, n: int) -> list[Any]:
        """The messages of the nth request to the model."""
        found: list[Any] = self.simulator.requests[n].body["messages"]
        return found

    async def post(self, path: str, body: Mapping[str, Any] | None = None, status: int | None = None) -> Any:
        answer = await self.http.post(path, json=dict(body or {}))
        assert answer.status_code == status or (status is None and answer.is_success), answer.text
        return answer.json()

    async def get(self, path: str) -> Any:
        return (await self.http.get(path)).json()

    async def session(self) -> str:
        return str((await self.post("/api/sessions"))["id"])

    async def say(self, session_id: str, model: str = "helper", content: str = "Go", **more: Any) -> str:
        """The run's id."""
        body = {"content": content, "model": model, **more}
        return str((await self.post(f"/api/sessions/{session_id}/messages", body))["run"]["id"])

    async def run(self, model: str = "helper", input: str = "Go", **more: Any) -> str:
        return str((await self.post("/api/runs", {"model": model, "input": input, **more}))["id"])

    async def ended(self, run_id: str) -> Any:
        async with asyncio.timeout(SAFETY_S):
            await self.services.runs.wait(None, run_id)
        return await self.get(f"/api/runs/{run_id}")

    async def items(self, session_id: str) -> Any:
        return (await self.get(f"/api/sessions/{session_id}/messages"))["items"]

    async def until(self, run_id: str, kind: type[Event], count: int = 1) -> Event:
        """The nth event of a kind, once it is there."""
        found = 0
        async with asyncio.timeout(SAFETY_S):
            async for event in self.services.runs.follow(None, run_id):
                found += isinstance(event, kind)
                if found == count:
                    return event
        raise AssertionError(f"there were only {found} {kind.__name__}")

    async def log(self, run_id: str) -> list[Entry]:
        answer = await self.http.get(f"/api/runs/{run_id}/events")
        return [decode_entry(frame.data) for frame in sse.Decoder().feed(answer.content)]

    async def written(self, count: int) -> list[str]:
        """The rogue's journal, once it has so many lines."""
        async with asyncio.timeout(SAFETY_S):
            while len(self.journal) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        return self.journal

    async def approve(self, run_id: str, decision: str = "yes", status: int | None = None, **more: Any) -> Any:
        """The first call that waits."""
        async with asyncio.timeout(SAFETY_S):
            while (run := await self.get(f"/api/runs/{run_id}"))["status"] != "waiting":
                assert run["outcome"] is None, run
                await asyncio.sleep(0.005)
        call = next(call for call in run["tool_calls"] if call["state"] == "waiting")
        asked = [one.event for one in await self.part(run_id) if getattr(one.event, "call_id", "") == call["id"]]
        body = {"decision": decision, "arguments_digest": getattr(asked[0], "arguments_digest", ""), **more}
        return await self.post(f"/api/runs/{run_id}/approvals/{call['id']}", body, status)

    async def part(self, run_id: str) -> list[Entry]:
        """Its log so far."""
        found = await self.services.store.read(None, run_id)
        assert found is not None
        return [decode_entry(line) for batch in found.batches for line in batch.entries]


def states(found: Any) -> list[tuple[str, str]]:
    """Of a run, or of an item of a session."""
    return [(call["name"].removeprefix("rogue__"), call["state"]) for call in found["tool_calls"]]


@asynccontextmanager
async def serving(settings: Settings, simulator: Simulator, journal: Path) -> AsyncIterator[Company]:
    services = await Services.open(settings, "http://test/")
    listener = socket.create_server(("127.0.0.1", 0))
    running = server_for(services)
    task = asyncio.create_task(running.serve([listener]))
    company = Company(f"http://127.0.0.1:{listener.getsockname()[1]}", simulator, services, journal)
    try:
        yield company
    finally:
        await company.close()
        await services.runs.close()
        running.should_exit = True
        await task
        await services.close()


def settings_of(
    simulator: Simulator, journal: Path, store: str = "memory:", mcp: Mapping[str, Any] | None = None, **agents: Any
) -> Settings:
    """`helper` asks the chat model `m`; others are given whole."""
    helper = {"model": "chat/m", "tools": ("rogue",), **agents.pop("helper", {})}
    return Settings(
        server=ServerSettings(heartbeat_s=3600),
        store=StoreSettings(url=SecretUrl(store)),
        upstreams=upstreams(simulator),
        mcp={"rogue": rogue(journal, **(mcp or {}))},
        agents={"helper": AgentSettings(**helper), **{name: AgentSettings(**one) for name, one in agents.items()}},
    )


@asynccontextmanager
async def company(folder: Path, store: str = "memory:", **agents: Any) -> AsyncIterator[Company]:
    journal = folder / "journal"
    async with (
        Simulator() as simulator,
        serving(settings_of(simulator, journal, store, **agents), simulator, journal) as opened,
    ):
        yield opened


def called(event: Event) -> str:
    assert isinstance(event, ToolCallStarted)
    return event.name
