"""Durable streams in a program of one's own (C40-C55, without the server)."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from headwater import sse
from headwater.agent.own import Context
from headwater.conversation import Assistant, System, Text, User
from headwater.errors import CallerError, StoreError
from headwater.events import (
    Completed,
    Entry,
    Failed,
    Interrupted,
    RunEnded,
    RunStarted,
    Stopped,
    TextDelta,
    decode_entry,
)
from headwater.records import Run
from headwater.runs.unfollowed import Patience
from headwater.store.results import Queued, Start
from headwater.streams import Streams, open_streams
from headwater.testing import ManualClock
from tests.runs.puppets import said as said_message

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory:", "sqlite:"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param) + ("" if request.param == "memory:" else str(tmp_path / "chat.db"))


class Words:
    """A generator of words that come when the test says so."""

    def __init__(self) -> None:
        self._words: asyncio.Queue[str | None] = asyncio.Queue()

    def say(self, *words: str | None) -> None:
        for word in words:
            self._words.put_nowait(word)

    async def all(self) -> AsyncGenerator[str, None]:
        while (word := await self._words.get()) is not None:
            yield word


async def spoken() -> AsyncGenerator[str, None]:
    yield "Hello, "
    yield "world."


async def entries(streams: Streams, run_id: str, after: int = -1) -> list[Entry]:
    async with asyncio.timeout(10):
        return [entry async for entry in streams.follow(run_id, after)]


async def text(streams: Streams, run_id: str, after: int = -1) -> str:
    events = [entry.event for entry in await entries(streams, run_id, after)]
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def seen(streams: Streams, run_id: str, word: str) -> Entry:
    """Once it has been shown."""
    async with asyncio.timeout(10):
        return await anext(entry async for entry in streams.follow(run_id) if entry.event == TextDelta(word))


class TestFollowing:
    async def test_a_generator_becomes_a_log_of_typed_events(self, url: str) -> None:
        """C55."""
        async with open_streams(url) as streams:
            run = await streams.start(spoken(), name="greeter")
            log = await entries(streams, run.id)
            assert [entry.seq for entry in log] == [0, 1, 2, 3]
            assert isinstance(log[0].event, RunStarted)
            assert log[0].event.model == "greeter"
            assert [entry.event for entry in log[1:]] == [
                TextDelta("Hello, "),
                TextDelta("world."),
                RunEnded(Completed("stop")),
            ]
            assert await streams.wait(run.id) == Completed("stop")

    async def test_many_follow_from_any_cursor_at_any_time(self, url: str) -> None:
        """C50."""
        words = Words()
        async with open_streams(url) as streams:
            run = await streams.start(words.all())
            early = asyncio.create_task(text(streams, run.id))
            words.say("a", "b")
            await seen(streams, run.id, "b")
            middle = asyncio.create_task(text(streams, run.id, after=0))
            words.say("c", None)
            assert await early == await middle == await text(streams, run.id) == "abc"
            assert await text(streams, run.id, after=2) == "c"

    async def test_a_run_outlives_its_followers(self, url: str) -> None:
        """C40."""
        words = Words()
        async with open_streams(url) as streams:
            run = await streams.start(words.all())
            words.say("a")
            follower = streams.follow(run.id)
            async for entry in follower:
                if isinstance(entry.event, TextDelta):
                    break
            await follower.aclose()
            words.say("b", None)
            assert await streams.wait(run.id) == Completed("stop")
            assert await text(streams, run.id, after=entry.seq) == "b"

    async def test_who_leaves_is_forgotten(self, url: str) -> None:
        """C53."""
        async with open_streams(url) as streams:
            run = await streams.start(Words().all())
            live = streams._runs.live(run.id)
            assert live is not None
            body = await streams.sse(run.id)
            assert body is not None
            for follower in (streams.follow(run.id), body):
                await anext(follower)
                assert live.followers == 1
                await follower.aclose()
                assert live.followers == 0

    async def test_one_that_is_to_end_with_its_followers_does(self) -> None:
        """C41."""
        clock = ManualClock()
        async with open_streams("memory:", clock=clock, patience=Patience(linger_s=15.0)) as streams:
            run = await streams.start(Words().all(), on_disconnect="cancel")
            await clock.advance(14.0)
            assert (await streams.run(run.id)).outcome is None
            await clock.advance(2.0)
            async with asyncio.timeout(10):
                assert await streams.wait(run.id) == Stopped("disconnect")

    async def test_waiting_for_a_run_that_was_stopped_raises_nothing(self, url: str) -> None:
        """C55."""
        words = Words()
        async with open_streams(url) as streams:
            run = await streams.start(words.all())
            waiting = asyncio.create_task(streams.wait(run.id))
            words.say("a")
            await seen(streams, run.id, "a")
            answer = await streams.stop(run.id)
            assert answer.caused_by_this_call
            assert await waiting == await streams.wait(run.id) == Stopped("user")
            assert not (await streams.stop(run.id)).caused_by_this_call
            assert await text(streams, run.id) == "a"


class TestRefusals:
    async def test_a_run_that_is_not_there_or_another_owners_is_a_404(self, url: str) -> None:
        async with open_streams(url) as streams:
            mine = await streams.of("ann").start(spoken())
            await streams.of("ann").wait(mine.id)
            for run_id in (mine.id, "run_none"):
                for asking in (
                    streams.run(run_id),
                    streams.wait(run_id),
                    streams.stop(run_id),
                    streams.sse(run_id),
                    entries(streams, run_id),
                ):
                    with pytest.raises(CallerError) as raised:
                        await asking
                    assert raised.value.status == 404

    async def test_a_cursor_ahead_of_the_log_is_a_410(self, url: str) -> None:
        async with open_streams(url) as streams:
            run = await streams.start(spoken())
            await streams.wait(run.id)
            with pytest.raises(CallerError) as raised:
                await entries(streams, run.id, after=4)
            assert raised.value.status == 410

    async def test_a_log_past_its_time_is_a_410_and_its_outcome_is_still_known(self) -> None:
        clock = ManualClock()
        async with open_streams("memory:", clock=clock, patience=Patience(keep_logs_s=60.0)) as streams:
            run = await streams.start(spoken())
            await streams.wait(run.id)
            await clock.advance(3700.0)
            with pytest.raises(CallerError) as raised:
                await streams.sse(run.id)
            assert raised.value.status == 410
            assert await streams.wait(run.id) == Completed("stop")

    async def test_a_second_run_in_a_busy_session_is_a_409(self, url: str) -> None:
        """C52."""
        async with open_streams(url) as streams:
            first = await streams.start(Words().all(), said="Hello", session_id="s")
            with pytest.raises(CallerError, match=first.id) as raised:
                await streams.start(spoken(), said="And?", session_id="s")
            assert (raised.value.status, raised.value.code) == (409, "session_busy")

    async def test_a_file_that_another_has_is_refused(self, tmp_path: Path) -> None:
        url = f"sqlite:{tmp_path / 'chat.db'}"
        async with open_streams(url):
            with pytest.raises(StoreError) as raised:
                async with open_streams(url):
                    pass
            assert raised.value.trouble == "locked"


class TestSessions:
    async def test_an_agent_is_told_what_was_said_before(self, url: str) -> None:
        told: list[object] = []

        async def agent(context: Context) -> str:
            told.append((context.session_id, context.messages))
            return f"Answer {len(told)}."

        async with open_streams(url) as streams:
            for question in ("One?", "Two?"):
                run = await streams.start(agent, said=question, session_id="s")
                assert await streams.wait(run.id) == Completed("stop")
        first = (User((Text("One?"),)),)
        assert told[0] == ("s", first)
        assert told[1] == ("s", (*first, Assistant((Text("Answer 1."),)), User((Text("Two?"),))))

    async def test_without_a_session_it_is_told_what_came_with_the_run(self, url: str) -> None:
        messages = (System((Text("Be short."),)), User((Text("Why?"),)))
        told: list[object] = []

        async def agent(context: Context) -> str:
            told.append((context.session_id, context.messages))
            return "So."

        async with open_streams(url) as streams:
            run = await streams.start(agent, said=messages)
            assert await streams.wait(run.id) == Completed("stop")
        assert told == [(None, messages)]

    async def test_what_it_said_before_it_was_stopped_is_part_of_the_session(self, url: str) -> None:
        """C43, C45."""
        words = Words()
        async with open_streams(url) as streams:
            run = await streams.start(words.all(), said="Count.", session_id="s")
            words.say("One ", "two ")
            await seen(streams, run.id, "two ")
            await streams.stop(run.id)
            export = await streams.sessions.export(streams.owner, "s", "md")
            assert b"One two" in getattr(export, "body", b"")
            assert b"Stopped by you." in getattr(export, "body", b"")


class TestServerSentEvents:
    async def test_the_frames_are_the_logs_own(self, url: str) -> None:
        async with open_streams(url) as streams:
            run = await streams.start(spoken())
            await streams.wait(run.id)
            body = await streams.sse(run.id, after=0)
            assert body is not None
            frames = sse.Decoder().feed(b"".join([piece async for piece in body]))
            log = await entries(streams, run.id, after=0)
            assert [(frame.id, frame.event) for frame in frames] == [
                ("1", "run.text"),
                ("2", "run.text"),
                ("3", "run.completed"),
            ]
            assert [decode_entry(frame.data).event for frame in frames] == [entry.event for entry in log]

    async def test_at_the_end_there_is_nothing_to_send(self, url: str) -> None:
        """204: an EventSource stops asking."""
        async with open_streams(url) as streams:
            run = await streams.start(spoken())
            await streams.wait(run.id)
            assert await streams.sse(run.id, after=3) is None

    async def test_silence_has_a_heartbeat(self, url: str) -> None:
        words = Words()
        async with open_streams(url) as streams:
            run = await streams.start(words.all())
            body = await streams.sse(run.id, heartbeat_s=0.01)
            assert body is not None
            async with asyncio.timeout(10):
                pieces = [await anext(body)]
                while not pieces[-1].startswith(b":"):
                    pieces.append(await anext(body))
            words.say("a", None)
            rest = [piece async for piece in body]
            frames = sse.Decoder().feed(b"".join(pieces + rest))
            assert [frame.id for frame in frames] == ["0", "1", "2"]


class TestComingBack:
    async def test_what_is_left_of_a_shutdown_can_be_followed_later(self, tmp_path: Path) -> None:
        """C51."""
        url, words = f"sqlite:{tmp_path / 'chat.db'}", Words()
        async with open_streams(url) as streams:
            run = await streams.start(words.all())
            words.say("a", "b")
            entry = await seen(streams, run.id, "b")
        async with open_streams(url) as streams:
            assert await streams.wait(run.id) == Interrupted("shutdown")
            assert await text(streams, run.id) == "ab"
            [last] = await entries(streams, run.id, after=entry.seq)
            assert last.event == RunEnded(Interrupted("shutdown"))

    async def test_what_runs_may_finish_before_the_end(self) -> None:
        words = Words()
        async with open_streams("memory:", drain_s=10.0) as streams:
            run = await streams.start(words.all())
            waiting = asyncio.create_task(streams.wait(run.id))
            asyncio.get_running_loop().call_later(0.02, words.say, "a", None)
        assert await waiting == Completed("stop")

    async def test_a_run_that_a_server_had_queued_is_refused_in_words(self, url: str) -> None:
        words = Words()
        async with open_streams(url) as streams:
            await streams.start(words.all(), said="One?", session_id="s")
            queued = Run(id="run_queued", owner=streams.owner, model="gpt", created_at=1.0, session_id="s")
            result = await streams._runs.start(Start(run=queued, messages=(said_message("Two?"),), multitask="queue"))
            assert isinstance(result, Queued)
            words.say("a", None)
            async with asyncio.timeout(10):
                outcome = await streams.wait("run_queued")
            assert isinstance(outcome, Failed)
            assert "nobody here to answer for gpt" in outcome.message
