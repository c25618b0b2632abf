"""How runs end, what comes next, and what stays of them (C46-C53)."""

import asyncio
import contextlib
import gc
import io
import logging
import weakref
from typing import Any

import pytest

from headwater.errors import CallerError, StoreError
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    Failed,
    Incomplete,
    RunEnded,
    RunStarted,
    Stopped,
    TextDelta,
)
from headwater.lifecycle import RunState
from headwater.records import Run
from headwater.runs.follow import GoneError
from headwater.runs.habits import MakeSource
from headwater.runs.recover import resumed
from headwater.source import Ended, Sink, Source, Suspended, emit
from headwater.store.results import Busy, Queued, Start, Started
from tests.runs.puppets import OWNER, MakeStore, Puppet, new_id, stage

pytestmark = pytest.mark.anyio


def make(source: Source) -> MakeSource:
    async def made(_: Run) -> Source:
        return source

    return made


class TestEnds:
    @pytest.mark.parametrize("outcome", [Incomplete("length"), Failed("upstream_error", "On fire.")])
    async def test_the_sources_outcome_stands(self, make_store: MakeStore, outcome: Incomplete | Failed) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("x")
            puppet.end(outcome)
            assert await staged.outcome(run_id) == outcome
            run = await staged.store.run(OWNER, run_id)
            assert run is not None
            assert (run.answered_by, run.outcome) == ("up/m", outcome)
            assert run.first_token_at is not None

    async def test_a_source_that_raises_has_failed(
        self, make_store: MakeStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C70: the traceback is in the server's log, and not in the client's message."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            with caplog.at_level(logging.ERROR):
                puppet.fail(ValueError("secret detail"))
                outcome = await staged.outcome(run_id)
            assert isinstance(outcome, Failed)
            assert outcome.reason == "agent_error"
            assert "secret" not in outcome.message
            assert "secret detail" in caplog.text

    async def test_a_source_that_cannot_be_made_is_a_refusal(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            staged.refuses = CallerError("No such model.", status=404)
            result = await staged.ask()
            assert isinstance(result, Started)
            assert await staged.outcome(result.run.id) == Failed("refused", "No such model.", 404)

    @pytest.mark.parametrize(
        ("what", "then"),
        [
            ("it is stopped", "waits"),
            ("it is stopped", "returns"),
            ("it is stopped", "raises"),
            ("it cancels itself", "waits"),
            ("it cancels itself", "returns"),
            ("it cancels itself", "raises"),
            ("it waits for something cancelled", "waits"),
        ],
    )
    async def test_a_cancel_within_its_own_step_leaves_an_ending_that_is_kept(
        self, make_store: MakeStore, what: str, then: str
    ) -> None:
        """Also a source that hears nothing of it before it is over (C47)."""

        class Cancelled(Puppet):
            async def run(self, sink: Sink) -> Ended | Suspended:
                emit(sink, AttemptStarted("up", "m"), TextDelta("half"))
                task, live = asyncio.current_task(), staged.runs.live(run_id)
                assert task is not None
                assert live is not None
                other: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                acts = {"it is stopped": lambda: live.stop(Stopped("user")), "it cancels itself": task.cancel}
                assert acts.get(what, other.cancel)()
                if then == "waits":
                    await other
                if then == "raises":
                    raise ValueError("on the way out")
                return Ended(Completed("stop"))

        async with stage(make_store) as staged:
            run_id = new_id("run")
            await staged.runs.start(
                Start(run=Run(id=run_id, owner=OWNER, model="m", created_at=0.0)), make(Cancelled())
            )
            outcome = await staged.outcome(run_id)
            if what == "it is stopped":
                assert outcome == Stopped("user")
            else:
                assert isinstance(outcome, Failed)
            assert await staged.words(run_id) == ["half"]
            run = await staged.store.run(OWNER, run_id)
            assert run is not None
            assert run.outcome == outcome

    async def test_a_stop_is_one_also_after_a_group_of_tasks_that_failed(self, make_store: MakeStore) -> None:
        """In Python 3.11 and 3.12 such a group leaves its task with a cancel that nobody takes back."""

        class Grouped(Puppet):
            async def run(self, sink: Sink) -> Ended | Suspended:
                with contextlib.suppress(ExceptionGroup):
                    async with asyncio.TaskGroup() as group:
                        group.create_task(fail_soon())
                return await super().run(sink)

        async def fail_soon() -> None:
            await asyncio.sleep(0)
            raise ValueError

        async with stage(make_store) as staged:
            staged.next_puppet = Grouped
            run_id, puppet = await staged.begin()
            await puppet.begun.wait()
            answer = await staged.runs.stop(OWNER, run_id)
            assert answer is not None
            assert (answer.run.outcome, answer.caused_by_this_call) == (Stopped("user"), True)

    async def test_nothing_stays_in_memory(self, make_store: MakeStore) -> None:
        """C53."""
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            live = weakref.ref(staged.runs.live(run_id))
            task = asyncio.create_task(staged.words(run_id))
            puppet.say("x")
            puppet.end()
            await task
            await staged.outcome(run_id)
            staged.puppets.clear()
            del puppet, task
            await asyncio.sleep(0.01)
            gc.collect()
            assert staged.runs.live(run_id) is None
            assert live() is None


class TestQueues:
    """C52."""

    async def test_a_second_message_is_rejected(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, _ = await staged.begin(session_id="s")
            result = await staged.ask("More", "s")
            assert isinstance(result, Busy)
            assert result.active.id == run_id

    async def test_or_queued_and_begun_in_order(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            _, puppet = await staged.begin("1", "s")
            queued = [await staged.ask(text, "s", multitask="queue") for text in "23"]
            for result in queued:
                assert isinstance(result, Queued)
                assert result.run.id not in staged.puppets
                puppet.say("ok")
                puppet.end()
                puppet = await staged.puppet(result.run.id)
            puppet.say("ok")
            puppet.end()
            await staged.outcome(queued[-1].run.id)  # type: ignore[union-attr]
            texts = [text for kind, text, _ in await staged.transcript("s") if kind == "user"]
            assert texts == ["1", "2", "3"]

    async def test_or_takes_the_others_place(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            first, puppet = await staged.begin("1", "s")
            puppet.say("half")
            result = await staged.ask("2", "s", multitask="interrupt")
            assert isinstance(result, Queued)
            assert await staged.outcome(first) == Stopped("replaced")
            second = await staged.puppet(result.run.id)
            second.say("whole")
            second.end()
            assert await staged.outcome(result.run.id) == Completed("stop")

    async def test_of_several_that_interrupt_at_once_the_last_one_answers(self, make_store: MakeStore) -> None:
        async with stage(make_store, unwind_s=60) as staged:
            staged.next_puppet = lambda: Puppet(ignores_stops=True)
            first, puppet = await staged.begin("1", "s")
            waiting = await staged.ask("2", "s", multitask="queue")
            results = await asyncio.gather(*(staged.ask(text, "s", multitask="interrupt") for text in "345"))
            asked = [result.run.id for result in results if isinstance(result, Queued)]
            for run_id in asked[:2]:
                assert await staged.outcome(run_id) == Stopped("replaced")
                assert run_id not in staged.puppets
            puppet.end()
            assert await staged.outcome(first) == Stopped("replaced")
            for run_id in (asked[2], waiting.run.id):  # type: ignore[union-attr]
                puppet = await staged.puppet(run_id)
                puppet.end()
                assert await staged.outcome(run_id) == Completed("stop")
            shown = [(kind, text) for kind, text, _ in await staged.transcript("s") if kind != "assistant"]
            assert shown == [("user", "1"), ("notice", "stopped"), ("user", "5"), ("user", "2")]

    async def test_a_failure_pauses_the_queue(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            first, puppet = await staged.begin("1", "s")
            queued = await staged.ask("2", "s", multitask="queue")
            assert isinstance(queued, Queued)
            puppet.end(Failed("upstream_error", "x"))
            await staged.outcome(first)
            await asyncio.sleep(0.02)
            assert queued.run.id not in staged.puppets
            session = await staged.store.session(OWNER, "s")
            assert session is not None
            assert session.queue_paused


class TestUnrecorded:
    async def test_it_is_shown_at_once_and_written_behind(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=0.0, recorded=False, on_disconnect="cancel")
            puppet = Puppet()

            live = staged.runs.start_unrecorded(run, make(puppet))
            await puppet.begun.wait()
            follower = staged.runs.follower(OWNER, run.id)
            puppet.say("now")
            entries = follower.take_nowait()
            assert entries is not None
            assert entries[-1].event == TextDelta("now")
            assert live.log.after(-1) is None
            with pytest.raises(StoreError):
                staged.runs.follower(OWNER, run.id).take_nowait()
            live.pause()
            assert puppet.paused
            live.resume()
            assert not puppet.paused
            puppet.end()
            [last] = await follower.next()
            assert last.event == RunEnded(Completed("stop"))
            assert await follower.next() == ()
            follower.leave()
            await asyncio.sleep(0.2)
            assert await staged.store.run(OWNER, run.id) == live.run

    async def test_poured_events_come_at_once_and_so_does_the_end(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=0.0, recorded=False, on_disconnect="cancel")
            puppet = Puppet()

            live = staged.runs.start_unrecorded(run, make(puppet))
            await puppet.begun.wait()
            puppet.say("before")
            poured: list[Event] = []
            live.pour(poured.extend)
            assert live.followers == 1
            started, _, *rest = poured
            assert isinstance(started, RunStarted)
            assert rest == [TextDelta("before")]
            puppet.say("now")
            assert poured[3:] == [TextDelta("now")]
            follower = staged.runs.follower(OWNER, run.id)
            with pytest.raises(GoneError):
                follower.take_nowait()
            follower.leave()
            broken: list[Any] = []
            loop = asyncio.get_running_loop()
            handler = loop.get_exception_handler()
            loop.set_exception_handler(lambda _, context: broken.append(context["exception"]))
            live.pour(lambda events: list[Event]().remove(events[0]))
            puppet.say("lost on the way")
            loop.set_exception_handler(handler)
            assert [type(error) for error in broken] == [ValueError]
            live.pour(poured.extend)
            puppet.end()
            await live.over
            assert poured[3:] == [TextDelta("now"), RunEnded(Completed("stop"))]
            live.pour(None)
            assert live.followers == 0
            assert live.run.last_seq == live.log.last_seq == 5
            await asyncio.sleep(0.2)
            assert await staged.store.run(OWNER, run.id) == live.run

    @pytest.mark.parametrize("listens", [True, False])
    async def test_one_whose_end_can_not_be_made_is_told_so(
        self, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch, listens: bool
    ) -> None:
        """Whoever it is for, and whether they hear of it at once or later."""
        async with stage(make_store) as staged:
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=0.0, recorded=False)
            puppet, poured = Puppet(), list[Event]()
            live = staged.runs.start_unrecorded(run, make(puppet))
            await puppet.begun.wait()
            if listens:
                live.pour(poured.extend)
            monkeypatch.setattr(staged.store, "note", list[Run]().remove)
            puppet.end()
            await live.over
            if not listens:
                live.pour(poured.extend)
            [end] = [event for event in poured if isinstance(event, RunEnded)]
            assert isinstance(end.outcome, Failed)
            assert "could not be kept" in end.outcome.message
            assert live.run.outcome == end.outcome

    async def test_a_pause_before_the_source_is_there_holds(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=0.0, recorded=False)
            puppet = Puppet()

            live = staged.runs.start_unrecorded(run, make(puppet))
            live.pause()
            await puppet.begun.wait()
            assert puppet.paused
            live.resume()
            puppet.end()
            await live.over


class TestSuspension:
    async def test_a_run_that_waits_is_no_workers_and_goes_on_from_its_log(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("before ")
            following = asyncio.create_task(staged.words(run_id))
            puppet.suspend()
            await staged.settled(lambda: staged.runs.live(run_id) is None)
            run = await staged.store.run(OWNER, run_id)
            assert run is not None
            assert run.state is RunState.WAITING
            del staged.puppets[run_id]
            started = await staged.store.claim(run_id)
            assert started is not None
            staged.runs._take_up(await resumed(staged.runs._habits, started.run))
            again = await staged.puppet(run_id)
            again.say("after")
            again.end()
            assert await staged.outcome(run_id) == Completed("stop")
            assert await following == ["before ", "after"]

    async def test_one_that_waits_can_be_stopped(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin(session_id="s")
            puppet.say("half")
            puppet.suspend()
            await staged.settled(lambda: staged.runs.live(run_id) is None)
            answer = await staged.runs.stop(OWNER, run_id)
            assert answer is not None
            assert answer.run.outcome == Stopped("user")
            assert (answer.caused_by_this_call, answer.upstream_closed) == (True, True)
            assert await staged.transcript("s") == [
                ("user", "Hello", "complete"),
                ("assistant", "half", "partial"),
                ("notice", "stopped", ""),
            ]

    async def test_a_stop_in_the_moment_of_suspension_is_a_stop(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            puppet.suspend()
            live = staged.runs.live(run_id)
            assert live is not None
            await asyncio.sleep(0)
            live.stop(Stopped("user"))
            assert await staged.outcome(run_id) == Stopped("user")


class TestWhateverGoesWrong:
    """The outermost frame of a run: it has an ending, and leaves nothing behind here."""

    async def test_a_run_whose_beginning_cannot_be_written_leaves_no_run_behind(
        self, make_store: MakeStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with stage(make_store) as staged:
            no_time_at_all = 1e18
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=no_time_at_all, recorded=False)
            puppet = Puppet()
            with caplog.at_level(logging.ERROR):
                live = staged.runs.start_unrecorded(run, make(puppet))
                await staged.settled(lambda: staged.runs.live(run.id) is None)
            assert isinstance(live.run.outcome, Failed)
            assert not puppet.begun.is_set()
            assert run.id in caplog.text

    async def test_a_source_that_returns_no_ending_leaves_no_run_behind(
        self, make_store: MakeStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with stage(make_store) as staged:
            run = Run(id=new_id("run"), owner=OWNER, model="m", created_at=0.0, recorded=False)
            puppet = Puppet()
            with caplog.at_level(logging.ERROR):
                live = staged.runs.start_unrecorded(run, make(puppet))
                await puppet.begun.wait()
                puppet._end.set_result(None)  # type: ignore[arg-type]
                await staged.settled(lambda: staged.runs.live(run.id) is None)
            assert isinstance(live.run.outcome, Failed)
            assert run.id in caplog.text

    async def test_an_end_that_no_store_takes_holds_up_no_shutdown(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, puppet = await staged.begin()
            live = staged.runs.live(run_id)
            assert live is not None
            await staged.settled(lambda: live.log.shown_seq == live.log.last_seq)
            # From the ending on, and for longer than anybody waits.
            release = asyncio.Event()
            keeping = live._store

            class Slow:
                def __getattr__(self, name: str) -> Any:
                    return getattr(keeping, name)

                async def end(self, _: object) -> None:
                    await release.wait()

            live._store = Slow()  # type: ignore[assignment]
            puppet.end()
            await asyncio.sleep(0.01)
            assert not live.over.done()
            live.abandon()
            assert (await asyncio.wait({live.over}, timeout=10))[0]
            await staged.settled(lambda: staged.runs.live(run_id) is None)
            run = await staged.store.run(OWNER, run_id)
            assert run is not None
            assert run.outcome is None

    async def test_a_stop_stands_whatever_its_source_raises(self, make_store: MakeStore) -> None:
        """Also what no log can write down: its `repr` is too deep."""
        deep: list[Any] = []
        for _ in range(5000):
            deep = [deep]

        class Hostile(Puppet):
            async def run(self, sink: Sink) -> Ended | Suspended:
                try:
                    return await super().run(sink)
                except asyncio.CancelledError:
                    raise ValueError(deep) from None

        async with stage(make_store) as staged:
            staged.next_puppet = Hostile
            reported: list[Any] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
            root = logging.getLogger("headwater.runs")
            writing = logging.StreamHandler(io.StringIO())
            root.addHandler(writing)
            try:
                run_id, puppet = await staged.begin(session_id="s")
                puppet.say("half an answer")
                await staged.runs.stop(OWNER, run_id)
                assert await staged.outcome(run_id) == Stopped("user")
            finally:
                root.removeHandler(writing)
                asyncio.get_running_loop().set_exception_handler(None)
            assert await staged.words(run_id) == ["half an answer"]
            assert [type(error) for error in reported] == [RecursionError]

    async def test_one_that_is_abandoned_as_its_source_ends_keeps_nothing(self, make_store: MakeStore) -> None:
        async with stage(make_store) as staged:
            run_id, _ = await staged.begin()
            live = staged.runs.live(run_id)
            assert live is not None
            assert live._work is not None
            # Told before the run is, which then hears of it too late.
            live._work.remove_done_callback(live._on_done)
            live._work.add_done_callback(lambda _: live.abandon())
            live._work.add_done_callback(live._on_done)
            live.stop(Stopped("user"))
            await staged.settled(live.over.done)
            for _ in range(5):
                await asyncio.sleep(0)
            run = await staged.store.run(OWNER, run_id)
            assert run is not None
            assert run.outcome is None

    async def test_a_process_that_is_torn_down_decides_no_ending(self, make_store: MakeStore) -> None:
        """C51: `asyncio.run` cancels all tasks there are; whoever starts next finds a crash."""
        async with stage(make_store) as staged:
            run_id, _ = await staged.begin()
            live = staged.runs.live(run_id)
            assert live is not None
            assert live._work is not None
            for task in [*staged.runs._tasks, live._work]:
                task.cancel()
            await staged.settled(live.over.done)
            run = await staged.store.run(OWNER, run_id)
            assert run is not None
            assert run.outcome is None
