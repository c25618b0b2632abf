"""The group commit by itself, and who is told of it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from headwater.errors import StoreError
from headwater.store.news import Hub, News
from headwater.store.results import Batch, Changed
from headwater.store.writer import GroupWriter, Troubles
from headwater.testing.store_suite.making import tokens

pytestmark = pytest.mark.anyio

FULL = StoreError("no room", trouble="full")


class Disk:
    """What was committed, and what is to go wrong."""

    def __init__(self) -> None:
        self.commits: list[list[Batch]] = []
        self.trouble: StoreError | None = None
        self.told: list[str] = []
        self.writer = GroupWriter(self.commit, self.told.extend)

    def commit(self, batches: Sequence[Batch]) -> Mapping[str, StoreError]:
        if self.trouble is not None:
            raise self.trouble
        self.commits.append(list(batches))
        return {}


async def test_what_all_runs_have_waiting_is_one_commit() -> None:
    disk = Disk()
    for run_id in ("a", "b", "c"):
        disk.writer.own(run_id, -1)
        disk.writer.append(tokens(run_id, 0), lambda *_: None)
        disk.writer.append(tokens(run_id, 1), lambda *_: None)
    assert disk.commits == []
    assert await disk.writer.settle("a") is None
    assert [[(batch.run_id, len(batch.entries)) for batch in batches] for batches in disk.commits] == [
        [("a", 2), ("b", 2), ("c", 2)]
    ]
    assert disk.told == ["a", "b", "c"]


async def test_what_is_appended_is_committed_without_being_asked_for() -> None:
    disk = Disk()
    disk.writer.own("a", -1)
    for seq in range(3):
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        disk.writer.append(tokens("a", seq), lambda kept_seq, _, told=told: told.set_result(kept_seq))  # type: ignore[misc]
        assert await told == seq
    assert len(disk.commits) == 3


async def test_entries_that_were_refused_are_not_tried_again() -> None:
    disk = Disk()
    disk.writer.own("a", 4)
    disk.trouble = FULL
    told: list[tuple[int, StoreError | None]] = []
    disk.writer.append(tokens("a", 5, 3), lambda *args: told.append(args))
    assert await disk.writer.settle("a") is FULL
    assert (told, disk.told) == ([(4, FULL)], [])
    disk.trouble = None
    disk.writer.append(tokens("a", 5, 1), lambda *args: told.append(args))
    assert await disk.writer.settle("a") is None
    assert told[1:] == [(5, None)]


async def test_whoever_is_told_may_append_again_at_once() -> None:
    disk = Disk()
    disk.writer.own("a", -1)
    seen: list[int] = []
    done = asyncio.Event()

    def again(kept_seq: int, trouble: StoreError | None) -> None:
        seen.append(kept_seq)
        if kept_seq < 3:
            disk.writer.append(tokens("a", kept_seq + 1), again)
        else:
            done.set()

    disk.writer.append(tokens("a", 0), again)
    await done.wait()
    assert seen == [0, 1, 2, 3]


class SlowDisk:
    """Whose commits take until they are told what came of them."""

    def __init__(self) -> None:
        self.commits: list[tuple[list[Batch], asyncio.Future[Troubles]]] = []
        self.writer = GroupWriter(self.commit, lambda _: None)
        self._begun = asyncio.Event()

    def commit(self, batches: Sequence[Batch]) -> asyncio.Future[Troubles]:
        self.commits.append((list(batches), asyncio.get_running_loop().create_future()))
        self._begun.set()
        return self.commits[-1][1]

    async def committing(self, number: int) -> tuple[list[tuple[str, int, int]], asyncio.Future[Troubles]]:
        """The runs, first entries and numbers of entries of that commit, once it is under way."""
        while len(self.commits) < number:
            self._begun.clear()
            await self._begun.wait()
        batches, future = self.commits[number - 1]
        return [(batch.run_id, batch.first_seq, len(batch.entries)) for batch in batches], future


async def test_what_comes_while_a_commit_is_under_way_is_the_next_one() -> None:
    disk = SlowDisk()
    told: list[object] = []
    for run_id in ("a", "b"):
        disk.writer.own(run_id, -1)
    disk.writer.append(tokens("a", 0), lambda *args: told.append(("first", *args)))
    found, future = await disk.committing(1)
    assert found == [("a", 0, 1)]
    disk.writer.append(tokens("a", 1), lambda *args: told.append(("not told", *args)))
    disk.writer.append(tokens("a", 2), lambda *args: told.append(("second", *args)))
    disk.writer.append(tokens("b", 0), lambda *args: told.append(("other", *args)))
    with pytest.raises(ValueError, match="goes on at 3"):
        disk.writer.append(tokens("a", 2), lambda *_: None)
    await asyncio.sleep(0.01)
    assert (told, len(disk.commits)) == ([], 1)
    future.set_result({})
    found, future = await disk.committing(2)
    assert told == [("first", 0, None)]
    assert found == [("a", 1, 2), ("b", 0, 1)]
    future.set_result({})
    assert await disk.writer.settle("b") is None
    assert told[1:] == [("second", 2, None), ("other", 0, None)]


async def test_what_came_behind_entries_that_are_refused_is_refused_with_them() -> None:
    disk = SlowDisk()
    told: list[object] = []
    for run_id in ("a", "b"):
        disk.writer.own(run_id, -1)
        disk.writer.append(tokens(run_id, 0), lambda *args: told.append(("first", *args)))
    _, future = await disk.committing(1)
    disk.writer.append(tokens("a", 1), lambda *args: told.append(("second", *args)))
    settling = asyncio.create_task(disk.writer.settle("a"))
    given_up = asyncio.create_task(disk.writer.settle("a"))
    await asyncio.sleep(0)
    given_up.cancel()
    future.set_result({"a": FULL})
    assert await settling is FULL
    assert told == [("first", -1, FULL), ("first", 0, None), ("second", -1, FULL)]
    disk.writer.append(tokens("a", 0), lambda *args: told.append(("third", *args)))
    found, future = await disk.committing(2)
    assert found == [("a", 0, 1)]
    future.set_exception(FULL)
    assert await disk.writer.settle("a") is FULL
    assert told[3:] == [("third", -1, FULL)]


async def test_one_who_is_told_for_both_is_told_of_a_refusal_once() -> None:
    disk = SlowDisk()
    told: list[object] = []

    def committed(kept_seq: int, trouble: StoreError | None) -> None:
        told.append((kept_seq, trouble))

    disk.writer.own("a", -1)
    disk.writer.append(tokens("a", 0), committed)
    _, future = await disk.committing(1)
    disk.writer.append(tokens("a", 1), committed)
    future.set_exception(FULL)
    assert await disk.writer.settle("a") is FULL
    assert told == [(-1, FULL)]


async def test_an_ending_waits_for_all_that_was_handed_over() -> None:
    disk = SlowDisk()
    disk.writer.own("a", -1)
    disk.writer.append(tokens("a", 0), lambda *_: None)
    _, future = await disk.committing(1)
    disk.writer.append(tokens("a", 1), lambda *_: None)
    settling = asyncio.create_task(disk.writer.settle_all())
    future.set_result({})
    _, future = await disk.committing(2)
    assert not settling.done()
    future.set_result({})
    await settling


async def test_one_that_breaks_when_told_keeps_nobody_else_from_it() -> None:
    disk = Disk()
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    told: list[tuple[int, StoreError | None]] = []

    def broken(kept_seq: int, trouble: StoreError | None) -> None:
        raise RuntimeError("of the test")

    for run_id in ("a", "b"):
        disk.writer.own(run_id, -1)
    disk.writer.append(tokens("a", 0), broken)
    disk.writer.append(tokens("b", 0), lambda *args: told.append(args))
    disk.writer.flush()
    assert (told, disk.told, len(reported)) == ([(0, None)], ["a", "b"], 1)


async def test_nothing_stays_of_a_run_that_was_given_up() -> None:
    """C53."""
    disk = Disk()
    disk.writer.own("a", -1)
    disk.writer.append(tokens("a", 0), lambda *_: None)
    disk.writer.disown("a")
    assert len(disk.writer) == 0
    for _ in range(2):
        disk.writer.flush()
    assert disk.commits == []


async def test_nothing_stays_of_watchers_that_have_left() -> None:
    """C53."""
    hub = Hub()
    told: list[object] = []
    unwatch = [
        hub.runs.add("r", lambda: told.append("r")),
        hub.orders.add("w", told.append),
        hub.owners.add("o", told.append),
        hub.runs.add("r", lambda: told.append("again")),
    ]
    hub.publish(News(["r", "other"], [("w", "r"), ("other", "r")], [("o", Changed("run", "r"))]))
    assert told == ["r", "again", "r", Changed("run", "r")]
    for leave in unwatch:
        leave()
        leave()
    assert (len(hub.runs), len(hub.orders), len(hub.owners)) == (0, 0, 0)
