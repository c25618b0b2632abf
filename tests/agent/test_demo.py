"""`demo/agent`: tools and approvals, without a key and without a network."""

import asyncio
from typing import Any

import msgspec
import pytest

from headwater.agent.demo import DemoTools, calculated
from headwater.testing import ManualClock
from tests.server_native.serving import Events, Served

pytestmark = pytest.mark.anyio


async def answered(server: Served, events: Events, run_id: str, **said: Any) -> Any:
    """Wait until a call is to be approved, and say so."""
    asked = msgspec.json.decode((await events.until("run.approval"))[-1].data)
    body = {"arguments_digest": asked["arguments_digest"], **said}
    answer = await server.post(f"/api/runs/{run_id}/approvals/{asked['call_id']}", body)
    assert answer.status == 200, answer.body
    return asked


def calls(item: Any) -> list[tuple[str, str]]:
    return [(call["name"], call["state"]) for call in item["tool_calls"]]


async def test_tools_are_called_side_by_side_and_one_after_the_other(server: Served) -> None:
    session_id = await server.session()
    said = await server.say(session_id, "Roll the dice and calculate 6 * 7, then look at the clock", "demo/agent")
    run = await server.ended(said["run"]["id"])
    assert run["status"] == "completed"
    assert calls(run) == [("demo__dice", "done"), ("demo__calculate", "done"), ("demo__clock", "done")]
    assert run["tool_calls"][1]["result"] == "6 * 7 = 42"
    _, first, second, third = (await server.get(f"/api/sessions/{session_id}/messages")).json["items"]
    assert (calls(first), calls(second)) == (calls(run)[:2], calls(run)[2:])
    assert "It is " in third["content"]


async def test_a_call_waits_for_a_person_and_goes_on_when_one_has_said_yes(server: Served) -> None:
    run = await server.run("Send a postcard", "demo/agent")
    async with server.stream(f"/api/runs/{run['id']}/events") as events:
        asked = await answered(server, events, run["id"], decision="yes")
        rest = [frame.event for frame in await events.rest()]
    assert rest[:3] == ["run.approved", "run.tool_run", "run.tool_result"]
    ended = await server.ended(run["id"])
    assert ended["tool_calls"][0]["state"] == "done"
    assert asked["arguments"] == ended["tool_calls"][0]["arguments"]


async def test_a_no_reaches_the_model_with_its_reason(server: Served) -> None:
    run = await server.run("Send a postcard", "demo/agent")
    async with server.stream(f"/api/runs/{run['id']}/events") as events:
        await answered(server, events, run["id"], decision="no", reason="Too early.")
    ended = await server.ended(run["id"])
    assert (ended["status"], ended["tool_calls"][0]["state"]) == ("completed", "failed")
    assert "A person said no to this call, and it was not run. Too early." in ended["text"]


async def test_what_is_not_about_its_tools_is_answered_with_what_they_are(server: Served) -> None:
    run = await server.run("Hello", "demo/agent")
    ended = await server.ended(run["id"])
    assert ended["tool_calls"] == []
    assert "demo__postcard" in ended["text"]


async def test_it_counts_as_slowly_as_it_says_and_fails_as_tools_do() -> None:
    clock, heard = ManualClock(), list[tuple[str, float | None, float | None]]()
    tools = DemoTools(clock)
    by_name = {tool.name: tool for tool in (await tools.offer()).tools}

    def progress(text: str, done: float | None, total: float | None) -> None:
        heard.append((text, done, total))

    counting = asyncio.create_task(tools.call(by_name["count"], {"to": 3}, progress))
    await clock.advance(1.4)
    assert heard == [("1…", 1, 3), ("2…", 2, 3), ("3…", 3, 3)]
    assert not counting.done()
    await clock.advance(0.2)
    assert (await counting).text == "Counted to 3."
    assert (await tools.call(by_name["calculate"], {"expression": "nothing"}, progress)).state == "failed"
    assert (await tools.call(by_name["dice"], {"count": 1, "sides": 2}, progress)).text in ("1", "2")


@pytest.mark.parametrize(("said", "value"), [("6 * 7", 42), ("-(1 + 2) / 4", -0.75), ("+2", 2)])
def test_sums_are_worked_out(said: str, value: float) -> None:
    assert calculated(said) == value


@pytest.mark.parametrize("said", ["", "1 / 0", "2 ** 9", "(" * 150, "__import__('os')", "1 +"])
def test_what_is_no_sum_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match="can't be worked out"):
        calculated(said)
