"""Any sequence of starts, appends, stops, endings, crashes and recoveries, by several workers, against a simple model.

The model knows nothing of transactions, queues' tables or logs' batches: a run is a few fields, a session a list.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headwater.conversation import Assistant
from headwater.errors import StoreError
from headwater.events import Completed, Failed, Interrupted, Outcome, RunEnded, Stopped, TextDelta
from headwater.records import StopRequest, Transcript
from headwater.store.base import Store
from headwater.store.results import (
    Batch,
    Busy,
    Ending,
    EndResult,
    EndStands,
    Multitask,
    Queued,
    Start,
    Started,
)
from headwater.testing.store_suite.making import (
    OWNER,
    Backend,
    a_notice,
    a_run,
    answered,
    entries,
    kept,
    said,
    succeed,
)

T = TypeVar("T")

OUTCOMES: list[Outcome] = [Completed(), Completed(), Failed("upstream_error", "it broke"), Stopped("user")]
State = Literal["queued", "running", "waiting", "ended"]


@dataclass
class ModelRun:
    id: str
    session_id: str | None
    state: State
    worker: int | None = None
    interrupts: bool = False
    log: list[bytes] = field(default_factory=list)
    stop: str | None = None
    outcome: Outcome | None = None
    saved: int = 0
    """Messages that it left."""


@dataclass
class ModelWorker:
    store: Store
    fenced: bool = False


class StoreMachine(RuleBasedStateMachine):
    """A subclass says what `backend` is, and whether several workers may live at once."""

    shared = False

    def make_backend(self) -> Backend:
        raise NotImplementedError  # pragma: no cover - a subclass has it

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self.backend = self.make_backend()
        self.workers = [ModelWorker(self.do(self.backend.worker()))]
        self.runs: dict[str, ModelRun] = {}
        self.queues: dict[str, list[str]] = {"s0": [], "s1": []}
        self.paused = {"s0": False, "s1": False}

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def teardown(self) -> None:
        for worker in self.workers:
            self.do(worker.store.close())
        self._runner.close()

    # ---------------------------------------------------------------- model

    def pick_worker(self, n: int, run: ModelRun | None = None) -> tuple[int, ModelWorker]:
        """Mostly the one that has the run, or the last, which lives: the others are refused anyway."""
        at = n if n < len(self.workers) else len(self.workers) - 1
        if n > 5 and run is not None and run.worker is not None:
            at = run.worker
        return at, self.workers[at]

    def pick_run(self, n: int, *states: State) -> ModelRun:
        """Mostly one of these states, for the others are refused anyway."""
        likely = [run for run in self.runs.values() if run.state in states or n % 5 == 0]
        runs = likely or list(self.runs.values())
        return runs[n % len(runs)]

    def active(self, session_id: str | None) -> ModelRun | None:
        mine = (run for run in self.runs.values() if session_id is not None and run.session_id == session_id)
        return next((run for run in mine if run.state in ("running", "waiting")), None)

    def running(self) -> list[ModelRun]:
        return [run for run in self.runs.values() if run.state == "running"]

    def refused(self, work: Coroutine[Any, Any, Any]) -> None:
        with pytest.raises(StoreError) as raised:
            self.do(work)
        assert raised.value.trouble == "fenced"

    def take_next(self, session_id: str, worker: int) -> str:
        run_id = self.queues[session_id].pop(0)
        self.runs[run_id].state = "running"
        self.runs[run_id].worker = worker
        self.paused[session_id] = self.paused[session_id] and bool(self.queues[session_id])
        return run_id

    # ---------------------------------------------------------------- rules

    @precondition(lambda self: sum(run.outcome is None for run in self.runs.values()) < 6)
    @rule(
        n=st.integers(0, 9),
        session_id=st.sampled_from(["s0", "s0", "s0", "s1", None]),
        multitask=st.sampled_from(["queue", "queue", "queue", "reject", "interrupt"]),
    )
    def start(self, n: int, session_id: str | None, multitask: Multitask) -> None:
        number, worker = self.pick_worker(n)
        run = a_run(session_id=session_id)
        ask = Start(run=run, messages=(said("x"),) if session_id else (), multitask=multitask, create_session=True)
        if worker.fenced:
            return self.refused(worker.store.start(ask))
        active = self.active(session_id)
        queue = self.queues.get(session_id or "", [])
        result = self.do(worker.store.start(ask))
        held_up = queue and (multitask == "queue" or (multitask == "reject" and not self.paused[session_id or ""]))
        if active is None and not held_up:
            assert isinstance(result, Started)
            self.runs[run.id] = ModelRun(run.id, session_id, "running", number)
        elif multitask == "reject":
            assert isinstance(result, Busy)
            assert result.active.id == (active.id if active else queue[0])
        else:
            assert isinstance(result, Queued)
            replaced = [self.runs[other] for other in queue if self.runs[other].interrupts and multitask == "interrupt"]
            assert [other.id for other in result.replaced] == [other.id for other in replaced]
            self.runs[run.id] = ModelRun(run.id, session_id, "queued", interrupts=multitask == "interrupt")
            queue.insert(0 if multitask == "interrupt" else len(queue), run.id)
            if multitask == "interrupt":
                assert active is not None
                for other in (active, *replaced):
                    other.stop = "replaced"
        return None

    @precondition(lambda self: self.running())
    @rule(which=st.integers(0, 50), number=st.integers(1, 4))
    def append(self, which: int, number: int) -> None:
        """Also by a worker that was declared dead, and goes on as if nothing had happened."""
        run = self.running()[which % len(self.running())]
        assert run.worker is not None
        worker = self.workers[run.worker]
        events = entries(len(run.log), *(TextDelta(f"t{k} ") for k in range(number)))
        (trouble,) = self.do(kept(worker.store, Batch(run.id, len(run.log), events)))
        assert (trouble.trouble if trouble else None) == ("fenced" if worker.fenced else None)
        if trouble is None:
            run.log += events

    @precondition(lambda self: self.runs)
    @rule(n=st.integers(0, 9), which=st.integers(0, 50))
    def release(self, n: int, which: int) -> None:
        run = self.pick_run(which, "running")
        at, worker = self.pick_worker(n, run)
        if worker.fenced:
            return self.refused(worker.store.release(run.id))
        mine = run.state == "running" and run.worker == at
        assert self.do(worker.store.release(run.id)) is mine
        if mine:
            run.state, run.worker = "waiting", None
        return None

    @precondition(lambda self: self.runs)
    @rule(n=st.integers(0, 9), which=st.integers(0, 50))
    def claim(self, n: int, which: int) -> None:
        run = self.pick_run(which, "queued", "waiting")
        at, worker = self.pick_worker(n, run)
        if worker.fenced:
            return self.refused(worker.store.claim(run.id))
        result = self.do(worker.store.claim(run.id))
        if run.state == "waiting":
            assert result is not None
            run.state, run.worker = "running", at
        elif run.state == "queued" and run.session_id and not self.active(run.session_id):
            first = self.queues[run.session_id][0] == run.id and not self.paused[run.session_id]
            assert (result is not None) is first
            if first:
                self.take_next(run.session_id, at)
        else:
            assert result is None
        return None

    @precondition(lambda self: self.runs)
    @rule(n=st.integers(0, 9), which=st.integers(0, 50))
    def stop(self, n: int, which: int) -> None:
        run = self.pick_run(which, "running", "queued", "waiting")
        _, worker = self.pick_worker(n)
        ask = worker.store.ask_stop(OWNER, run.id, StopRequest("user", 1.0))
        if worker.fenced:
            return self.refused(ask)
        result = self.do(ask)
        assert result is not None
        assert result.first is (run.stop is None and run.outcome is None)
        assert result.run.outcome == run.outcome
        if run.outcome is None:
            run.stop = run.stop or "user"
        return None

    @precondition(lambda self: self.runs)
    @rule(n=st.integers(0, 9), which=st.integers(0, 50), outcome=st.sampled_from(OUTCOMES), take_next=st.booleans())
    def end(self, n: int, which: int, outcome: Outcome, take_next: bool) -> None:
        run = self.pick_run(which, "running", "waiting")
        at, worker = self.pick_worker(n, run)
        if run.state in ("queued", "waiting"):
            outcome = Stopped("user")
        self.end_by(at, worker, run, outcome, take_next)

    @precondition(lambda self: self.active("s0"))
    @rule(take_next=st.booleans(), waiting=st.integers(0, 2))
    def complete(self, take_next: bool, waiting: int) -> None:
        """What mostly happens: the active run comes to its end, by its own worker."""
        run = self.active("s0")
        assert run is not None
        if run.worker is not None:
            self.end_by(run.worker, self.workers[run.worker], run, Completed(), take_next, waiting)

    def end_by(
        self, at: int, worker: ModelWorker, run: ModelRun, outcome: Outcome, take_next: bool = True, waiting: int = 0
    ) -> None:
        """`waiting`: so many entries were handed over just before, and nobody has waited for them to be kept."""
        said = entries(len(run.log), *(TextDelta(f"w{k} ") for k in range(waiting)))
        tail = entries(len(run.log) + waiting, RunEnded(outcome))
        message = answered(f"of {run.id}")
        ending = Ending(
            run_id=run.id,
            outcome=outcome,
            tail=Batch(run.id, len(run.log) + waiting, tail),
            messages=(message,) if run.session_id else (),
            notices=(a_notice(),),
            take_next=take_next,
        )

        async def end() -> EndResult:
            if said:
                worker.store.append(Batch(run.id, len(run.log), said), lambda *_: None)
            return await worker.store.end(ending)

        if worker.fenced:
            return self.refused(end())
        result = self.do(end())
        theirs = run.state == "running" and run.worker != at and not self.workers[run.worker or 0].fenced
        if run.outcome is not None or theirs:
            assert not isinstance(result, EndStands)
            assert result.run is not None
            assert result.run.outcome == run.outcome
            return None
        assert isinstance(result, EndStands)
        run.log += [*said, *tail]
        began, run.state, run.outcome = run.state != "queued", "ended", outcome
        if run.session_id:
            run.saved = int(began)
            following = self.left(run, run.session_id, began, at if take_next else None)
            assert (result.next.run.id if result.next else None) == following
        return None

    def left(self, run: ModelRun, session_id: str, began: bool, worker: int | None) -> str | None:
        queue = self.queues[session_id]
        if not began:
            queue.remove(run.id)
            self.paused[session_id] = self.paused[session_id] and bool(queue)
            return None
        if queue and run.stop != "replaced" and not isinstance(run.outcome, Completed):
            self.paused[session_id] = True
        if queue and worker is not None and (run.stop == "replaced" or not self.paused[session_id]):
            return self.take_next(session_id, worker)
        return None

    @rule(n=st.integers(0, 9), session_id=st.sampled_from(["s0", "s1"]))
    def resume_queue(self, n: int, session_id: str) -> None:
        at, worker = self.pick_worker(n)
        if worker.fenced or not any(run.session_id == session_id for run in self.runs.values()):
            return
        result = self.do(worker.store.resume_queue(OWNER, session_id))
        self.paused[session_id] = False
        if self.queues[session_id] and not self.active(session_id):
            assert isinstance(result, Started)
            assert result.run.id == self.take_next(session_id, at)
        else:
            assert result is None

    @precondition(lambda self: len(self.workers) < 4)
    @rule()
    def crash(self) -> None:
        """All workers are gone, and don't know it. Another takes over."""
        store = self.do(succeed(self.backend))
        for worker in self.workers:
            worker.fenced = True
        self.workers.append(ModelWorker(store))

    @precondition(lambda self: self.shared and len(self.workers) < 4)
    @rule()
    def join(self) -> None:
        self.workers.append(ModelWorker(self.do(self.backend.worker())))

    @rule(n=st.integers(0, 9))
    def recover(self, n: int) -> None:
        """C51: what was running is interrupted, what was not stays."""
        at, worker = self.pick_worker(n)
        if worker.fenced:
            return
        dead = {number for number, other in enumerate(self.workers) if other.fenced}
        abandoned = {run.id for run in self.runs.values() if run.state == "running" and run.worker in dead}
        assert {run.id for run in self.do(worker.store.abandoned())} == abandoned
        for run_id in sorted(abandoned):
            self.end_by(at, worker, self.runs[run_id], Interrupted("crash"))
        assert self.do(worker.store.abandoned()) == ()

    # ----------------------------------------------------------- invariants

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        self.do(self.compare(self.workers[-1].store))

    async def compare(self, store: Store) -> None:
        # All at once: for some engines that is one question.
        logs = await asyncio.gather(*(store.read(OWNER, run_id) for run_id in self.runs))
        for run, found in zip(self.runs.values(), logs, strict=True):
            assert found is not None
            assert (found.run.state.value, found.run.outcome) == (run.state, run.outcome)
            assert (found.run.stop.reason if found.run.stop else None) == run.stop
            assert [entry for batch in found.batches for entry in batch.entries] == run.log
        transcripts = await asyncio.gather(*(store.transcript(OWNER, session_id) for session_id in self.queues))
        for session_id, transcript in zip(self.queues, transcripts, strict=True):
            if transcript is not None:
                self.compare_session(session_id, transcript)

    def compare_session(self, session_id: str, transcript: Transcript) -> None:
        active = self.active(session_id)
        assert (transcript.active.id if transcript.active else None) == (active.id if active else None)
        assert [entry.run.id for entry in transcript.queue] == self.queues[session_id]
        assert transcript.session.queue_paused is self.paused[session_id]
        saved = sorted(run.id for run in self.runs.values() if run.session_id == session_id and run.saved)
        answers = [message for message in transcript.messages if isinstance(message.message, Assistant)]
        assert sorted(str(message.run_id) for message in answers) == saved
        assert sorted(str(notice.run_id) for notice in transcript.notices) == saved
