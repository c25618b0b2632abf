"""The newest of logs, for those who follow them from another worker: many asked for at once are one question.

What is asked for while a question is under way goes with the next: with the load they grow, as commits do. Eight runs
that were followed at another worker took eight questions of 0.3 ms after each of its commits.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from headwater.errors import StoreError
from headwater.store.framing import unpack
from headwater.store.postgres.arrays import int4s, texts
from headwater.store.postgres.transactions import Transactions
from headwater.store.results import Batch, LogSlice
from headwater.store.rows import decode_run
from headwater.store.tables import Undone

AT_ONCE: Final = 100
ROWS: Final = 32
"""Of a log. Whoever is further behind asks by itself."""
_END: Final = 2**31 - 2
"""No log is so long."""

_TAILS: Final = f"""
SELECT place, record, (SELECT last_seq FROM headwater.batch WHERE batch.run = n ORDER BY first_seq DESC LIMIT 1),
    part.first_seq, part.data
FROM unnest(%s, %s) WITH ORDINALITY AS given (run_id, after, place)
CROSS JOIN LATERAL (SELECT n, record FROM headwater.run WHERE id = run_id LIMIT 1) AS run
LEFT JOIN LATERAL (
    SELECT first_seq, data FROM headwater.batch
    WHERE batch.run = n AND batch.last_seq > after AND batch.first_seq >= coalesce((
        SELECT max(first_seq) FROM headwater.batch AS earlier
        WHERE earlier.run = n AND earlier.first_seq <= after + 1), 0)
    ORDER BY first_seq LIMIT {ROWS}) AS part ON true
ORDER BY place, part.first_seq"""


class _Asked(Struct, eq=False):
    run_id: str
    after: int
    answer: "asyncio.Future[LogSlice | None]"


class Tails:
    def __init__(self, transactions: Transactions, answer_s: float) -> None:
        self._transactions = transactions
        self._answer_s = answer_s
        self._waiting: list[_Asked] = []
        self._asking: asyncio.Task[None] | None = None

    async def slice(self, run_id: str, after: int) -> LogSlice | None:
        """Without batches, though there are some, if they are too many for this."""
        answer: asyncio.Future[LogSlice | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Asked(run_id, min(after, _END), answer))
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_all())
        return await answer

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    async def _ask_all(self) -> None:
        try:
            while self._waiting:
                asked, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                await self._answer(asked)
        finally:
            self._asking = None
            _refuse(self._waiting, StoreError("the store was closed", trouble="unreachable"))

    async def _answer(self, asked: list[_Asked]) -> None:
        try:
            try:
                rows = await self._rows(asked)
            except Undone:
                # Its connection broke, which harms nothing that is only read.
                rows = await self._rows(asked)
            found = _slices(asked, rows)
        except StoreError as error:
            _refuse(asked, error)
        except BaseException:
            # Nobody waits for an answer that will not come, whatever has happened.
            _refuse(asked, StoreError("the store was closed", trouble="unreachable"))
            raise
        else:
            for one, slice in zip(asked, found, strict=True):
                if not one.answer.done():
                    one.answer.set_result(slice)

    async def _rows(self, asked: Sequence[_Asked]) -> list[Any]:
        values = (texts([one.run_id for one in asked]), int4s([one.after for one in asked]))
        async with self._transactions.asking(self._answer_s) as connection:
            return await (await connection.execute(_TAILS, values, binary=True)).fetchall()


def _refuse(asked: Sequence[_Asked], error: StoreError) -> None:
    for one in asked:
        if not one.answer.done():
            one.answer.set_exception(error)


def _slices(asked: Sequence[_Asked], rows: Sequence[Any]) -> list[LogSlice | None]:
    parts: dict[int, list[Any]] = {}
    for place, *part in rows:
        parts.setdefault(place, []).append(part)
    return [_slice(one, parts[n]) if n in parts else None for n, one in enumerate(asked, 1)]


def _slice(asked: _Asked, part: Sequence[Any]) -> LogSlice:
    record, last_seq = part[0][:2]
    batches = [Batch(asked.run_id, first_seq, unpack(data)) for _, _, first_seq, data in part if data is not None]
    run = decode_run(record)
    stands = -1 if last_seq is None else last_seq
    return LogSlice(
        run, () if len(batches) == ROWS else tuple(batches), run.last_seq if run.outcome is not None else stands
    )
