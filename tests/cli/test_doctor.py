"""`headwater doctor` finds each fault that the simulator can be told to have, and none where there is none."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from headwater.cli import exits
from headwater.cli.diagnosis import Finding
from headwater.cli.examining import examine
from headwater.cli.surroundings import of_store, of_tools
from headwater.clock import SystemClock
from headwater.config.load import load
from headwater.config.settings import ModelSettings, Settings
from headwater.simulate import Answer, Pace, Reasoning, Scenario
from headwater.store.opening import open_store
from headwater.testing import Simulator
from headwater.testing.postgres import PostgresServer
from tests.commands import finished

pytestmark = pytest.mark.anyio

GOOD = "sim/tokens-40@100"

ALL = ("chat", "messages", "responses")
# What is otherwise where a dialect says it otherwise; None, where it is no fault there.
OTHERWISE: dict[tuple[str, str], tuple[str, str] | None] = {
    ("messages", "speaks-messages"): None,
    ("responses", "speaks-responses"): None,
    ("messages", "omit-terminator"): ("ending", "leaves out its last event"),
    ("messages", "cut-at-before_terminator"): ("ending", "leaves out its last event"),
    # Its last event says why it ends.
    ("responses", "omit-finish"): ("ending", "ended in the midst"),
    ("responses", "omit-terminator"): ("ending", "ended in the midst"),
    ("responses", "cut-at-before_terminator"): ("ending", "ended in the midst"),
}
# A fault, the check that finds it, and what is in its words or in what it says to change.
PLANTED = [
    ("status-401", "key", "api_key"),
    ("status-403", "key", "api_key"),
    ("status-429", "answer", "429"),
    ("status-500", "answer", "500"),
    ("portal", "reach", "base_url"),
    ("redirect", "reach", 'base_url = "https://elsewhere.example/v1"'),
    ("speaks-messages", "dialect", 'dialect = "messages"'),
    ("speaks-responses", "dialect", 'dialect = "responses"'),
    ("whole", "stream", "gave a whole answer"),
    ("nostream", "stream", "refuses to stream"),
    ("writes-40", "stream", "It buffers: 40 pieces"),
    ("omit-finish", "ending", "needs_finish_reason = false"),
    ("omit-terminator", "ending", "leaves out [DONE]"),
    ("cut-at-before_terminator", "ending", "leaves out [DONE]"),
    ("usage-none", "usage", "sends no usage"),
    ("omit-usage", "usage", "sends no usage"),
    ("cut-after-5", "ending", "ended in the midst"),
    ("cut-at-before_finish", "ending", "ended in the midst"),
    ("fin-after-5", "ending", "ended in the midst"),
    ("reset-after-5", "ending", "was reset in the midst"),
    ("badchunk-after-5", "ending", "in the midst"),
    ("stall-after-5", "stream", "idle_timeout_s"),
    ("pings-after-5", "stream", "idle_timeout_s"),
    ("first-9", "stream", "first_token_timeout_s"),
    ("head-9", "stream", "first_token_timeout_s"),
    ("error-after-5", "answer", "The server had an error"),
    ("badjson-after-5", "answer", "can't be read"),
    ("badutf8-after-5", "text", "no UTF-8"),
    ("finish-network_error", "answer", "network_error"),
    ("finish-length", "ending", "not whole: length"),
    ("finish-content_filter", "ending", "not whole: content filter"),
    ("fin-at-before_head", "reach", "base_url"),
    ("reset-at-after_head", "answer", "broke"),
    ("tokens-0", "ending", "allow_empty"),
    ("tool,fin-at-in_arguments", "answer", "Not called"),
]


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(Scenario(key="sk-right")) as simulator:
        yield simulator


def settings(simulator: Simulator, **more: str) -> Settings:
    """One upstream of each dialect, and one with `more`."""
    environ: dict[str, str] = {}
    for name, dialect in [("chat", "chat"), ("responses", "responses"), ("messages", "messages"), ("odd", "chat")]:
        prefix = f"HEADWATER_UPSTREAMS__{name.upper()}__"
        base = simulator.url if dialect == "messages" else f"{simulator.url}/v1"
        environ |= {f"{prefix}BASE_URL": base, f"{prefix}DIALECT": dialect, f"{prefix}LIST_MODELS": "false"}
        environ[f"{prefix}API_KEY"] = "sk-right"
    environ |= {f"HEADWATER_UPSTREAMS__ODD__{key.upper()}": value for key, value in more.items()}
    return load(None, environ=environ).settings


async def found(settings: Settings, model: str) -> list[Finding]:
    """Of an upstream's model."""
    return [one async for _, findings in examine(settings, [model], 3.0) for one in findings]


def bad(findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.level in ("warning", "fault")]


async def test_each_planted_fault_is_found(simulator: Simulator) -> None:
    """In each dialect, all of them at once."""
    known = settings(simulator)
    cases = [
        (dialect, fault, wanted)
        for dialect in ALL
        for fault, *usual in PLANTED
        if (wanted := OTHERWISE.get((dialect, fault), (usual[0], usual[1]))) is not None
    ]
    all_found = await asyncio.gather(*(found(known, f"{dialect}/{GOOD},{fault}") for dialect, fault, _ in cases))
    for (dialect, fault, (check, words)), findings in zip(cases, all_found, strict=True):
        matching = [one for one in bad(findings) if one.check == check and words in f"{one.what} {one.change}"]
        assert matching, f"{dialect}, {fault}: {findings}"


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
async def test_none_is_found_at_a_good_one(simulator: Simulator, dialect: str) -> None:
    findings = await found(settings(simulator), f"{dialect}/{GOOD},think-5,tool")
    assert bad(findings) == []
    assert {one.check for one in findings if one.level == "fine"} == {"stream", "ending", "usage", "reasoning", "tools"}


