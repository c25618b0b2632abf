"""Runs that ask a model: from what was said in a session to what the upstream is asked, over real sockets."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from headwater.agent.agents import Agents
from headwater.clock import SystemClock
from headwater.config.settings import ModelSettings, Settings, UpstreamSettings
from headwater.conversation import Message, Request, System, Text, Tool, User
from headwater.events import Completed, Failed, Notice, Outcome, Stopped, TextDelta
from headwater.records import Run
from headwater.runs.answers import Answers
from headwater.runs.habits import Habits
from headwater.runs.service import Runs
from headwater.sessions.sessions import Sessions
from headwater.simulate.script import Answer, Call, Cut, Stall
from headwater.store.memory import MemoryDatabase, open_memory
from headwater.store.results import Start, Started
from headwater.testing import Simulator
from headwater.upstream.upstreams import Upstreams
from tests.runs.puppets import OWNER, new_id

pytestmark = pytest.mark.anyio

INSTRUCTED = {"instructions": "Be brief."}
"""Of the Responses dialect: its first message is for this run alone."""


class Chat:
    def __init__(self, simulator: Simulator, runs: Runs, sessions: Sessions) -> None:
        self.simulator = simulator
        self.runs = runs
        self.sessions = sessions

    def run(self, session_id: str | None = "s", **more: Any) -> Run:
        return Run(id=new_id("run"), owner=OWNER, model="m", created_at=1000.0, session_id=session_id, **more)

    async def start(self, start: Start) -> str:
        result = await self.runs.start(start)
        assert isinstance(result, Started)
        return result.run.id

    async def say(self, text: str, **more: Any) -> tuple[str, Outcome]:
        request = Request((User((Text(text),)),))
        run_id = await self.start(self.sessions.said(self.run(**more), request, create_session=True))
        return run_id, await asyncio.wait_for(self.runs.wait(OWNER, run_id), 10)

    def asked(self, n: int) -> list[tuple[str, str]]:
        return [(message["role"], message["content"]) for message in self.simulator.requests[n].body["messages"]]


@asynccontextmanager
async def chat(**model: Any) -> AsyncIterator[Chat]:
    clock = SystemClock()
    async with Simulator() as simulator:
        up = UpstreamSettings(base_url=f"{simulator.url}/v1", list_models=False, retries=0)
        settings = Settings(upstreams={"up": up}, models=(ModelSettings(name="m", upstream="up", **model),))
        upstreams = Upstreams(settings, clock, Path("unused"))
        store = await open_memory(MemoryDatabase(), address="", clock=clock, entropy=os.urandom)
        sessions = Sessions(store, clock, new_id)
        answers = Answers(store, sessions, upstreams, Agents(settings, upstreams, store, clock))
        runs = Runs(Habits(store=store, clock=clock, make_id=new_id), answers)
        await runs.open()
        try:
            yield Chat(simulator, runs, sessions)
        finally:
            await runs.close()
            await store.close()
            await upstreams.close()


async def test_what_was_said_before_is_told() -> None:
    async with chat() as talk:
        talk.simulator.script("m", Answer(text="Hi!"), Answer(text="Fine."))
        assert (await talk.say("Hello"))[1] == Completed("stop")
        await talk.say("How are you?")
        assert talk.asked(1) == [("user", "Hello"), ("assistant", "Hi!"), ("user", "How are you?")]


async def test_a_partial_is_told_and_its_notice_is_not() -> None:
    """C45."""
    async with chat() as talk:
        talk.simulator.script("m", Answer(text="one two three", faults=(Cut(tokens=2),)), Answer(text="Yes."))
        _, outcome = await talk.say("Count")
        assert isinstance(outcome, Failed)
        await talk.say("And?")
        assert [role for role, _ in talk.asked(1)] == ["user", "assistant", "user"]
        assert talk.asked(1)[1][1].startswith("one two")


async def test_a_cut_answer_is_gone_on_with_in_a_new_message() -> None:
    """C27."""
    async with chat(prefill="assistant") as talk:
        talk.simulator.script("m", Answer(text="one two three", faults=(Cut(tokens=2),)), Answer(text="three"))
        run_id, _ = await talk.say("Count")
        cut = await talk.runs._store.run(OWNER, run_id)
        assert cut is not None
        start = await talk.sessions.gone_on_with(talk.run(), Request(()), cut)
        assert isinstance(start, Start)
        again = await talk.start(start)
        assert await talk.runs.wait(OWNER, again) == Completed("stop")
        assert talk.asked(1)[-1][0] == "assistant"
        events = [event async for event in talk.runs.follow(OWNER, again)]
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "three"


async def test_what_no_longer_fits_is_left_out_and_said() -> None:
    async with chat(context_tokens=300) as talk:
        talk.simulator.script("m", Answer(text="word " * 80))
        for n in range(4):
            run_id, outcome = await talk.say(f"Question {n}")
            assert outcome == Completed("stop")
        events = [event async for event in talk.runs.follow(OWNER, run_id)]
        assert [event.code for event in events if isinstance(event, Notice)] == ["context_trimmed"]
        assert ("user", "Question 0") not in talk.asked(3)


async def test_a_run_without_a_session_follows_another() -> None:
    async with chat() as talk:
        talk.simulator.script("m", Answer(text="Hi!"), Answer(text="Fine."))
        first = await talk.start(Start(run=talk.run(None), request=said("Hello"), echo=INSTRUCTED))
        await talk.runs.wait(OWNER, first)
        follows = talk.run(None, previous_run_id=first)
        second = await talk.start(Start(run=follows, request=said("How are you?"), echo=INSTRUCTED))
        assert await talk.runs.wait(OWNER, second) == Completed("stop")
        brief = ("system", "Be brief.")
        assert talk.asked(1) == [brief, ("user", "Hello"), ("assistant", "Hi!"), ("user", "How are you?")]


async def test_a_run_that_follows_what_was_deleted_just_now_asks_nobody_and_says_why() -> None:
    """In the words of its client, who knows no runs."""
    async with chat() as talk:
        orphan = await talk.start(Start(run=talk.run(None, previous_run_id="run_gone"), request=said("Hello?")))
        outcome = await talk.runs.wait(OWNER, orphan)
        message = "'resp_gone', which this response follows, was deleted just now. No model was asked."
        assert outcome == Failed("refused", message, 400)
        assert talk.simulator.requests == []


async def test_a_call_that_was_cut_off_is_not_told_to_the_run_that_follows() -> None:
    async with chat() as talk:
        torn = Answer(text="Let me.", calls=(Call(name="write"),), faults=(Cut(at="in_arguments", tokens=1),))
        talk.simulator.script("m", torn, Answer(text="Fine."))
        tools = (Tool("write", parameters={"type": "object", "properties": {"path": {"type": "string"}}}),)
        first = await talk.start(Start(run=talk.run(None), request=replace(said("Hello"), tools=tools)))
        assert isinstance(await talk.runs.wait(OWNER, first), Failed)
        second = await talk.start(Start(run=talk.run(None, previous_run_id=first), request=said("And?")))
        assert await talk.runs.wait(OWNER, second) == Completed("stop")
        assert [(role, text) for role, text in talk.asked(1) if role == "assistant"] == [("assistant", "Let me.")]
        assert "tool_calls" not in str(talk.simulator.requests[1].body)


async def test_a_stop_closes_the_upstream() -> None:
    """C42, C43: end to end."""
    async with chat() as talk:
        talk.simulator.script("m", Answer(text="one two three", faults=(Stall(tokens=2),)))
        run_id = await talk.start(talk.sessions.said(talk.run(), said("Count"), create_session=True))
        follower = talk.runs.follower(OWNER, run_id)
        while not any(isinstance(entry.event, TextDelta) for entry in await follower.next()):
            pass
        follower.leave()
        answer = await talk.runs.stop(OWNER, run_id)
        assert answer is not None
        assert answer.run.outcome == Stopped("user")
        assert answer.upstream_closed is True
        assert (await asyncio.wait_for(talk.simulator.wait_for_close(0), 5)).closed in ("client_fin", "client_reset")


def said(text: str) -> Request:
    """What a developer says first is part of it; unless they are `INSTRUCTED`."""
    messages: tuple[Message, ...] = (System((Text("Be brief."),)), User((Text(text),)))
    return Request(messages)
