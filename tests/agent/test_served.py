"""Agents of one's own through the server, with the real SDKs (C70-C72); and what of an agent a client may see."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from msgspec import Struct

from headwater.events import Stopped, TextDelta, ToolRunStarted
from headwater.simulate import Answer, Call, Fin, Usage
from tests.agent import bots
from tests.agent.company import DIALECTS, DONE, HANGS, Company, calls, company, states

pytestmark = pytest.mark.anyio

BOTS = [
    "streams",
    "returns",
    "says_and_returns",
    "raises",
    "raises_at_once",
    "is_cut",
    "names_a_failure",
    "waits",
    "ignores",
    "blocks",
    "asks",
    "looks_away",
    "copes",
    "is_stopped_while_it_asks",
    "remembers",
    "NO_AGENT",
    "nowhere",
]


def own() -> dict[str, Any]:
    agents: dict[str, Any] = {name: {"python": f"tests.agent.bots:{name}"} for name in BOTS}
    with_tools = {
        name: {"python": f"tests.agent.bots:{name}", "tools": ("rogue",)} for name in ("uses_tools", "leaves_a_call")
    }
    return agents | with_tools | {"ignores": {"python": "tests.agent.bots:ignores", "cleanup_timeout_s": 0.3}}


class Told(Struct):
    """What an SDK makes of an answer."""

    text: str = ""
    chunks: int = 0
    end: str | None = None
    calls: list[str] = []
    error: str = ""


async def told(one: Company, dialect: str, model: str) -> Told:
    found = Told()
    try:
        match dialect:
            case "chat":
                await by_chat(one, model, found)
            case "responses":
                await by_responses(one, model, found)
            case _:
                await by_messages(one, model, found)
    except (openai.APIError, anthropic.APIError) as error:
        found.error = error.message
    return found


async def by_chat(one: Company, model: str, found: Told) -> None:
    said: Any = [{"role": "user", "content": "Go"}]
    async for chunk in await one.openai.chat.completions.create(model=model, messages=said, stream=True):
        if chunk.choices:
            delta = chunk.choices[0].delta
            found.text += delta.content or ""
            found.chunks += bool(delta.content)
            found.calls += [
                call.function.name for call in delta.tool_calls or [] if call.function and call.function.name
            ]
            found.end = chunk.choices[0].finish_reason or found.end


async def by_responses(one: Company, model: str, found: Told) -> None:
    async for event in await one.openai.responses.create(model=model, input="Go", stream=True, store=False):
        if event.type == "response.output_text.delta":
            found.text += event.delta
            found.chunks += 1
        elif event.type == "response.output_item.done" and event.item.type == "function_call":
            found.calls.append(event.item.name)
        elif event.type in ("response.completed", "response.incomplete"):
            details = event.response.incomplete_details
            found.end = (details.reason if details else None) or event.response.status


async def by_messages(one: Company, model: str, found: Told) -> None:
    said: Any = [{"role": "user", "content": "Go"}]
    async with one.anthropic.messages.stream(model=model, max_tokens=99, messages=said) as stream:
        async for text in stream.text_stream:
            found.text += text
            found.chunks += 1
        message = await stream.get_final_message()
    found.calls = [block.name for block in message.content if block.type == "tool_use"]
    found.end = message.stop_reason


STOP = {"chat": "stop", "responses": "completed", "messages": "end_turn"}
LENGTH = {"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens"}
CALLS = {"chat": "tool_calls", "responses": "completed", "messages": "tool_use"}


async def test_what_an_agent_of_ones_own_says_and_how_it_ends(tmp_path: Path) -> None:
    """C70, C72, in every dialect."""
    async with company(tmp_path, **own()) as one:
        listed = {model.id async for model in await one.openai.models.list()}
        assert {"helper", "streams", "demo/agent"} <= listed
        for dialect in DIALECTS:
            streamed = await told(one, dialect, "streams")
            assert (streamed.text, streamed.chunks, streamed.end) == ("one two three", 3, STOP[dialect])
            for name, text in (("returns", "in one piece"), ("says_and_returns", "said once")):
                once = await told(one, dialect, name)
                assert (once.text, once.chunks, once.end) == (text, 1, STOP[dialect])
            cut = await told(one, dialect, "is_cut")
            assert (cut.text, cut.end, cut.error) == ("so far ", LENGTH[dialect], "")
            for name in ("raises", "raises_at_once"):
                failed = await told(one, dialect, name)
                assert "What was to answer has failed (RuntimeError)" in failed.error
                assert "secret" not in failed.error
            assert "That is too much for me." in (await told(one, dialect, "names_a_failure")).error


async def test_an_exception_is_in_the_servers_own_log_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with company(tmp_path, **own()) as one:
        session_id = await one.session()
        run = await one.ended(await one.say(session_id, "raises"))
        assert (run["outcome"]["reason"], run["text"]) == ("agent_error", "so far ")
        assert "a secret of the server's own log" in caplog.text
        assert "bots.py" in caplog.text
        _, partial, notice = await one.items(session_id)
        assert (partial["status"], notice["code"]) == ("partial", "failed")
        # What it has said is told to the next.
        assert (await one.ended(await one.say(session_id, "remembers")))["text"] == "True 3"


async def test_a_stop_is_told_cleans_up_once_and_does_not_wait_for_ever(tmp_path: Path) -> None:
    """C71."""
    async with company(tmp_path, **own()) as one:
        bots.heard.clear()
        session_id = await one.session()
        run_id = await one.say(session_id, "waits")
        await one.until(run_id, TextDelta)
        stopped = (await one.post(f"/api/runs/{run_id}/stop"))["run"]
        assert (stopped["status"], stopped["text"]) == ("stopped", "so far ")
        assert bots.heard == [Stopped("user"), "cleaned up"]
        run_id = await one.run("ignores")
        await one.until(run_id, TextDelta)
        answer = await one.post(f"/api/runs/{run_id}/stop")
        assert (answer["run"]["status"], answer["upstream_closed"]) == ("stopped", "unknown")


async def test_a_client_that_leaves_stops_its_agent(tmp_path: Path) -> None:
    async with company(tmp_path, **own()) as one:
        bots.heard.clear()
        body = {"model": "waits", "stream": True, "messages": [{"role": "user", "content": "Go"}]}
        async with one.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            async for line in answer.aiter_lines():
                if "so far" in line:
                    break
        run = await one.ended(answer.headers["x-run-id"])
        assert (run["status"], bots.heard[0]) == ("stopped", Stopped("disconnect"))


async def test_a_client_that_leaves_an_agent_that_waits_for_somebody_stops_it(tmp_path: Path) -> None:
    """C41, where no worker has the run."""
    async with company(tmp_path, helper={"approve": ("rogue.*",)}) as one:
        one.simulator.script("m", calls("note"), DONE)
        body = {"model": "helper", "stream": True, "messages": [{"role": "user", "content": "Go"}]}
        async with one.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            run_id = answer.headers["x-run-id"]
            while one.services.runs.live(run_id) is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert (await one.ended(run_id))["outcome"] == {"type": "stopped", "reason": "disconnect"}
        assert one.journal == []


async def test_one_that_blocks_the_event_loop_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with company(tmp_path, **own()) as one:
        with caplog.at_level(logging.WARNING, "headwater.agent"):
            run_id = await one.run("blocks")
            assert (await one.ended(run_id))["text"] == "at last"
        assert f"The agent 'blocks' ({run_id}) has blocked the event loop" in caplog.text
        assert "time.sleep(1.6)" in caplog.text


async def test_one_that_can_not_be_loaded_says_so_and_keeps_nobody_else(tmp_path: Path) -> None:
    async with company(tmp_path, **own()) as one:
        for name, words in (("nowhere", "can't be loaded (AttributeError)"), ("NO_AGENT", "is no function")):
            run = await one.ended(await one.run(name))
            assert (run["outcome"]["reason"], words in run["outcome"]["message"]) == ("agent_error", True)
        assert (await one.ended(await one.run("returns")))["status"] == "completed"


async def test_it_asks_models_of_the_server(tmp_path: Path) -> None:
    async with company(tmp_path, **own()) as one:
        usage = Usage(input_tokens=5, output_tokens=2)
        one.simulator.script("m", Answer(text="hello", usage=usage), Answer(text="again", usage=usage))
        run = await one.ended(await one.run("asks"))
        assert (run["status"], run["text"]) == ("completed", "HELLO / again")
        assert (run["usage"]["input_tokens"], run["usage"]["output_tokens"]) == (10, 4)
        assert one.simulator.requests[1].body["max_tokens"] == 9


async def test_a_model_that_fails_fails_the_agent_unless_it_copes(tmp_path: Path) -> None:
    async with company(tmp_path, **own()) as one:
        one.simulator.script(
            "m", Answer(tokens=9, finish="length", times=2), Answer(tokens=9, faults=(Fin(at="after_head"),), times=9)
        )
        run = await one.ended(await one.run("looks_away"))
        assert (run["outcome"], run["text"][:3]) == ({"type": "incomplete", "reason": "length"}, "t0 ")
        assert (await one.ended(await one.run("copes")))["text"] == "It said Incomplete."
        run = await one.ended(await one.run("looks_away"))
        assert (run["outcome"]["type"], run["outcome"]["reason"]) == ("failed", "upstream_truncated")


async def test_a_stop_reaches_the_model_that_it_asks(tmp_path: Path) -> None:
    async with company(tmp_path, **own()) as one:
        one.simulator.script("m", HANGS)
        run_id = await one.run("is_stopped_while_it_asks")
        await one.simulator.wait_for_requests(1)
        await one.post(f"/api/runs/{run_id}/stop")
        closed = await one.simulator.wait_for_close(0)
        assert closed.closed in ("client_fin", "client_reset")


async def test_it_calls_tools_of_the_server_each_in_the_log_and_once(tmp_path: Path) -> None:
    async with company(tmp_path, **own()) as one:
        run_id = await one.run("uses_tools")
        run = await one.ended(run_id)
        assert run["text"].startswith("done: noted a, done: noted b, failed: The arguments do not fit")
        assert [state for _, state in states(run)] == ["done", "done", "failed", "failed"]
        begun = [entry.event for entry in await one.log(run_id) if isinstance(entry.event, ToolRunStarted)]
        assert len(begun) == 2
        assert sorted(one.journal) == ["note a", "note b"]


# --------------------------------------------------------------- what a client may see


async def test_a_client_of_a_dialect_sees_the_text_and_never_the_tools(tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        for dialect in DIALECTS:
            one.simulator.script("m", calls("note", "refuse"), DONE)
            answer = await told(one, dialect, "helper")
            assert (answer.calls, answer.end, answer.error) == ([], STOP[dialect], "")
            # Where a dialect has a word for it, they are two messages.
            between = "\n\n" if dialect == "chat" else ""
            assert answer.text == f"Let me see.{between}All done."
        # As one piece, too.
        one.simulator.script("m", calls("note"), DONE)
        said: Any = [{"role": "user", "content": "Go"}]
        whole = await one.openai.chat.completions.create(model="helper", messages=said)
        assert whole.choices[0].message.tool_calls is None
        assert whole.choices[0].finish_reason == "stop"
        assert "noted" not in str(whole)


async def test_a_response_that_is_found_again_has_no_more(tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        one.simulator.script("m", calls("note"), DONE)
        made = await one.openai.responses.create(model="helper", input="Go")
        found = await one.openai.responses.retrieve(made.id)
        assert [item.type for item in found.output] == [item.type for item in made.output]
        assert all(item.type == "message" for item in found.output)
        # What follows it has all of the history, tools included, and it is legal.
        one.simulator.script("m", DONE)
        await one.openai.responses.create(model="helper", input="And?", previous_response_id=made.id)
        assert [message["role"] for message in one.sent(2)] == ["user", "assistant", "tool", "assistant", "user"]
        assert one.complaints == []


async def test_a_call_that_is_left_is_the_clients(tmp_path: Path) -> None:
    async with company(tmp_path, **own()) as one:
        for dialect in DIALECTS:
            answer = await told(one, dialect, "leaves_a_call")
            assert (answer.text, answer.calls, answer.end) == ("Please: ", ["yours"], CALLS[dialect])


async def test_a_torn_call_in_an_agent_raises_in_every_sdk(tmp_path: Path) -> None:
    """C26."""
    async with company(tmp_path) as one:
        for dialect in DIALECTS:
            torn = Answer(text="Hm", calls=(Call(name="rogue__note"),), faults=(Fin(at="in_arguments", tokens=1),))
            one.simulator.script("m", torn)
            answer = await told(one, dialect, "helper")
            assert "Not called: rogue__note" in answer.error
            assert answer.calls == []
        assert one.journal == []


async def test_a_cut_turn_of_an_agent_goes_on_in_every_sdk(tmp_path: Path) -> None:
    """C27: what was said stands, and nothing is run again."""
    async with company(tmp_path) as one:
        for dialect in DIALECTS:
            one.simulator.script("m", calls("note", word=dialect), Answer(tokens=9, faults=(Fin(tokens=3),)), DONE)
            answer = await told(one, dialect, "helper")
            assert (answer.error, answer.end, answer.calls) == ("", STOP[dialect], [])
            assert answer.text.replace("\n", "") == "Let me see.t0 t1 t2 All done."
        assert one.journal == [f"note {dialect}" for dialect in DIALECTS]
        assert one.complaints == []


async def test_the_example_with_pydantic_ai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = Path(__file__).parents[2] / "examples" / "pydantic_agent"
    monkeypatch.syspath_prepend(str(example))
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    async with company(tmp_path, dice={"python": "bot:dice"}) as one:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{one.simulator.url}/v1")
        one.simulator.script(
            "gpt-5-mini",
            Answer(when="user", calls=(Call(name="roll", arguments={"sides": 1}),), times=2),
            Answer(when="tool_result", text="You rolled a one.", times=9),
        )
        session_id = await one.session()
        run = await one.ended(await one.say(session_id, "dice", "Roll one with one side"))
        assert (run["status"], run["text"]) == ("completed", "You rolled a one.")
        assert [(call["name"], call["result"]) for call in run["tool_calls"]] == [("roll", "1")]
        await one.ended(await one.say(session_id, "dice", "Again"))
        roles = [message["role"] for message in one.sent(2)]
        assert roles == ["system", "user", "assistant", "user"]
        assert one.complaints == []
        assert (await told(one, "chat", "dice")).text == "You rolled a one."
