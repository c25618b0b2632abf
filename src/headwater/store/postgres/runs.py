"""Runs, their logs and what was reserved, in SQL."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from headwater.conversation import Message, Request
from headwater.lifecycle import status
from headwater.records import Approval, Reservation, Run, RunBody
from headwater.store.framing import pack, unpack
from headwater.store.postgres.rows import Rows
from headwater.store.results import Batch, Page
from headwater.store.rows import decode_approval, decode_body, decode_reservation, decode_run, encode

_ADD: Final = """INSERT INTO headwater.run
    (id, owner, session_id, created_at, state, status, worker_id, ended_at, has_log, stopping, record)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""
_RUN: Final = "(SELECT n FROM headwater.run WHERE id = %s)"
ROWS_AT_ONCE: Final = 200
"""Of a log. A follower that keeps up finds a few, one that replays some kB in each."""


class PostgresRuns(Rows):
    async def run(self, run_id: str) -> Run | None:
        row = await self._one("SELECT record FROM headwater.run WHERE id = %s", (run_id,))
        return None if row is None else decode_run(row[0])

    async def lock_run(self, run_id: str) -> Run | None:
        row = await self._one("SELECT record FROM headwater.run WHERE id = %s FOR UPDATE", (run_id,))
        return None if row is None else decode_run(row[0])

    async def add_run(self, run: Run, body: RunBody) -> None:
        await self._do(
            f"WITH run AS ({_ADD} RETURNING n) INSERT INTO headwater.run_body SELECT n, %s FROM run",
            (*_columns(run), encode(body)),
        )

    async def add_notes(self, runs: Sequence[Run]) -> None:
        async with self._connection.cursor() as cursor:
            await cursor.executemany(_ADD, [_columns(run) for run in runs])

    async def put_run(self, run: Run) -> None:
        await self._do(
            """UPDATE headwater.run SET state = %s, status = %s, worker_id = %s, ended_at = %s, has_log = %s,
            stopping = %s, record = %s WHERE id = %s""",
            (*_changing(run), run.id),
        )

    async def body(self, run_id: str) -> RunBody | None:
        row = await self._one(f"SELECT record FROM headwater.run_body WHERE run = {_RUN}", (run_id,))
        return None if row is None else decode_body(row[0])

    async def put_request(self, run_id: str, request: Request) -> None:
        await self._put_body(run_id, replace(await self.body(run_id) or RunBody(), request=request))

    async def put_output(self, run_id: str, output: tuple[Message, ...]) -> None:
        await self._put_body(run_id, replace(await self.body(run_id) or RunBody(), output=output))

    async def _put_body(self, run_id: str, body: RunBody) -> None:
        await self._do(f"UPDATE headwater.run_body SET record = %s WHERE run = {_RUN}", (encode(body), run_id))

    async def runs(self, owner: str | None, session_id: str | None, status: str | None, page: Page) -> list[Run]:
        wanted: dict[str, object] = {
            "owner = %s": owner,
            "session_id = %s": session_id,
            "status = %s": status,
            "(created_at, id) < (%s, %s)": page.before,
        }
        terms = [term for term, value in wanted.items() if value is not None]
        values = [value for value in (owner, session_id, status) if value is not None]
        where = f"WHERE {' AND '.join(terms)}" if terms else ""
        rows = await self._all(
            f"SELECT record FROM headwater.run {where} ORDER BY created_at DESC, id DESC LIMIT %s",
            (*values, *(page.before or ()), page.limit),
        )
        return [decode_run(record) for (record,) in rows]

    async def active_run(self, owner: str, session_id: str) -> Run | None:
        row = await self._one(
            """SELECT record FROM headwater.run
            WHERE owner = %s AND session_id = %s AND state IN ('running', 'waiting')""",
            (owner, session_id),
        )
        return None if row is None else decode_run(row[0])

    async def running(self, worker_id: str) -> list[Run]:
        rows = await self._all(
            """SELECT record FROM headwater.run
            WHERE state = 'running' AND state <> 'ended' AND worker_id = %s ORDER BY n""",
            (worker_id,),
        )
        return [decode_run(record) for (record,) in rows]

    async def unsettled(self) -> list[Run]:
        rows = await self._all(
            """SELECT record FROM headwater.run WHERE state IN ('queued', 'waiting') AND state <> 'ended'
            ORDER BY created_at, id"""
        )
        return [decode_run(record) for (record,) in rows]

    async def delete_run(self, run_id: str) -> None:
        for table in ("batch", "run_body", "approval"):
            await self._do(f"DELETE FROM headwater.{table} WHERE run = {_RUN}", (run_id,))
        await self._do("DELETE FROM headwater.run WHERE id = %s", (run_id,))

    # ------------------------------------------------------------------ log

    async def add_batch(self, batch: Batch) -> None:
        await self._do(
            "INSERT INTO headwater.batch SELECT n, %s, %s, %s FROM headwater.run WHERE id = %s",
            (batch.first_seq, batch.last_seq, pack(batch.entries), batch.run_id),
        )

    async def batches(self, run_id: str, after: int, limit_bytes: int) -> list[Batch]:
        first = await self._one(
            f"SELECT max(first_seq) FROM headwater.batch WHERE run = {_RUN} AND first_seq <= %s", (run_id, after + 1)
        )
        next_seq = first[0] if first and first[0] is not None else 0
        found: list[Batch] = []
        size = 0
        while size < limit_bytes:
            rows = await self._all(
                f"""SELECT first_seq, data FROM headwater.batch WHERE run = {_RUN} AND first_seq >= %s
                ORDER BY first_seq LIMIT {ROWS_AT_ONCE}""",
                (run_id, next_seq),
            )
            for first_seq, data in rows:
                if size < limit_bytes:
                    found.append(Batch(run_id, first_seq, unpack(data)))
                    size += len(data)
            if len(rows) < ROWS_AT_ONCE:
                break
            next_seq = rows[-1][0] + 1
        return found

    async def last_seq(self, run_id: str) -> int:
        row = await self._one(
            f"SELECT last_seq FROM headwater.batch WHERE run = {_RUN} ORDER BY first_seq DESC LIMIT 1", (run_id,)
        )
        return -1 if row is None else int(row[0])

    async def droppable(self, ended_before: float, limit: int) -> list[Run]:
        rows = await self._all(
            """SELECT record FROM headwater.run WHERE state = 'ended' AND has_log AND ended_at <= %s
            ORDER BY ended_at LIMIT %s""",
            (ended_before, limit),
        )
        return [decode_run(record) for (record,) in rows]

    async def drop_log(self, run_id: str) -> None:
        await self._do(f"DELETE FROM headwater.batch WHERE run = {_RUN}", (run_id,))

    # --------------------------------------------------------------- orders

    async def approvals(self, run_id: str) -> list[Approval]:
        rows = await self._all(f"SELECT record FROM headwater.approval WHERE run = {_RUN} ORDER BY n", (run_id,))
        return [decode_approval(record) for (record,) in rows]

    async def add_approval(self, run_id: str, approval: Approval) -> None:
        await self._do(
            "INSERT INTO headwater.approval (run, call_id, record) SELECT n, %s, %s FROM headwater.run WHERE id = %s",
            (approval.call_id, encode(approval), run_id),
        )

    async def reservation(self, owner: str, key: str) -> Reservation | None:
        row = await self._one("SELECT record FROM headwater.reservation WHERE owner = %s AND key = %s", (owner, key))
        return None if row is None else decode_reservation(row[0])

    async def lock_reservation(self, owner: str, key: str) -> Reservation | None:
        await self._lock("reservation", owner, key)
        return await self.reservation(owner, key)

    async def put_reservation(self, reservation: Reservation) -> None:
        await self._do(
            """INSERT INTO headwater.reservation VALUES (%s, %s, %s, %s)
            ON CONFLICT (owner, key) DO UPDATE SET at = excluded.at, record = excluded.record""",
            (reservation.owner, reservation.key, reservation.at, encode(reservation)),
        )

    async def drop_reservations(self, before: float) -> None:
        await self._do("DELETE FROM headwater.reservation WHERE at <= %s", (before,))


def _columns(run: Run) -> tuple[str | float | bytes | bool | None, ...]:
    return (run.id, run.owner, run.session_id, run.created_at, *_changing(run))


def _changing(run: Run) -> tuple[str | float | bytes | bool | None, ...]:
    """The columns that follow from the record."""
    shown = status(run.state, run.outcome)
    has_log = run.recorded and not run.log_dropped
    return (run.state.value, shown, run.worker_id, run.ended_at, has_log, run.stop is not None, encode(run))
