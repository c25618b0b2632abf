"""C60–C73 with `headwater serve` as a process of its own, the simulator as its upstream, raw sockets and real SDKs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from headwater.simulate import Answer, Pace
from headwater.testing import Simulator
from tests.server.house import DIALECTS, Clients, Frame, eventually, frames, texts
from tests.server.test_failures import CLIENTS, ERRORS, Asking, failures
from tests.server.test_metrics import Told
from tests.server.test_process import Served, ended_well, serve

pytestmark = pytest.mark.anyio

AGENTS = """
async def half(context):
    yield "Half "
    raise ValueError("a secret")

async def cut(context):
    from headwater.events import Incomplete
    yield "As far "
    yield Incomplete("length")

async def waits(context):
    import asyncio
    yield "Begun "
    try:
        await asyncio.sleep(3600)
    finally:
        open("cleaned", "w").write(type(context.stop_cause).__name__)

async def says(context):
    return "All at once."
"""


def config(simulator: Simulator, first_s: float, idle_s: float) -> str:
    upstreams = [
        f'[upstreams.{dialect}]\ndialect = "{dialect}"\nbase_url = "{simulator.url}/v1"\napi_key = "any"\nretries = 0\n'
        "list_models = false\ncool_down_s = 0\nconnect_timeout_s = 120\n"
        f"first_token_timeout_s = {first_s}\nidle_timeout_s = {idle_s}\n"
        for dialect in DIALECTS
    ]
    agents = [f'[agents.{name}]\npython = "bots:{name}"\n' for name in ("half", "cut", "waits", "says")]
    return "[server]\nheartbeat_s = 0.2\n" + "".join(upstreams + agents)


@asynccontextmanager
async def away(
    folder: Path, *, first_s: float = 3600, idle_s: float = 3600
) -> AsyncIterator[tuple[Clients, Simulator, Served]]:
    (folder / "bots.py").write_text(AGENTS)
    async with Simulator() as simulator, serve(folder, config(simulator, first_s, idle_s)) as served:
        clients = Clients(served.url)
        try:
            yield clients, simulator, served
        finally:
            await clients.close()


def words(found: list[Frame]) -> list[Any]:
    return [one.data for one in found if one.data != "[DONE]"]


async def test_no_sdk_reports_success_for_what_failed(tmp_path: Path) -> None:
    """Each client with each failure, of one upstream dialect after the other."""
    async with away(tmp_path, first_s=2, idle_s=2) as (clients, _, served):
        few = asyncio.Semaphore(100)

        async def fails(client: Asking, model: str) -> None:
            async with few:
                try:
                    answer = await client(clients, model)
                except ERRORS:
                    return
            raise AssertionError(f"{model} was reported as a success: {answer}")

        asked = [
            (client, f"{upstream}/{name}")
            for turn, client in enumerate(CLIENTS)
            for number, (upstream, name) in enumerate(failures(client))
            if DIALECTS[(number + turn) % 3] == upstream
        ]
        assert {model.partition("/")[0] for _, model in asked} == set(DIALECTS)
        await asyncio.gather(*(fails(client, model) for client, model in asked))
        told = Told((await clients.http.get("/metrics")).text)
        assert told.value("headwater_runs_total") == told.value("headwater_runs_total", outcome="failed") == len(asked)
        served.process.terminate()
        await ended_well(served)


async def test_each_sdk_reports_success_for_what_did_not_fail(tmp_path: Path) -> None:
    async with away(tmp_path) as (clients, _, served):
        for client in CLIENTS:
            for upstream in DIALECTS:
                assert "t2" in str(await client(clients, f"{upstream}/sim/think,tokens-3"))
        served.process.terminate()
        await ended_well(served)


@pytest.mark.parametrize("upstream", DIALECTS)
async def test_a_chat_stream_has_its_shape(tmp_path: Path, upstream: str) -> None:
    """C60, C61, C62, C65, C66."""
    async with away(tmp_path) as (clients, _, served):
        found = await clients.events("chat", f"{upstream}/sim/tokens-4")
        assert found[-1].data == "[DONE]"
        chunks = words(found)
        assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
        assert all(len({chunk[name] for chunk in chunks}) == 1 for name in ("id", "created", "model"))
        assert chunks[0]["id"].startswith("chatcmpl-")
        choices = [chunk["choices"][0] for chunk in chunks]
        assert choices[0]["delta"] == {"role": "assistant", "content": "t0 "}
        assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["stop"]
        assert choices[-1]["delta"] == {}
        assert not any({"error", "headwater", "usage"} & set(chunk) for chunk in chunks)
        options = {"stream_options": {"include_usage": True}}
        assert words(await clients.events("chat", f"{upstream}/sim/tokens-4", **options))[-1]["usage"]
        whole = (await clients.post("chat", f"{upstream}/sim/tokens-4")).json()
        assert whole["object"] == "chat.completion"
        assert whole["choices"][0]["message"]["content"] == texts("chat", found) == "t0 t1 t2 t3 "
        short = await clients.events("chat", f"{upstream}/sim/tokens-4,finish-length")
        assert (words(short)[-1]["choices"][0]["finish_reason"], short[-1].data) == ("length", "[DONE]")
        served.process.terminate()
        await ended_well(served)


async def test_a_failure_is_said_as_one_and_a_refusal_keeps_its_status(tmp_path: Path) -> None:
    """C64, C73, and C69 while it is silent."""
    async with away(tmp_path, idle_s=2) as (clients, _, _):
        answer = await clients.post("chat", "chat/sim/tokens-5,stall-after-2", stream=True)
        assert b": keep-alive\n\n" in answer.content
        assert b"[DONE]" not in answer.content
        last = words(frames(answer.content))[-1]
        assert (list(last), last["error"]["code"]) == (["error"], "stalled")
        refused = await clients.post("chat", "chat/sim/status-429", stream=True)
        assert (refused.status_code, refused.headers["x-should-retry"]) == (429, "false")
        nameless = await clients.http.post(
            "/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hi"}]}
        )
        assert nameless.status_code == 400
        assert "says" in nameless.json()["error"]["message"]


@pytest.mark.parametrize("model", ["chat/sim/stall-at-before_head", "chat/sim/tokens-50000@50", "waits"])
async def test_who_leaves_stops_it_unless_it_is_to_go_on(tmp_path: Path, model: str) -> None:
    """C67; C71 of an agent of one's own."""
    async with away(tmp_path) as (clients, simulator, served):
        line = await clients.raw("chat", model, stream=True)
        if model == "waits":
            await line.until(b"Begun ")
            line.reset()
            await eventually((tmp_path / "cleaned").exists)
            await eventually(lambda: (tmp_path / "cleaned").read_text() == "Stopped")
        else:
            await simulator.wait_for_requests(1)
            line.reset()
            assert (await simulator.wait_for_close(0)).closed in ("client_fin", "client_reset")
        runs: list[Any] = []
        while [run["status"] for run in runs] != ["stopped"]:
            runs = (await clients.http.get("/api/runs")).json()["runs"]
        assert runs[0]["outcome"] == {"type": "stopped", "reason": "disconnect"}
        served.process.terminate()
        await ended_well(served)


