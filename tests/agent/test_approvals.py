"""Calls that wait for a person: what is asked, who may answer, what an answer does, and where it is remembered."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from headwater.config.secret import Secret
from headwater.config.settings import KeySettings, ServerSettings
from headwater.events import ApprovalAsked, ApprovalGiven
from headwater.testing import Simulator
from tests.agent.company import DONE, calls, company, serving, settings_of, states

pytestmark = pytest.mark.anyio

ASKS = {"approve": ("rogue.note",)}


async def test_nothing_of_a_run_that_waits_is_under_way(tmp_path: Path) -> None:
    async with company(tmp_path, helper=ASKS) as one:
        one.simulator.script("m", calls("note"), DONE)
        session_id = await one.session()
        run_id = await one.say(session_id)
        asked = await one.until(run_id, ApprovalAsked)
        assert isinstance(asked, ApprovalAsked)
        assert (asked.name, asked.arguments) == ("rogue__note", '{"word":"w0"}')
        answer = await one.approve(run_id)
        assert (answer["decision"], answer["by"]) == ("yes", "local")
        run = await one.ended(run_id)
        assert (run["status"], states(run)) == ("completed", [("note", "done")])
        assert one.journal == ["note w0"]


async def test_while_it_waits_its_session_is_busy_and_no_worker_has_it(tmp_path: Path) -> None:
    async with company(tmp_path, helper=ASKS) as one:
        one.simulator.script("m", calls("note"), DONE)
        session_id = await one.session()
        run_id = await one.say(session_id)
        while one.services.runs.live(run_id) is not None or not one.simulator.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        assert (await one.get(f"/api/runs/{run_id}"))["status"] == "waiting"
        assert one.journal == []
        body = {"content": "And?", "model": "helper"}
        busy = await one.post(f"/api/sessions/{session_id}/messages", body, 409)
        assert busy["error"]["active_run_id"] == run_id


async def test_a_no_is_told_to_the_model_with_its_reason(tmp_path: Path) -> None:
    async with company(tmp_path, helper=ASKS) as one:
        one.simulator.script("m", calls("note"), DONE)
        run_id = await one.run()
        await one.approve(run_id, "no", reason="Not on a Sunday.")
        run = await one.ended(run_id)
        assert (run["status"], states(run)) == ("completed", [("note", "failed")])
        assert one.sent(1)[-1]["content"] == "A person said no to this call, and it was not run. Not on a Sunday."
        assert one.journal == []


async def test_an_answer_is_for_the_arguments_that_were_shown(tmp_path: Path) -> None:
    async with company(tmp_path, helper=ASKS) as one:
        one.simulator.script("m", calls("note"), DONE)
        run_id = await one.run()
        refused = await one.approve(run_id, status=409, arguments_digest="0" * 64)
        assert refused["error"]["code"] == "arguments_changed"
        await one.approve(run_id)
        await one.ended(run_id)
        assert one.journal == ["note w0"]


async def test_the_first_answer_stands(tmp_path: Path) -> None:
    async with company(tmp_path, helper=ASKS) as one:
        one.simulator.script("m", calls("note"), DONE)
        run_id = await one.run()
        asked = await one.until(run_id, ApprovalAsked)
        assert isinstance(asked, ApprovalAsked)
        path = f"/api/runs/{run_id}/approvals/{asked.call_id}"
        said = [{"decision": one, "arguments_digest": asked.arguments_digest} for one in ("no", "yes", "no", "yes")]
        answers = await asyncio.gather(*(one.post(path, body) for body in said))
        assert len({answer["decision"] for answer in answers}) == 1
        run = await one.ended(run_id)
        yes = answers[0]["decision"] == "yes"
        assert states(run) == [("note", "done" if yes else "failed")]
        assert one.journal == (["note w0"] if yes else [])


async def test_an_answer_that_comes_before_the_run_has_gone_to_bed_wakes_it(tmp_path: Path) -> None:
    """One is answered while another still runs, one at the moment in which it begins to wait."""
    async with company(tmp_path, helper={"approve": ("rogue.n*", "rogue.long")}) as one:
        one.simulator.script("m", calls("note", "long", word="3"), DONE)
        run_id = await one.run()
        async for event in one.services.runs.follow(None, run_id):
            if isinstance(event, ApprovalAsked):
                path = f"/api/runs/{run_id}/approvals/{event.call_id}"
                await one.post(path, {"decision": "yes", "arguments_digest": event.arguments_digest})
        assert states(await one.ended(run_id)) == [("note", "done"), ("long", "done")]
        assert sorted(one.journal) == ["long 3", "note 3"]


async def test_what_needs_no_approval_runs_while_the_rest_waits(tmp_path: Path) -> None:
    async with company(tmp_path, helper={"approve": ("rogue.long",)}) as one:
        one.simulator.script("m", calls("note", "long", word="3"), DONE)
        run_id = await one.run()
        assert await one.written(1) == ["note 3"]
        await one.approve(run_id)
        assert states(await one.ended(run_id)) == [("note", "done"), ("long", "done")]


async def test_always_is_for_this_session_and_no_other(tmp_path: Path) -> None:
    async with company(tmp_path, helper=ASKS) as one:
        one.simulator.script("m", calls("note", "note", times=1), calls("note", word="again"), DONE)
        session_id = await one.session()
        run_id = await one.say(session_id)
        await one.approve(run_id, remember="session")
        run = await one.ended(run_id)
        assert states(run) == [("note", "done")] * 3
        given = [entry.event for entry in await one.log(run_id) if isinstance(entry.event, ApprovalGiven)]
        assert [(one.decision, one.remember) for one in given] == [("yes", "session"), ("yes", None)]
        one.simulator.script("m", calls("note", word="later"), DONE)
        assert (await one.ended(await one.say(session_id)))["status"] == "completed"
        one.simulator.script("m", calls("note", word="elsewhere"), DONE)
        other_id = await one.say(await one.session())
        await one.until(other_id, ApprovalAsked)
        assert sorted(one.journal[:2]) == ["note w0", "note w1"]
        assert one.journal[2:] == ["note again", "note later"]


async def test_always_outside_of_a_session_is_for_the_run(tmp_path: Path) -> None:
    async with company(tmp_path, helper=ASKS) as one:
        one.simulator.script("m", calls("note"), calls("note", word="again"), DONE)
        run_id = await one.run()
        await one.approve(run_id, remember="session")
        assert states(await one.ended(run_id)) == [("note", "done")] * 2


async def test_nobody_answers_is_a_no_and_a_later_yes_is_told_so(tmp_path: Path) -> None:
    async with company(tmp_path, helper=ASKS | {"approve_timeout_s": 0.2}) as one:
        one.simulator.script("m", calls("note"), DONE)
        run_id = await one.run()
        asked = await one.until(run_id, ApprovalAsked)
        assert isinstance(asked, ApprovalAsked)
        run = await one.ended(run_id)
        assert (run["status"], states(run)) == ("completed", [("note", "failed")])
        assert "Nobody answered in time." in one.sent(1)[-1]["content"]
        body = {"decision": "yes", "arguments_digest": asked.arguments_digest}
        late = await one.http.post(f"/api/runs/{run_id}/approvals/{asked.call_id}", json=body)
        assert (late.status_code, late.json()["error"]["code"]) == (409, "run_ended")
        assert one.journal == []


async def test_a_stop_ends_a_run_that_waits(tmp_path: Path) -> None:
    async with company(tmp_path, helper=ASKS) as one:
        one.simulator.script("m", calls("note"), DONE)
        session_id = await one.session()
        run_id = await one.say(session_id)
        await one.until(run_id, ApprovalAsked)
        stopped = await one.post(f"/api/runs/{run_id}/stop")
        assert (stopped["run"]["status"], states(stopped["run"])) == ("stopped", [("note", "dropped")])
        assert await one.post(f"/api/runs/{run_id}/approvals/none", {"decision": "yes", "arguments_digest": ""}, 404)
        assert (await one.ended(await one.say(session_id)))["status"] == "completed"
        assert one.complaints == []
        assert one.journal == []


async def test_waiting_outlives_the_server(tmp_path: Path) -> None:
    async with Simulator() as simulator:
        simulator.script("m", calls("note"), DONE)
        settings = settings_of(simulator, tmp_path / "j", f"sqlite:{tmp_path / 'h.db'}", helper=ASKS)
        async with serving(settings, simulator, tmp_path / "j") as one:
            run_id = await one.run()
            await one.until(run_id, ApprovalAsked)
        async with serving(settings, simulator, tmp_path / "j") as one:
            assert (await one.get(f"/api/runs/{run_id}"))["status"] == "waiting"
            await one.approve(run_id)
            run = await one.ended(run_id)
            assert (run["status"], states(run), one.journal) == ("completed", [("note", "done")], ["note w0"])
            seqs = [entry.seq for entry in await one.log(run_id)]
            assert seqs == list(range(len(seqs)))


async def test_an_agent_that_is_gone_when_the_answer_comes_fails_its_run(tmp_path: Path) -> None:
    async with Simulator() as simulator:
        simulator.script("m", calls("note"), DONE)
        settings = settings_of(simulator, tmp_path / "j", f"sqlite:{tmp_path / 'h.db'}", helper=ASKS)
        async with serving(settings, simulator, tmp_path / "j") as one:
            run_id = await one.run()
            await one.until(run_id, ApprovalAsked)
        async with serving(replace(settings, agents={}), simulator, tmp_path / "j") as one:
            await one.approve(run_id)
            run = await one.ended(run_id)
            assert (run["status"], states(run)) == ("failed", [("note", "dropped")])
            assert "There is no agent 'helper' any more." in run["outcome"]["message"]
            assert one.journal == []


async def test_only_who_has_the_scope_may_answer(tmp_path: Path) -> None:
    async with Simulator() as simulator:
        simulator.script("m", calls("note"), DONE)
        keys = (
            KeySettings(owner="ann", key=Secret("a" * 16)),
            KeySettings(owner="ann", key=Secret("b" * 16), scopes=("chat", "approve")),
            KeySettings(owner="bob", key=Secret("c" * 16), scopes=("chat", "approve")),
        )
        settings = settings_of(simulator, tmp_path / "j", helper=ASKS)
        settings = replace(settings, server=ServerSettings(keys=keys))
        async with serving(settings, simulator, tmp_path / "j") as one:

            async def post(name: str, path: str, body: Any) -> Any:
                return await one.http.post(path, json=body, headers={"authorization": f"Bearer {name * 16}"})

            run_id = (await post("a", "/api/runs", {"model": "helper", "input": "Go"})).json()["id"]
            asked = await one.until(run_id, ApprovalAsked)
            assert isinstance(asked, ApprovalAsked)
            path = f"/api/runs/{run_id}/approvals/{asked.call_id}"
            body = {"decision": "yes", "arguments_digest": asked.arguments_digest}
            assert [(await post(name, path, body)).status_code for name in "acb"] == [403, 404, 200]
            await one.services.runs.wait(None, run_id)
            assert one.journal == ["note w0"]
