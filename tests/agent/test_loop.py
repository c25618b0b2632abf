"""The built-in loop: turns and tools, and where they end."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from headwater.config.settings import AgentSettings
from headwater.events import (
    AttemptStarted,
    Completed,
    Notice,
    RunEnded,
    ToolProgress,
    ToolResult,
    ToolRunStarted,
)
from headwater.simulate import Answer, Call, Fin, Usage
from tests.agent.company import DONE, calls, company, states

pytestmark = pytest.mark.anyio


async def test_a_turn_its_tools_and_the_next_turn(tmp_path: Path) -> None:
    async with company(tmp_path, helper={"system": "Be brief.", "max_tokens": 500}) as one:
        one.simulator.script("m", calls("note"), DONE)
        session_id = await one.session()
        run = await one.ended(await one.say(session_id))
        assert (run["status"], run["text"], states(run)) == (
            "completed",
            "Let me see.All done.",
            [("note", "done")],
        )
        first, second = (request.body for request in one.simulator.requests)
        assert first["messages"][0] == {"role": "system", "content": "Be brief."}
        assert first["max_tokens"] == 500
        assert [tool["function"]["name"] for tool in first["tools"]][:2] == ["rogue__note", "rogue__slow"]
        assert second["messages"][-1]["content"] == "noted w0"
        assert one.complaints == []
        _, told, answer = await one.items(session_id)
        assert (told["content"], told["status"], states(told)) == ("Let me see.", "complete", [("note", "done")])
        assert (answer["content"], answer["outcome"]) == ("All done.", {"type": "completed", "reason": "stop"})
        # And again, with all of that for its history.
        await one.ended(await one.say(session_id, content="And?"))
        assert [message["role"] for message in one.sent(2)] == [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]


async def test_it_is_in_the_log_that_a_tool_runs_before_it_does(tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        one.simulator.script("m", calls("slow"), DONE)
        run_id = await one.run()
        await one.written(1)
        assert any(isinstance(entry.event, ToolRunStarted) for entry in await one.part(run_id))
        progress = await one.until(run_id, ToolProgress)
        assert isinstance(progress, ToolProgress)
        assert (progress.text, progress.done, progress.total) == ("began", 1.0, 9.0)


async def test_calls_of_one_turn_run_side_by_side(tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        # Each of them waits for the other.
        one.simulator.script("m", calls("meet", "meet"), DONE)
        run = await one.ended(await one.run())
        assert [call["result"] for call in run["tool_calls"]] == ["met w0", "met w1"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (Call(name="rogue__note", arguments={"word": 7}), "The arguments do not fit the tool's schema: at $.word: 7"),
        (Call(name="rogue__note", arguments={}), "'word' is a required property"),
        (Call(name="rogue__note", arguments="[1]"), "The arguments must be a JSON object."),
        (Call(name="rogue__note", arguments='{"word": oops}'), "The arguments are no JSON"),
        (Call(name="rogue__nothing", arguments={}), "There is no tool 'rogue__nothing'. There are: rogue__note, "),
    ],
)
async def test_a_bad_call_goes_back_to_the_model(call: Call, words: str, tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        one.simulator.script("m", Answer(text="", calls=(call,)), calls("note"), DONE)
        run = await one.ended(await one.run())
        assert (run["status"], [state for _, state in states(run)]) == ("completed", ["failed", "done"])
        assert words in one.sent(1)[-1]["content"]
        assert one.journal == ["note w0"]


async def test_a_long_result_is_cut_with_a_note(tmp_path: Path) -> None:
    async with company(tmp_path, helper={"result_limit_chars": 100}) as one:
        one.simulator.script("m", calls("long", word="250"), DONE)
        await one.ended(await one.run())
        note = "\n\n[Cut here: 150 of 250 characters are left out.]"
        assert one.sent(1)[-1]["content"] == "y" * 100 + note


async def test_images_of_a_result_are_kept_as_blobs_and_shown_to_the_model(tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        one.simulator.script("m", calls("picture", word="x"), DONE)
        session_id = await one.session()
        await one.ended(await one.say(session_id))
        _, told, _ = await one.items(session_id)
        [part] = told["tool_calls"][0]["parts"]
        kept = await one.http.get(f"/api/blobs/{part['blob']}")
        assert (kept.headers["content-type"], kept.content) == ("image/png", b"\x89PNG\r\n\x1a\nx")
        assert "[An image of type image/tiff is left out" in told["tool_calls"][0]["result"]
        url = f"data:image/png;base64,{base64.b64encode(kept.content).decode()}"
        assert url in str(one.sent(1))
        assert one.complaints == []


@pytest.mark.parametrize(
    ("limits", "usage"),
    [
        ({"max_turns": 2}, Usage()),
        ({"budget_tokens": 60}, Usage(input_tokens=20, output_tokens=15)),
        ({"budget_tokens": 10}, Usage(send="none")),
    ],
)
async def test_turns_and_tokens_have_a_limit(limits: Any, usage: Usage, tmp_path: Path) -> None:
    async with company(tmp_path, helper=limits) as one:
        turn = calls("note")
        one.simulator.script("m", Answer(text=turn.text, calls=turn.calls, usage=usage, times=9))
        session_id = await one.session()
        run = await one.ended(await one.say(session_id))
        assert run["outcome"] == {"type": "incomplete", "reason": "turn_limit"}
        # What nobody would read is not run.
        assert states(run) == [("note", "done"), ("note", "dropped")]
        assert one.journal == ["note w0"]
        one.simulator.script("m", DONE)
        assert (await one.ended(await one.say(session_id)))["status"] == "completed"
        assert one.complaints == []


async def test_a_model_that_gives_its_calls_the_same_id_each_time_is_understood(tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        same = [Answer(text="", calls=(Call(name="rogue__note", arguments={"word": w}, id="call_0"),)) for w in "ab"]
        one.simulator.script("m", *same, DONE)
        run = await one.ended(await one.run())
        assert [(call["id"], call["result"]) for call in run["tool_calls"]] == [
            ("call_0", "noted a"),
            ("call_0_2", "noted b"),
        ]
        assert one.complaints == []


async def test_a_cut_turn_is_gone_on_with_a_bounded_number_of_times(tmp_path: Path) -> None:
    """C27."""
    async with company(tmp_path) as one:
        cut = Answer(tokens=9, faults=(Fin(tokens=3),), times=2)
        one.simulator.script("m", calls("note"), cut, DONE)
        run = await one.ended(await one.run())
        assert run["status"] == "completed"
        assert run["text"] == "Let me see.t0 t1 t2 t0 t1 t2 All done."
        assert [attempt["reason"] for attempt in run["attempts"]] == ["first", "first", "continue", "continue"]
        assert one.journal == ["note w0"]
        one.simulator.script("m", Answer(tokens=9, faults=(Fin(tokens=3),), times=99))
        run = await one.ended(await one.run())
        assert (run["status"], len(run["attempts"])) == ("failed", 4)


async def test_a_torn_call_is_never_run_nor_a_whole_one_beside_it(tmp_path: Path) -> None:
    """C26."""
    async with company(tmp_path) as one:
        torn = calls("note", "slow")
        fault = Fin(at="in_arguments", tokens=4)
        one.simulator.script("m", Answer(text=torn.text, calls=torn.calls, faults=(fault,)), DONE)
        session_id = await one.session()
        run = await one.ended(await one.say(session_id))
        assert (run["outcome"]["type"], run["outcome"]["reason"]) == ("failed", "upstream_truncated")
        assert "Not called: rogue__note, rogue__slow." in run["outcome"]["message"]
        assert states(run) == [("note", "dropped"), ("slow", "dropped")]
        assert [item.get("code") for item in (await one.items(session_id))[2:]] == ["tool_call_dropped", "failed"]
        assert one.journal == []
        await one.ended(await one.say(session_id))
        assert "were not run: rogue__note, rogue__slow" in str(one.sent(1))
        assert one.complaints == []


async def test_an_agent_that_has_used_its_tools_may_have_nothing_to_add(tmp_path: Path) -> None:
    """C12."""
    async with company(tmp_path) as one:
        one.simulator.script("m", calls("note"), Answer(text=""))
        assert (await one.ended(await one.run()))["status"] == "completed"
        one.simulator.script("m", Answer(text=""))
        assert (await one.ended(await one.run()))["outcome"]["reason"] == "empty"


async def test_tools_that_can_not_be_had_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    broken = {"command": ("there-is-no-such-program",)}
    async with company(tmp_path, mcp=broken) as one:
        one.simulator.script("m", DONE)
        run_id = await one.run()
        assert (await one.ended(run_id))["status"] == "completed"
        notices = [entry.event for entry in await one.log(run_id) if isinstance(entry.event, Notice)]
        assert [(notice.code, notice.tools) for notice in notices] == [("tools_unavailable", ("rogue",))]
        assert "No such file" in notices[0].text
        assert "tools" not in one.simulator.requests[0].body


async def test_an_agent_has_its_own_tools_and_no_others(tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        body = {"model": "helper", "messages": [{"role": "user", "content": "Hi"}], "tools": tools}
        refused = await one.post("/v1/chat/completions", body, 400)
        assert refused["error"]["param"] == "tools"


async def test_a_cut_answer_of_an_agent_is_gone_on_with_and_its_tools_are_not_run_again(tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        cut = Answer(tokens=9, faults=(Fin(tokens=3),), times=4)
        one.simulator.script("m", calls("note"), cut, calls("note", word="b"), DONE)
        session_id = await one.session()
        run_id = await one.say(session_id)
        assert (await one.ended(run_id))["status"] == "failed"
        again = (await one.post(f"/api/runs/{run_id}/continue"))["run"]
        ended = await one.ended(again["id"])
        assert (ended["status"], ended["continues"]) == ("completed", run_id)
        assert one.journal == ["note w0", "note b"]
        assert one.complaints == []


async def test_a_hundred_agents_with_tools_at_once(tmp_path: Path) -> None:
    async with company(tmp_path, f"sqlite:{tmp_path / 'h.db'}", mcp={"scope": "shared"}) as one:
        one.simulator.script(
            "m",
            Answer(when="user", text="", calls=(Call(name="rogue__note", arguments={"word": "a"}),), times=100),
            Answer(when="tool_result", echo=True, times=100),
        )
        runs = await asyncio.gather(*(one.run() for _ in range(100)))
        ended = await asyncio.gather(*(one.ended(run_id) for run_id in runs))
        assert [run["text"] for run in ended] == ["noted a"] * 100
        assert one.journal == ["note a"] * 100
        assert one.complaints == []


async def test_what_is_in_the_log_is_what_a_follower_saw(tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        one.simulator.script("m", calls("note", "refuse"), DONE)
        run_id = await one.run()
        kinds = [type(event) async for event in one.services.runs.follow(None, run_id)]
        log = await one.log(run_id)
        assert kinds == [type(entry.event) for entry in log]
        assert [entry.seq for entry in log] == list(range(len(log)))
        assert kinds.count(AttemptStarted) == 2
        assert kinds.count(ToolResult) == 2
        assert log[-1].event == RunEnded(Completed("stop"))


def test_nothing_needs_to_be_set_for_an_agent_but_its_model() -> None:
    assert AgentSettings(model="m").max_turns == 20
