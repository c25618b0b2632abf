"""Runs, their logs and what was reserved, in SQL."""

from collections.abc import Sequence
from contextlib import closing
from typing import Final

import apsw
from msgspec.structs import replace

from headwater.conversation import Message, Request
from headwater.lifecycle import status
from headwater.records import Approval, Reservation, Run, RunBody
from headwater.store.framing import pack, unpack
from headwater.store.results import Batch, Page
from headwater.store.rows import (
    decode_approval,
    decode_body,
    decode_output,
    decode_reservation,
    decode_run,
    encode,
)

_ADD: Final = """INSERT INTO run
    (id, owner, session_id, created_at, state, status, worker_id, ended_at, has_log, record)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""


class SqliteRuns:
    def __init__(self, connection: apsw.Connection) -> None:
        self._sql = connection.execute
        self._sql_many = connection.executemany
        self.rows: dict[str, int] = {}
        """Of runs that go on, as far as `commit` has looked. What changes one here, takes it out."""

    async def run(self, run_id: str) -> Run | None:
        row = self._sql("SELECT record FROM run WHERE id = ?", (run_id,)).fetchone()
        return None if row is None else decode_run(row[0])

    lock_run = run

    async def add_run(self, run: Run, body: RunBody) -> None:
        self._sql(_ADD, _columns(run))
        self._sql("INSERT INTO run_body (run, record) VALUES (last_insert_rowid(), ?)", (encode(body),))

    async def add_notes(self, runs: Sequence[Run]) -> None:
        self._sql_many(_ADD, map(_columns, runs))

    async def put_run(self, run: Run) -> None:
        self.rows.pop(run.id, None)
        self._sql(
            "UPDATE run SET state = ?, status = ?, worker_id = ?, ended_at = ?, has_log = ?, record = ? WHERE id = ?",
            (*_changing(run), run.id),
        )

    async def body(self, run_id: str) -> RunBody | None:
        row = self._sql(
            """SELECT run_body.record, run_output.record FROM run JOIN run_body ON run_body.run = n
            LEFT JOIN run_output ON run_output.run = n WHERE id = ?""",
            (run_id,),
        ).fetchone()
        if row is None:
            return None
        body = decode_body(row[0])
        return body if row[1] is None else replace(body, output=decode_output(row[1]))

    async def put_request(self, run_id: str, request: Request) -> None:
        body = replace(await self.body(run_id) or RunBody(), request=request)
        self._sql("UPDATE run_body SET record = ? WHERE run = (SELECT n FROM run WHERE id = ?)", (encode(body), run_id))

    async def put_output(self, run_id: str, output: tuple[Message, ...]) -> None:
        self._sql("REPLACE INTO run_output SELECT n, ? FROM run WHERE id = ?", (encode(output), run_id))

    async def runs(self, owner: str | None, session_id: str | None, status: str | None, page: Page) -> list[Run]:
        wanted: dict[str, object] = {
            "owner = ?": owner,
            "session_id = ?": session_id,
            "status = ?": status,
            "(created_at, id) < (?, ?)": page.before,
        }
        terms = [term for term, value in wanted.items() if value is not None]
        values: list[str | float] = [value for value in (owner, session_id, status) if value is not None]
        where = f"WHERE {' AND '.join(terms)}" if terms else ""
        rows = self._sql(
            f"SELECT record FROM run {where} ORDER BY created_at DESC, id DESC LIMIT ?",
            (*values, *(page.before or ()), page.limit),
        )
        return [decode_run(record) for (record,) in rows]

    async def active_run(self, owner: str, session_id: str) -> Run | None:
        row = self._sql(
            """SELECT record FROM run
            WHERE owner = ? AND session_id = ? AND session_id IS NOT NULL AND state IN ('running', 'waiting')""",
            (owner, session_id),
        ).fetchone()
        return None if row is None else decode_run(row[0])

    async def running(self, worker_id: str) -> list[Run]:
        rows = self._sql(
            "SELECT record FROM run WHERE state = 'running' AND state <> 'ended' AND worker_id = ? ORDER BY n",
            (worker_id,),
        )
        return [decode_run(record) for (record,) in rows]

    async def unsettled(self) -> list[Run]:
        rows = self._sql(
            """SELECT record FROM run WHERE state IN ('queued', 'waiting') AND state <> 'ended'
            ORDER BY created_at, id"""
        )
        return [decode_run(record) for (record,) in rows]

    async def delete_run(self, run_id: str) -> None:
        self.rows.pop(run_id, None)
        for table in ("batch", "run_body", "run_output", "approval"):
            self._sql(f"DELETE FROM {table} WHERE run = (SELECT n FROM run WHERE id = ?)", (run_id,))
        self._sql("DELETE FROM run WHERE id = ?", (run_id,))

    # ------------------------------------------------------------------ log

    async def add_batch(self, batch: Batch) -> None:
        self._sql(
            "INSERT INTO batch SELECT n, ?, ?, ? FROM run WHERE id = ?",
            (batch.first_seq, batch.last_seq, pack(batch.entries), batch.run_id),
        )

    async def batches(self, run_id: str, after: int, limit_bytes: int) -> list[Batch]:
        rows = self._sql(
            """SELECT first_seq, data FROM batch
            WHERE run = (SELECT n FROM run WHERE id = :run) AND first_seq >= coalesce(
                (SELECT max(first_seq) FROM batch
                 WHERE run = (SELECT n FROM run WHERE id = :run) AND first_seq <= :after + 1), 0)
            ORDER BY first_seq""",
            {"run": run_id, "after": after},
        )
        found: list[Batch] = []
        size = 0
        # A question that is given up in its middle, over a log that can't be read, would hold on to its moment.
        with closing(rows):
            for first_seq, data in rows:
                found.append(Batch(run_id, first_seq, unpack(data)))
                size += len(data)
                if size >= limit_bytes:
                    break
        return found

    async def last_seq(self, run_id: str) -> int:
        row = self._sql(
            """SELECT last_seq FROM batch WHERE run = (SELECT n FROM run WHERE id = ?)
            ORDER BY first_seq DESC LIMIT 1""",
            (run_id,),
        ).fetchone()
        return -1 if row is None else int(row[0])

    async def droppable(self, ended_before: float, limit: int) -> list[Run]:
        rows = self._sql(
            "SELECT record FROM run WHERE state = 'ended' AND has_log AND ended_at <= ? ORDER BY ended_at LIMIT ?",
            (ended_before, limit),
        )
        return [decode_run(record) for (record,) in rows]

    async def drop_log(self, run_id: str) -> None:
        self._sql("DELETE FROM batch WHERE run = (SELECT n FROM run WHERE id = ?)", (run_id,))

    # --------------------------------------------------------------- orders

    async def approvals(self, run_id: str) -> list[Approval]:
        rows = self._sql(
            "SELECT record FROM approval WHERE run = (SELECT n FROM run WHERE id = ?) ORDER BY n", (run_id,)
        )
        return [decode_approval(record) for (record,) in rows]

    async def add_approval(self, run_id: str, approval: Approval) -> None:
        self._sql(
            "INSERT INTO approval (run, call_id, record) SELECT n, ?, ? FROM run WHERE id = ?",
            (approval.call_id, encode(approval), run_id),
        )

    async def reservation(self, owner: str, key: str) -> Reservation | None:
        row = self._sql("SELECT record FROM reservation WHERE owner = ? AND key = ?", (owner, key)).fetchone()
        return None if row is None else decode_reservation(row[0])

    lock_reservation = reservation

    async def put_reservation(self, reservation: Reservation) -> None:
        self._sql(
            "REPLACE INTO reservation VALUES (?, ?, ?, ?)",
            (reservation.owner, reservation.key, reservation.at, encode(reservation)),
        )

    async def drop_reservations(self, before: float) -> None:
        self._sql("DELETE FROM reservation WHERE at <= ?", (before,))


def _columns(run: Run) -> tuple[str | float | bytes | None, ...]:
    return (run.id, run.owner, run.session_id, run.created_at, *_changing(run))


def _changing(run: Run) -> tuple[str | float | bytes | None, ...]:
    """The columns that follow from the record."""
    shown = status(run.state, run.outcome)
    has_log = run.recorded and not run.log_dropped
    return (run.state.value, shown, run.worker_id, run.ended_at, has_log, encode(run))
