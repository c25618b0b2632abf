"""Runs, their logs and what was reserved, in dictionaries."""

from collections.abc import Sequence

from msgspec.structs import replace

from headwater.conversation import Message, Request
from headwater.lifecycle import RunState
from headwater.records import Approval, Reservation, Run, RunBody
from headwater.store.results import Batch, Page, RunQuestion

Owned = tuple[str, str]
"""An owner, and what they call it."""


class MemoryRuns:
    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._open: dict[str, Run] = {}
        """Those that have not ended: few, while the others grow in number."""
        self._bodies: dict[str, RunBody] = {}
        self._logs: dict[str, list[Batch]] = {}
        self._approvals: dict[str, list[Approval]] = {}
        self._reservations: dict[Owned, Reservation] = {}

    async def run(self, run_id: str) -> Run | None:
        return self._runs.get(run_id)

    lock_run = run

    async def add_run(self, run: Run, body: RunBody) -> None:
        self._bodies[run.id] = body
        await self.put_run(run)

    async def add_notes(self, runs: Sequence[Run]) -> None:
        for run in runs:
            await self.put_run(run)

    async def put_run(self, run: Run) -> None:
        self._runs[run.id] = run
        if run.state is RunState.ENDED:
            self._open.pop(run.id, None)
        else:
            self._open[run.id] = run

    async def body(self, run_id: str) -> RunBody | None:
        return self._bodies.get(run_id)

    async def put_request(self, run_id: str, request: Request) -> None:
        self._bodies[run_id] = replace(self._bodies[run_id], request=request)

    async def put_output(self, run_id: str, output: tuple[Message, ...]) -> None:
        self._bodies[run_id] = replace(self._bodies.get(run_id) or RunBody(), output=output)

    async def runs(self, owner: str | None, session_id: str | None, status: str | None, page: Page) -> list[Run]:
        return RunQuestion(owner, session_id, status, page).of(self._runs.values())

    async def active_run(self, owner: str, session_id: str) -> Run | None:
        active = (RunState.RUNNING, RunState.WAITING)
        mine = (run for run in self._open.values() if (run.owner, run.session_id) == (owner, session_id))
        return next((run for run in mine if run.state in active), None)

    async def running(self, worker_id: str) -> list[Run]:
        running = (run for run in self._open.values() if run.state is RunState.RUNNING)
        return [run for run in running if run.worker_id == worker_id]

    async def unsettled(self) -> list[Run]:
        found = [run for run in self._open.values() if run.state in (RunState.QUEUED, RunState.WAITING)]
        return sorted(found, key=lambda run: (run.created_at, run.id))

    async def delete_run(self, run_id: str) -> None:
        self._runs.pop(run_id, None)
        self._open.pop(run_id, None)
        self._bodies.pop(run_id, None)
        self._logs.pop(run_id, None)
        self._approvals.pop(run_id, None)

    async def add_batch(self, batch: Batch) -> None:
        self._logs.setdefault(batch.run_id, []).append(replace(batch, entries=tuple(batch.entries)))

    async def batches(self, run_id: str, after: int, limit_bytes: int) -> list[Batch]:
        found: list[Batch] = []
        size = 0
        for batch in self._logs.get(run_id, ()):
            if batch.last_seq > after and size < limit_bytes:
                found.append(batch)
                size += sum(map(len, batch.entries))
        return found

    async def last_seq(self, run_id: str) -> int:
        log = self._logs.get(run_id)
        return log[-1].last_seq if log else -1

    async def droppable(self, ended_before: float, limit: int) -> list[Run]:
        ended = [run for run in self._runs.values() if run.ended_at is not None and run.ended_at <= ended_before]
        return [run for run in ended if run.recorded and not run.log_dropped][:limit]

    async def drop_log(self, run_id: str) -> None:
        self._logs.pop(run_id, None)

    async def approvals(self, run_id: str) -> list[Approval]:
        return list(self._approvals.get(run_id, ()))

    async def add_approval(self, run_id: str, approval: Approval) -> None:
        self._approvals.setdefault(run_id, []).append(approval)

    async def reservation(self, owner: str, key: str) -> Reservation | None:
        return self._reservations.get((owner, key))

    lock_reservation = reservation

    async def put_reservation(self, reservation: Reservation) -> None:
        self._reservations[reservation.owner, reservation.key] = reservation

    async def drop_reservations(self, before: float) -> None:
        self._reservations = {at: one for at, one in self._reservations.items() if one.at > before}
