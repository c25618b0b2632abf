"""Runs with followers, on workers that take each other's place: any sequence of what can happen, against a few facts.

What was shown stays, at its place. A log has one ending, at its end, and it is one that somebody caused. What a run
said is in its session once. Whoever follows, at any worker, has all that is kept (C40–C53).
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headwater.conversation import Assistant
from headwater.errors import StoreError
from headwater.events import Completed, Entry, Interrupted, Outcome, RunEnded, Stopped, TextDelta, decode_entry
from headwater.runs.live import LiveRun
from headwater.runs.unfollowed import Patience
from headwater.store.base import Store
from headwater.store.results import Busy, Queued, Started
from headwater.testing.store_suite.making import Backend
from tests.runs.puppets import OWNER, Puppet, Stage

T = TypeVar("T")


@dataclass
class Fact:
    """What is known of a run."""

    session_id: str | None
    said: list[str] = field(default_factory=list)
    shown: dict[int, Entry] = field(default_factory=dict)
    finished: bool = False
    stopped: bool = False
    lost: bool = False
    """Its worker was declared dead while it ran."""
    ended: bool = False
    """As was last seen."""


@dataclass
class Reader:
    run_id: str
    at: int
    """Of which worker."""
    entries: list[Entry]
    task: "asyncio.Task[None]"
    first_seq: int


class RunsMachine(RuleBasedStateMachine):
    """A subclass says what `backend` is. Nothing happens by itself: its clock stands still."""

    shared = True
    """Several workers may live at once, and each hears of what the others do."""
    news_s = 0.0
    """For so long news may be under way; else they are there after a few turns of the event loop."""

    def make_backend(self) -> Backend:
        raise NotImplementedError  # pragma: no cover - a subclass has it

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self.backend = self._runner.run(self._make())
        self.stages: list[Stage] = []
        self.fenced: set[int] = set()
        self.facts: dict[str, Fact] = {}
        self.readers: list[Reader] = []
        for _ in range(2 if self.shared else 1):
            self.do(self._join())

    async def _make(self) -> Backend:
        return self.make_backend()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    async def _join(self) -> None:
        store = await self.backend.worker()
        if not self.shared:
            # Who opens the file has it alone.
            self._note_fenced(range(len(self.stages)))
        # Not opened: that would end at once what the dead have left, and nobody could be found in between.
        self.stages.append(Stage(store, self.backend.clock, Patience(), 5.0))

    def _note_fenced(self, numbers: Iterable[int]) -> None:
        for n in numbers:
            self.fenced.add(n)
            for run_id, fact in self.facts.items():
                fact.lost = fact.lost or self.stages[n].runs.live(run_id) is not None

    # ------------------------------------------------------------------ finding

    def living(self, n: int) -> Stage:
        alive = [at for at in range(len(self.stages)) if at not in self.fenced]
        return self.stages[alive[n % len(alive)]]

    def puppets(self) -> list[tuple[str, Puppet]]:
        """Of all runs that somebody believes to have, also those who are wrong."""
        return [
            (run_id, puppet)
            for stage in self.stages
            for run_id, puppet in stage.puppets.items()
            if stage.runs.live(run_id) is not None and puppet.begun.is_set() and not puppet.over
        ]

    def some_run(self, n: int) -> str:
        """Mostly one that has not ended."""
        likely = [run_id for run_id, fact in self.facts.items() if not fact.ended or n % 5 == 0]
        found = likely or list(self.facts)
        return found[n % len(found)]

    def abandoned(self) -> bool:
        return any(fact.lost and not fact.ended for fact in self.facts.values())

    def unaware(self) -> list[Stage]:
        """Of those that were declared dead."""
        return [self.stages[n] for n in sorted(self.fenced) if not self.stages[n].runs.fenced.is_set()]

    # -------------------------------------------------------------------- rules

    @precondition(lambda self: len(self.puppets()) < 5)
    @rule(n=st.integers(0, 9), session_id=st.sampled_from(["s0", "s0", "s1", None]), queues=st.booleans())
    def start(self, n: int, session_id: str | None, queues: bool) -> None:
        asked = self.living(n).ask("Go on", session_id, multitask="queue" if queues else "reject")
        result = self.do(asked)
        if not isinstance(result, Busy):
            assert isinstance(result, Started | Queued)
            self.facts[result.run.id] = Fact(session_id)

    @precondition(lambda self: self.puppets())
    @rule(words=st.integers(1, 4))
    def all_say(self, words: int) -> None:
        for n in range(len(self.puppets())):
            self.say(n, words)

    @precondition(lambda self: self.puppets())
    @rule(n=st.integers(0, 50), words=st.integers(1, 4))
    def say(self, n: int, words: int) -> None:
        run_id, puppet = self.puppets()[n % len(self.puppets())]
        fact = self.facts[run_id]
        new = [f"w{len(fact.said) + k} " for k in range(words)]
        if not fact.lost:
            fact.said += new
        self.do(self._in_loop(lambda: puppet.say(*new)))

    @precondition(lambda self: self.puppets())
    @rule(n=st.integers(0, 50))
    def finish(self, n: int) -> None:
        run_id, puppet = self.puppets()[n % len(self.puppets())]
        fact = self.facts[run_id]
        fact.finished = fact.finished or not fact.lost
        self.do(self._in_loop(puppet.end))

    @precondition(lambda self: self.puppets())
    @rule(n=st.integers(0, 50), at=st.integers(0, 9))
    def finish_and_stop(self, n: int, at: int) -> None:
        """At the same moment: one of them wins (C47)."""
        run_id, puppet = self.puppets()[n % len(self.puppets())]
        fact = self.facts[run_id]
        fact.finished = fact.stopped = True

        async def both() -> None:
            stopping = asyncio.create_task(self.living(at).runs.stop(OWNER, run_id, wait_s=10))
            await asyncio.sleep(0)
            puppet.end()
            assert await stopping is not None

        if not fact.lost:
            self.do(both())

    @precondition(lambda self: self.facts)
    @rule(n=st.integers(0, 50), at=st.integers(0, 9))
    def stop(self, n: int, at: int) -> None:
        run_id = self.some_run(n)
        before = self.do(self.living(at).store.run(OWNER, run_id))
        assert before is not None
        fact = self.facts[run_id]
        abandoned = fact.lost and before.outcome is None
        # Nobody is there to obey; whoever looks ends it.
        answer = self.do(self.living(at).runs.stop(OWNER, run_id, wait_s=0 if abandoned else 10))
        assert answer is not None
        assert (answer.run.outcome is None) is abandoned
        assert before.outcome in (None, answer.run.outcome)
        fact.stopped |= before.outcome is None

    @precondition(lambda self: self.facts)
    @rule(n=st.integers(0, 50), at=st.integers(0, 7), after=st.integers(-1, 3))
    def follow(self, n: int, at: int, after: int) -> None:
        """From any worker, also one that was declared dead, and from any cursor. Mostly where the run is."""
        run_id = self.some_run(n)
        there = [k for k, stage in enumerate(self.stages) if stage.runs.live(run_id) is not None]
        at = there[0] if there and at > 3 else at % len(self.stages)
        found = self.do(self.stages[at].store.read(OWNER, run_id, after))
        after = min(after, found.last_seq) if found is not None else -1
        entries: list[Entry] = []

        async def begin() -> "asyncio.Task[None]":
            return asyncio.create_task(self._read(at, run_id, after, entries))

        self.readers.append(Reader(run_id, at, entries, self.do(begin()), after + 1))

    async def _read(self, at: int, run_id: str, after: int, entries: list[Entry]) -> None:
        follower = self.stages[at].runs.follower(OWNER, run_id, after)
        try:
            while came := await follower.next():
                for entry in came:
                    assert self.facts[run_id].shown.setdefault(entry.seq, entry) == entry
                entries += came
        finally:
            follower.leave()

    @precondition(lambda self: self.readers)
    @rule(n=st.integers(0, 50))
    def lose_follower(self, n: int) -> None:
        reader = self.readers.pop(n % len(self.readers))

        async def lose() -> None:
            reader.task.cancel()
            await asyncio.wait([reader.task])

        self.do(lose())

    @precondition(lambda self: len(self.stages) < 4)
    @rule()
    def join(self) -> None:
        self.do(self._join())

    @precondition(lambda self: self.shared and len(self.stages) - len(self.fenced) > 1)
    @rule(n=st.integers(0, 9), at=st.integers(0, 9))
    def declare_dead(self, n: int, at: int) -> None:
        """By another one that lives; the dead one does not know it, and goes on. Its runs are still to be ended."""
        alive = [k for k in range(len(self.stages)) if k not in self.fenced]
        # Mostly the one that has most to lose.
        victim = max(alive, key=lambda k: self.stages[k].runs.running()) if n % 5 else alive[n % len(alive)]
        self._note_fenced([victim])
        by = self.living(at)
        assert self.do(by.store.fence_dead({self.stages[victim].store.worker_id}))

    @precondition(lambda self: self.abandoned())
    @rule(at=st.integers(0, 9))
    def look(self, at: int) -> None:
        """As each does once a second: what the dead have left is ended, once, whoever looks (C51)."""
        stage = self.living(at)
        self.do(stage.runs._look())
        for run_id, fact in self.facts.items():
            run = self.do(stage.store.run(OWNER, run_id))
            assert run is not None
            assert not fact.lost or run.outcome is not None, run

    @precondition(lambda self: self.unaware())
    @rule(n=st.integers(0, 9))
    def notice(self, n: int) -> None:
        """One that was declared dead finds out."""
        stage = self.unaware()[n % len(self.unaware())]
        self.do(stage.runs._safely(stage.runs._look))
        assert stage.runs.fenced.is_set()

    # --------------------------------------------------------------- invariants

    async def _in_loop(self, work: Callable[[], None]) -> None:
        work()

    @invariant()
    def all_is_well(self) -> None:
        self.do(self._settle())
        self.do(self._check(self.living(0).store))

    async def _settle(self) -> None:
        """Until all that was said is kept or refused, and all that is to end or to begin has."""
        async with asyncio.timeout(20):
            while not all(self._rests(stage) for stage in self.stages):  # noqa: ASYNC110 -- of many kinds
                await asyncio.sleep(0.0005)

    def _rests(self, stage: Stage) -> bool:
        lives = [(stage.runs.live(run_id), stage.puppets.get(run_id)) for run_id in self.facts]
        return not stage.runs._spawned and all(live is None or _goes_on(live, puppet) for live, puppet in lives)

    async def _caught_up(self, reader: Reader, entries: int) -> None:
        loop, turns = asyncio.get_running_loop(), 0
        until_s = loop.time() + self.news_s
        while len(reader.entries) < entries and not reader.task.done() and (turns < 100 or loop.time() < until_s):
            await asyncio.sleep(0 if turns < 100 else 0.001)
            turns += 1

    async def _check(self, store: Store) -> None:
        found = await asyncio.gather(*(self._check_run(store, *known) for known in self.facts.items()))
        logs = dict(zip(self.facts, found, strict=True))
        for reader in self.readers:
            expected = logs[reader.run_id][reader.first_seq :]
            if reader.at in self.fenced and not self.shared:
                # It has lost its file, and hears nothing of what another does with it.
                expected = expected[: len(reader.entries)]
            await self._caught_up(reader, len(expected))
            assert not reader.task.done() or reader.task.exception() is None, reader
            assert reader.entries == expected, (reader, reader.at in self.fenced)
        await asyncio.gather(*(self._check_session(store, session_id, logs) for session_id in ("s0", "s1")))

    async def _check_run(self, store: Store, run_id: str, fact: Fact) -> list[Entry]:
        found = await store.read(OWNER, run_id)
        assert found is not None
        log = [decode_entry(line) for batch in found.batches for line in batch.entries]
        assert [entry.seq for entry in log] == list(range(len(log)))
        assert all(log[seq] == entry for seq, entry in fact.shown.items())
        words = [entry.event.text for entry in log if isinstance(entry.event, TextDelta)]
        assert words == fact.said[: len(words)]
        outcome = found.run.outcome
        endings = [entry.event.outcome for entry in log if isinstance(entry.event, RunEnded)]
        assert endings == ([] if outcome is None else [outcome])
        assert outcome is None or isinstance(log[-1].event, RunEnded)
        fact.ended = outcome is not None
        if outcome is not None:
            assert _caused(outcome, fact), (outcome, fact)
        if outcome == Completed("stop"):
            assert words == fact.said
        return log

    async def _check_session(self, store: Store, session_id: str, logs: dict[str, list[Entry]]) -> None:
        transcript = await store.transcript(OWNER, session_id)
        if transcript is None:
            return
        saved = [
            (message.run_id, message.message.text)
            for message in transcript.messages
            if isinstance(message.message, Assistant)
        ]
        ended: list[tuple[str | None, str]] = []
        for run_id, fact in self.facts.items():
            log = logs[run_id]
            words = "".join(entry.event.text for entry in log if isinstance(entry.event, TextDelta))
            last = log[-1].event if log else None
            # Nothing is worth keeping only if it is all that there is to say (C44).
            if fact.session_id == session_id and isinstance(last, RunEnded) and (words or last.outcome == Completed()):
                ended.append((run_id, words))
        assert sorted(saved, key=str) == sorted(ended, key=str)

    def teardown(self) -> None:
        """Whoever is left finds what is left, and ends it; then all go, and tell their followers."""
        self.do(self._end_all())
        self._runner.close()

    async def _end_all(self) -> None:
        await self._settle()
        last = self.living(0)
        await last.runs._look()
        for stage in self.stages:
            await stage.runs.close()
        for reader in self.readers:
            async with asyncio.timeout(20):
                await asyncio.wait([reader.task])
            error = reader.task.exception()
            assert error is None or isinstance(error, StoreError)
        for run_id in self.facts:
            run = await last.store.run(OWNER, run_id)
            assert run is not None
            assert run.outcome is not None or run.state.value in ("queued", "waiting"), run
        for stage in self.stages:
            await stage.store.close()


def _goes_on(live: LiveRun, puppet: Puppet | None) -> bool:
    """It has begun, is not about to end, and has shown all that it said."""
    begun = puppet is not None and puppet.begun.is_set() and not puppet.over
    return begun and live.stopping is None and live.log.shown_seq == live.log.last_seq


def _caused(outcome: Outcome, fact: Fact) -> bool:
    match outcome:
        case Completed():
            return fact.finished
        case Stopped():
            return fact.stopped
        case Interrupted():
            return fact.lost
        case _:
            return False
