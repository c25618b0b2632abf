"""Whoever looks on is told of each run once, when its end is kept, and of nothing else."""

import asyncio

import pytest
from msgspec.structs import replace

from headwater.clock import SystemClock
from headwater.events import Completed, Interrupted, Outcome, Stopped
from headwater.records import Run
from headwater.runs.habits import Habits
from headwater.runs.observing import CURRENT, All, Later
from headwater.runs.service import Runs
from headwater.store.results import Queued, Start, Started
from tests.runs.puppets import OWNER, MakeStore, Puppet, Stage, new_id, stage

pytestmark = pytest.mark.anyio


class Noting:
    """An `Observer`."""

    def __init__(self) -> None:
        self.ended_so: list[tuple[Outcome | None, bool]] = []
        self.found: list[str] = []

    def ended(self, run: Run, stopped_in_s: float | None) -> None:
        self.ended_so.append((run.outcome, stopped_in_s is not None))

    def recovered(self, run: Run) -> None:
        assert run.outcome == Interrupted("crash")
        self.found.append(run.id)


def observed(staged: Stage) -> tuple[Noting, Noting]:
    """Two, who are told the same."""
    both = Noting(), Noting()
    habits = Habits(store=staged.store, clock=SystemClock(), make_id=new_id, observer=All(*both))
    staged.runs = Runs(habits, staged._source)
    return both


async def test_each_ending_is_told_once(make_store: MakeStore) -> None:
    async with stage(make_store) as staged:
        first, second = observed(staged)
        run_id, puppet = await staged.begin(session_id="s")
        waits = await staged.ask(session_id="s", multitask="queue")
        assert isinstance(waits, Queued)
        # One that never began has an outcome, and took no time to stop.
        await staged.runs.stop(OWNER, waits.run.id)
        puppet.end()
        await staged.outcome(run_id)
        run_id, _ = await staged.begin()
        await staged.runs.stop(OWNER, run_id)
        run_id, puppet = await staged.begin()
        puppet.suspend()
        await staged.settled(lambda: staged.runs.live(run_id) is None)
        told = [(Stopped("user"), False), (Completed("stop"), False), (Stopped("user"), True)]
        assert (first.ended_so, second.ended_so) == (told, told)
        assert first.found == []
        assert staged.runs.running() == 0


async def test_who_may_be_told_later_is_told_of_all_in_their_order() -> None:
    noting = Noting()
    told_at: list[int] = []
    later = Later(noting, after_s=0.001, then=lambda: told_at.append(len(noting.ended_so)))
    runs = [Run(id=f"run_{n}", owner=OWNER, model="m", created_at=1.0, outcome=Completed()) for n in range(3)]
    later.ended(runs[0], None)
    later.ended(runs[1], 0.5)
    assert noting.ended_so == []
    later.tell()
    assert noting.ended_so == [(Completed(), False), (Completed(), True)]
    later.tell()
    later.ended(runs[2], None)
    while len(noting.ended_so) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    later.recovered(replace(runs[0], outcome=Interrupted("crash")))
    assert (len(noting.ended_so), noting.found) == (3, ["run_0"])
    # After each telling, once.
    assert told_at == [2, 2, 3]


async def test_one_that_breaks_on_a_run_is_told_of_the_others() -> None:
    told: list[str] = []
    broken: list[object] = []

    class Breaking(Noting):
        def ended(self, run: Run, stopped_in_s: float | None) -> None:
            told.append(run.id)
            assert run.id != "run_0"

    asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context["exception"]))
    other = Noting()
    later = Later(Breaking(), other)
    for n in range(2):
        later.ended(Run(id=f"run_{n}", owner=OWNER, model="m", created_at=1.0, outcome=Completed()), None)
    later.tell()
    assert told == ["run_0", "run_1"]
    assert len(other.ended_so) == 2
    assert len(broken) == 1


async def test_what_a_dead_worker_left_is_told_by_who_finds_it(make_store: MakeStore) -> None:
    async with stage(make_store) as staged:
        dead = await staged.store.start(Start(run=Run(id=new_id("run"), owner=OWNER, model="m", created_at=1.0)))
        assert isinstance(dead, Started)
        first, _ = observed(staged)
        # By the store's account it runs here, and nobody has it: looked at twice, it is ended.
        await staged.runs._look()
        await staged.runs._look()
        assert first.found == [dead.run.id]
        assert first.ended_so == []


async def test_what_a_source_does_is_known_to_be_its_runs(make_store: MakeStore) -> None:
    seen: list[Run | None] = []

    class Looking(Puppet):
        async def run(self, sink: object) -> object:  # type: ignore[override]
            seen.append(CURRENT.get())
            return await super().run(sink)  # type: ignore[arg-type]

    async with stage(make_store) as staged:
        staged.next_puppet = Looking
        run_id, puppet = await staged.begin()
        puppet.end()
        await staged.outcome(run_id)
    assert [run and run.id for run in seen] == [run_id]
    assert CURRENT.get() is None
