"""What is sent again with its `Idempotency-Key`: answered as it was, whatever has changed since; and who waits, counts not."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from headwater.config.secret import Secret
from headwater.config.settings import KeySettings
from headwater.events import Stopped
from headwater.records import Group, Session, SessionParameters
from tests.server_native.serving import Answer, Served, served, settings_of, store_url

pytestmark = pytest.mark.anyio

ANN = {"authorization": f"Bearer {'a' * 20}"}
AGAIN = {"idempotency-key": "again"}
ONE_RUN = KeySettings(owner="ann", key=Secret("a" * 20), concurrent_runs=1)


@pytest.fixture
async def narrow(tmp_path: Path) -> AsyncIterator[Served]:
    """One run at a time."""
    async with served(settings_of(store_url("memory", tmp_path), keys=(ONE_RUN,))) as server:
        yield server


async def ask(server: Served, path: str, body: Any, method: str = "POST", **headers: str) -> Answer:
    return await server.ask(method, path, body, headers=ANN | headers)


async def begun(server: Served, path: str, body: Any, method: str = "POST", **headers: str) -> Any:
    answer = await ask(server, path, body, method, **headers)
    assert answer.status == 201, answer.body
    return answer.json


async def talk(server: Served, model: str) -> tuple[str, Any]:
    """A session, and what was said in it and has been answered."""
    session_id = (await begun(server, "/api/sessions", {}))["id"]
    said = await begun(server, f"/api/sessions/{session_id}/messages", {"content": "x", "model": model})
    await server.services.runs.wait(None, said["run"]["id"])
    return session_id, said


async def is_replayed(server: Served, path: str, body: Any, method: str = "POST") -> None:
    """While the run that it began goes on, and no other may begin."""
    first = await begun(server, path, body, method, **AGAIN)
    assert (await ask(server, "/api/runs", {"model": "hang", "input": "x"})).code == "too_many_runs"
    again = await ask(server, path, body, method, **AGAIN)
    assert (again.status, again.headers.get("idempotency-replayed")) == (201, "true"), again.body
    assert again.json.get("run", again.json)["id"] == first.get("run", first)["id"]
    other = await ask(server, path, body | {"parameters": {"seed": 1}}, method, **AGAIN)
    assert (other.status, other.code) == (422, "idempotency_key_reused")


async def test_a_run_is_replayed_while_it_takes_all_the_room_there_is(narrow: Served) -> None:
    await is_replayed(narrow, "/api/runs", {"model": "hang", "input": "x"})


async def test_a_message_is_replayed_while_its_run_takes_all_the_room(narrow: Served) -> None:
    session_id, _ = await talk(narrow, "fast")
    await is_replayed(narrow, f"/api/sessions/{session_id}/messages", {"content": "y", "model": "hang"})


async def test_an_edit_is_replayed_while_its_run_takes_all_the_room(narrow: Served) -> None:
    session_id, said = await talk(narrow, "fast")
    path = f"/api/sessions/{session_id}/messages/{said['message']['id']}"
    await is_replayed(narrow, path, {"content": "y", "model": "hang"}, "PUT")


async def test_another_answer_is_replayed_while_its_run_takes_all_the_room(narrow: Served) -> None:
    session_id, said = await talk(narrow, "fast")
    path = f"/api/sessions/{session_id}/messages/{said['message']['id']}/regenerate"
    await is_replayed(narrow, path, {"model": "hang"})


async def test_a_going_on_is_replayed_while_its_run_takes_all_the_room(narrow: Served) -> None:
    _, said = await talk(narrow, "cut")
    await is_replayed(narrow, f"/api/runs/{said['run']['id']}/continue", {"model": "hang"})


async def test_a_comparison_is_replayed_while_its_runs_take_all_the_room(narrow: Served) -> None:
    await is_replayed(narrow, "/api/groups", {"models": ["hang"], "content": "x"})


async def test_what_was_said_to_all_is_replayed_while_its_runs_take_all_the_room(narrow: Served) -> None:
    group = await begun(narrow, "/api/groups", {"models": ["hang"], "content": "x"})
    await ask(narrow, f"/api/runs/{group['panes'][0]['run']['id']}/stop", {})
    await is_replayed(narrow, f"/api/groups/{group['id']}/messages", {"content": "y"})


@pytest.mark.parametrize("way", ["run", "group", "said to all"])
async def test_what_is_sent_several_times_at_once_is_done_once(way: str, tmp_path: Path) -> None:
    """All of them wait for the same, find that the key was not used yet, and then stand in each other's way."""
    settings = settings_of(store_url("memory", tmp_path), keys=(ONE_RUN,))
    # Nobody knows it before the upstream has said which it has.
    unknown = "up/sim/stall-after-5"
    async with served(settings) as server:
        path = "/api/runs"
        body: dict[str, Any] = {"model": unknown, "input": "x"}
        if way != "run":
            path, body = "/api/groups", {"models": [unknown], "content": "x"}
        if way == "said to all":
            now = server.services.clock.unix_s()
            pane = Session(id="s", owner="ann", created_at=now, updated_at=now, parameters=SessionParameters(unknown))
            group = Group(id="g", owner="ann", created_at=now, session_ids=("s",))
            await server.services.store.create_group(group, (pane,))
            path, body = "/api/groups/g/messages", {"content": "x"}
        answers = await asyncio.gather(*(ask(server, path, body, **AGAIN) for _ in range(8)))
        assert [answer.status for answer in answers] == [201] * 8, [answer.body for answer in answers]
        assert len({answer.json["id"] for answer in answers}) == 1
        assert len((await server.ask("GET", "/api/runs", headers=ANN)).json["runs"]) == 1


