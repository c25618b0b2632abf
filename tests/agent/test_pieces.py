"""The parts of an agent by themselves: where the server is too far away to see what they do."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from headwater.agent import arguments
from headwater.agent.arguments import Complaint
from headwater.agent.loading import Unloaded, load
from headwater.agent.own import AgentError, Context, OwnAgent
from headwater.agent.tools import Tool
from headwater.agent.watch import Stepped, Watch
from headwater.agent.watched import GO_ON, Broken, Watched, told
from headwater.conversation import Assistant, Message, Request, Text, ToolCall, ToolOutput, User
from headwater.events import (
    ApprovalAsked,
    AttemptStarted,
    Completed,
    Event,
    Failed,
    Notice,
    RunEnded,
    TextDelta,
    ToolCallStarted,
    ToolProgress,
    ToolResult,
    ToolRunStarted,
)
from headwater.judge import Evidence
from headwater.records import Run
from headwater.server.inner import Inner, outer_turns
from headwater.sessions.context import Context as Told
from headwater.sse import Frame
from headwater.testing.upstream import Heard
from headwater.upstream.unique import UniqueIds
from tests.agent.company import HANGS, company

pytestmark = pytest.mark.anyio

RUN = Run(id="run_1", owner="ann", model="m", created_at=0.0)


async def settle(task: asyncio.Task[Any]) -> None:
    for _ in range(20):
        await asyncio.sleep(0)


# ---------------------------------------------------------------------- names, arguments


def test_a_tools_name_is_one_that_every_provider_takes() -> None:
    assert Tool(server="files", name="read").called == "files__read"
    odd = [Tool(server="s", name=name).called for name in ("a.b", "a b", "x" * 80, "x" * 81, "ü")]
    assert len(set(odd)) == 5
    assert all(len(name) <= 64 and name.isascii() and " " not in name for name in odd)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"$ref": "http://127.0.0.1:9/never-fetched.json"},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"type": "integer"}}},
    ],
)
def test_a_schema_that_can_not_be_used_checks_nothing_and_fetches_nothing(schema: dict[str, Any]) -> None:
    assert arguments.read('{"a": 1}', schema) == {"a": 1}


def test_a_complaint_is_short() -> None:
    found = arguments.read(f'{{"a": "{"x" * 5000}"}}', {"properties": {"a": {"maxLength": 3}}})
    assert isinstance(found, Complaint)
    assert len(found.text) < 700
    assert arguments.read("  ", {}) == {}


# ------------------------------------------------------------------------- ids, the inside


class Fixed:
    """A decoder that says the same in all ways."""

    evidence = Evidence()

    def feed(self, frame: Frame, out: list[Event]) -> None:
        out.append(ToolCallStarted(0, "a", "f"))

    def whole(self, body: bytes, out: list[Event]) -> None:
        out += [TextDelta("hi"), ToolCallStarted(0, "a", "f")]

    def end(self, out: list[Event]) -> None:
        out.append(ToolCallStarted(0, "b", "f"))

    def around_text(self, data: bytes) -> None:
        return None


def test_an_id_that_was_had_becomes_another() -> None:
    unique = UniqueIds(Fixed(), frozenset({"a", "a_2"}))
    out: list[Event] = []
    unique.feed(Frame(b""), out)
    unique.whole(b"", out)
    unique.end(out)
    assert [event.id for event in out if isinstance(event, ToolCallStarted)] == ["a_3", "a_4", "b"]
    assert unique.around_text(b"") is None
    assert unique.evidence is Fixed.evidence


def outer(*events: Event) -> list[Event]:
    inner = Inner()
    return [shown for event in events for shown in inner.outer(event)]


def test_only_calls_that_the_run_ends_with_are_the_clients() -> None:
    one, other = ToolCallStarted(0, "a", "f"), ToolCallStarted(1, "b", "g")
    end = RunEnded(Completed("tool_calls"))
    assert outer(one, other, ToolRunStarted("a"), ToolResult("a", ""), end) == [ToolCallStarted(0, "b", "g"), end]
    assert outer(one, ApprovalAsked("a", "f", "", ""), ToolResult("x", ""), end) == [end]
    again = AttemptStarted("up", "m", 1)
    assert outer(one, again, other, RunEnded(Completed("stop"))) == [again, RunEnded(Completed("stop"))]
    said = TextDelta("hi")
    assert outer(said, ToolProgress("a")) == [said]


def test_what_an_agent_has_left_is_shown_without_its_own_calls() -> None:
    mine, yours = ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}")
    left: list[Message] = [Assistant((Text("hi"), mine, yours)), ToolOutput("a", (Text("ok"),))]
    assert list(outer_turns(left)) == [Assistant((Text("hi"), yours))]


# --------------------------------------------------------------------- agents of one's own


async def test_without_a_server_nothing_is_lent() -> None:
    context = Context(RUN, (), Heard())
    with pytest.raises(AgentError, match="a server's to lend"):
        await context.tools()
    with pytest.raises(AgentError, match="a server's to lend"):
        context.ask("m")


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("no.such.module:x", "ModuleNotFoundError"),
        ("tests.agent.bots:nowhere", "AttributeError"),
        ("tests.agent.bots:NO_AGENT", "is no function"),
    ],
)
def test_what_can_not_be_loaded_is_said(reference: str, words: str) -> None:
    found = load("mine", reference)
    assert isinstance(found, Unloaded)
    assert words in found.why


def test_a_module_of_the_working_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_bot_here.py").write_text("async def mine(context): return 'hi'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("/")
    assert callable(load("mine", "my_bot_here:mine"))


async def test_one_that_goes_on_with_a_cut_answer_is_told_so() -> None:
    asked, cut = User((Text("Hi"),)), Assistant((Text("Well"),))
    assert told(Told(Request((asked,)))) == (asked,)
    assert told(Told(Request((asked,)), cut)) == (asked, cut, User((Text(GO_ON),)))


async def test_what_was_left_out_is_said_before_it_speaks() -> None:
    async def mine(context: Context) -> str:
        return "hi"

    watch, heard = Watch(), Heard()
    source = Watched(OwnAgent(mine, RUN), watch, "mine", Notice("context_trimmed", "Some."))
    source.pause()
    source.resume()
    await source.run(heard)
    assert [type(event) for event in heard.events] == [Notice, TextDelta]
    watch.close()
    broken = Broken(Failed("agent_error", "No."))
    broken.pause()
    broken.resume()
    assert (await broken.run(heard)).outcome == Failed("agent_error", "No.")


async def test_a_watched_coroutine_is_cancelled_closed_and_raises_as_any_other() -> None:
    watch = Watch()
    seen: list[str] = []

    async def work() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
        await asyncio.sleep(0)
        raise LookupError

    task = asyncio.create_task(_awaited(work(), watch))
    await settle(task)
    task.cancel()
    with pytest.raises(LookupError):
        await task
    left = _awaited(work(), watch)
    left.send(None)
    left.close()
    assert seen == ["cancelled"]
    watch.close()
    Watch().close()


async def _awaited(coroutine: Any, watch: Watch) -> Any:
    return await Stepped(coroutine, watch, "work")


async def test_one_that_blocks_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    import time

    watch = Watch(blocked_s=0.04)

    async def work() -> None:
        time.sleep(0.3)  # noqa: ASYNC251

    with caplog.at_level(logging.WARNING, "headwater.agent"):
        await Stepped(work(), watch, "The agent 'mine'")
        # The thread looks every hundredth of a second.
        watch.close()
    assert [record.message.count("The agent 'mine' has blocked") for record in caplog.records] == [1]


async def test_a_loop_can_be_held_up(tmp_path: Path) -> None:
    async with company(tmp_path) as one:
        one.simulator.script("m", HANGS)
        run_id = await one.run()
        live = one.services.runs.live(run_id)
        assert live is not None
        live.pause()
        await one.simulator.wait_for_requests(1)
        live.resume()
        await one.until(run_id, TextDelta, 3)
        live.pause()
        live.resume()
        await one.post(f"/api/runs/{run_id}/stop")