async def test_sessions_and_agents_of_ones_own(tmp_path: Path) -> None:
    """C63, C70, C72."""
    async with away(tmp_path) as (clients, simulator, _):
        simulator.script("m", Answer(text="Ann."), Answer(text="Still Ann."))
        for said in ("I am Ann. Who am I?", "And now?"):
            body = {"model": "chat/m", "messages": [{"role": "user", "content": said}], "session_id": "any id/at all"}
            assert (await clients.http.post("/v1/chat/completions", json=body)).status_code == 200
        told = [message["content"] for message in simulator.requests[1].body["messages"]]
        assert told == ["I am Ann. Who am I?", "Ann.", "And now?"]
        half = await clients.post("chat", "half", stream=True)
        assert b"a secret" not in half.content
        assert words(frames(half.content))[-1]["error"]["code"] == "agent_error"
        assert words(await clients.events("chat", "cut"))[-1]["choices"][0]["finish_reason"] == "length"
        assert [texts("chat", [one]) for one in await clients.events("chat", "says")][:2] == ["All at once.", ""]


async def test_a_background_response_is_followed_on_where_it_was_cut(tmp_path: Path) -> None:
    async with away(tmp_path) as (clients, simulator, _):
        simulator.script("m", Answer(tokens=40, pace=Pace(tokens_per_s=40)))
        seen: list[Any] = []
        stream = await clients.openai.responses.create(model="chat/m", input="Hi", background=True, stream=True)
        async for event in stream:
            seen.append(event)
            if len(seen) == 8:
                await stream.close()
                break
        rest = await clients.openai.responses.retrieve(
            seen[0].response.id, stream=True, starting_after=seen[-1].sequence_number
        )
        seen += [event async for event in rest]
        assert [event.sequence_number for event in seen] == list(range(len(seen)))
        assert seen[-1].type == "response.completed"
        assert seen[-1].response.output_text == "".join(f"t{n} " for n in range(40))
        with pytest.raises(openai.NotFoundError):
            await clients.openai.responses.retrieve("resp_nobodys")