async def test_a_run_is_replayed_when_its_model_is_no_more(tmp_path: Path) -> None:
    settings = settings_of(store_url("sqlite", tmp_path))
    asked: dict[str, Any] = {
        "/api/runs": {"model": "fast", "input": "x"},
        "/api/groups": {"models": ["fast", "fast"], "content": "x"},
    }
    first = {}
    async with served(settings) as server:
        for path, body in asked.items():
            first[path] = (await server.post(path, body, headers={"idempotency-key": path})).json["id"]
        for run in (await server.get("/api/runs")).json["runs"]:
            await server.ended(run["id"])
    async with served(replace(settings, models=())) as server:
        for path, body in asked.items():
            assert (await server.post(path, body)).status == 404
            again = await server.post(path, body, headers={"idempotency-key": path})
            assert (again.status, again.json.get("id")) == (201, first[path]), again.body
            assert again.headers["idempotency-replayed"] == "true"


# ----------------------------------------------------- who takes a place, or waits


async def test_who_takes_a_runs_place_or_waits_for_it_needs_no_room_of_its_own(narrow: Served) -> None:
    session_id = (await begun(narrow, "/api/sessions", {}))["id"]
    path, body = f"/api/sessions/{session_id}/messages", {"content": "x", "model": "hang"}
    first = (await begun(narrow, path, body))["run"]["id"]
    waits = (await begun(narrow, path, body | {"multitask": "queue"}))["run"]
    assert waits["status"] == "queued"
    second = (await begun(narrow, path, body | {"multitask": "interrupt"}))["run"]["id"]
    assert await narrow.services.runs.wait(None, first) == Stopped("replaced")
    # In another session there is nothing to wait for.
    other = (await begun(narrow, "/api/sessions", {}))["id"]
    for multitask in ("reject", "queue", "interrupt"):
        refused = await ask(narrow, f"/api/sessions/{other}/messages", body | {"multitask": multitask})
        assert (refused.status, refused.code) == (429, "too_many_runs")
    await ask(narrow, f"/api/runs/{second}/stop", {})