async def test_what_is_set_wrongly_is_found(simulator: Simulator) -> None:
    tagged = Reasoning(text="Hm.", field="think_tags")
    simulator.script("tagged", Answer(text="So it is, all of it.", reasoning=tagged, pace=Pace(tokens_per_s=100)))
    [think] = bad(await found(settings(simulator, think_tags="off"), "odd/tagged"))
    assert (think.check, think.change) == ("reasoning", '[upstreams.odd] think_tags = "auto"')
    assert bad(await found(settings(simulator), "odd/tagged")) == []
    [prefill] = bad(await found(settings(simulator, prefill="assistant"), f"odd/{GOOD}"))
    assert (prefill.check, prefill.change) == ("prefill", '[upstreams.odd] prefill = "none"')
    [key] = bad(await found(settings(simulator, api_key="sk-wrong"), f"odd/{GOOD}"))
    assert key.check == "key"
    assert "sk-wrong" not in str(key)
    [base] = bad(await found(settings(simulator, base_url="http://127.0.0.1:9/v1"), f"odd/{GOOD}"))
    assert base.check == "reach"


def test_an_answer_that_is_gone_on_with_is_recognised() -> None:
    from headwater.cli.diagnosis import Subject, of_going_on
    from tests.cli.answers import facts_of

    subject = Subject("odd", load(None, environ={"OLLAMA_HOST": "box"}).settings.upstreams["ollama"])
    [fine] = of_going_on(subject, facts_of(" eight, nine, ten"), "assistant")
    assert fine.level == "fine"
    [fault] = of_going_on(subject, facts_of("one, two, three"), "assistant")
    assert fault.level == "fault"


async def test_a_postgres_store_is_looked_at(postgres: PostgresServer) -> None:
    postgres.do("DROP DATABASE IF EXISTS doctor", "CREATE DATABASE doctor")
    url = postgres.url("doctor")
    known = load(None, environ={"HEADWATER_STORE__URL": url}).settings
    reached, schema, listen = await of_store(known)
    assert (reached.level, schema.level, listen.level) == ("fine", "note", "fine")
    assert "Postgres 1" in reached.what
    store = await open_store(url, address="", clock=SystemClock(), entropy=os.urandom)
    await store.close()
    assert [one.level for one in await of_store(known)] == ["fine", "fine", "fine"]
    gone = load(None, environ={"HEADWATER_STORE__URL": "postgresql://ann:secret@127.0.0.1:9/x"}).settings
    [fault] = await of_store(gone)
    assert (fault.level, "can't be reached" in fault.what, "secret" in str(fault)) == ("fault", True, False)


async def test_servers_of_tools_are_tried(tmp_path: Path) -> None:
    rogue = json.dumps([sys.executable, str(Path(__file__).parent.parent / "agent" / "rogue.py"), str(tmp_path / "j")])
    (tmp_path / "headwater.toml").write_text(
        f"[mcp.good]\ncommand = {rogue}\n"
        '[mcp.none]\ncommand = ["no-such-program"]\n'
        f'[mcp.dies]\ncommand = ["{sys.executable}", "-c", "raise SystemExit(3)"]\n'
        '[mcp.gone]\nurl = "http://127.0.0.1:9/mcp"\n'
    )
    known = load(tmp_path / "headwater.toml", environ={}).settings
    seen = {name: findings[0] async for name, findings in of_tools(known, 20.0)}
    assert {name: one.level for name, one in seen.items()} == {
        "mcp good": "fine",
        "mcp none": "fault",
        "mcp dies": "fault",
        "mcp gone": "fault",
    }
    assert "16 tools: note, slow" in seen["mcp good"].what
    assert "no-such-program" in seen["mcp none"].what
    assert seen["mcp gone"].change == "[mcp.gone] url or headers"


def test_for_people_and_for_programs(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text('[upstreams.gone]\nbase_url = "http://127.0.0.1:9/v1"\n')
    code, out, _ = finished("doctor", folder=tmp_path)
    assert code == exits.FAILED
    assert "✗ reach: No connection to 127.0.0.1:9" in out
    assert out.endswith("1 fault was found.\n")
    code, out, _ = finished("doctor", "--json", folder=tmp_path)
    assert code == exits.FAILED
    said = json.loads(out)
    assert said["gone"][0]["level"] == "fault"
    assert said["installation"][0]["level"] == "fine"
    (tmp_path / "headwater.toml").write_text("")
    assert finished("doctor", folder=tmp_path)[0] == exits.COMPLETED


async def test_a_model_that_is_configured_and_not_listed_is_asked_by_its_own_name(simulator: Simulator) -> None:
    environ = {
        "HEADWATER_UPSTREAMS__SIM__BASE_URL": f"{simulator.url}/v1",
        "HEADWATER_UPSTREAMS__SIM__API_KEY": "sk-right",
    }
    model = ModelSettings(name="fast", upstream="sim", model=GOOD)
    named = replace(load(None, environ=environ).settings, models=(model,))
    seen = {name: findings async for name, findings in examine(named, [], 3.0)}
    assert {name: bad(findings) for name, findings in seen.items()} == {f"sim/{GOOD}": []}
