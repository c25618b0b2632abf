"""Connections that break at the worst moment, servers that go away.

What became of a commit is found out, or said to be unknown; nothing is kept twice.
"""

import asyncio
from typing import Any

import pytest

from headwater.errors import StoreError
from headwater.events import Completed
from headwater.lifecycle import RunState
from headwater.store.base import Store
from headwater.store.postgres.listener import Pace
from headwater.store.results import Batch, EndStands, Started
from headwater.testing.postgres import PostgresServer
from headwater.testing.store_suite.making import (
    OWNER,
    a_run,
    answered,
    ended,
    kept,
    said,
    started,
    tail,
    tokens,
)
from tests.store.postgres_backend import BehindProxy, PostgresBackend, seqs

pytestmark = pytest.mark.anyio


# ------------------------------------------------------------------- commits


@pytest.mark.parametrize("losing", ["request", "answer"])
async def test_entries_whose_connection_broke_in_mid_commit_are_kept_once(behind: BehindProxy, losing: Any) -> None:
    between = behind.proxy
    store, run = await behind.begun()
    await kept(store, tokens(run.id, 0))
    between.losing, between.loses = losing, lambda data: b'"t1 "' in data
    assert await kept(store, tokens(run.id, 1)) == [None]
    assert between.lost.is_set()
    assert await kept(store, tokens(run.id, 2)) == [None]
    assert await seqs(store, run.id) == [0, 1, 2]


@pytest.mark.parametrize("losing", ["request", "answer"])
async def test_what_can_not_be_known_is_said_to_be_unknown_and_the_end_finds_out(
    behind: BehindProxy, losing: Any
) -> None:
    between = behind.proxy
    store, run = await behind.begun(session_id="s")
    between.losing, between.loses, between.refuse_then = losing, lambda data: b'"t0 "' in data, True
    (trouble,) = await kept(store, tokens(run.id, 0, 2))
    assert trouble is not None
    assert (trouble.trouble, "can't be known" in trouble.message) == ("unreachable", True)
    entries = [*tokens(run.id, 0, 2).entries, *tail(run.id, 2).entries]
    result = await ended(store, run.id, tail=Batch(run.id, 0, entries), messages=(answered("t0 t1"),))
    assert isinstance(result, EndStands)
    assert await seqs(store, run.id) == [0, 1, 2]
    assert result.run.last_seq == 2


async def test_while_a_commit_is_under_way_what_comes_waits_and_goes_down_with_it(
    behind: BehindProxy,
) -> None:
    between = behind.proxy
    store, run = await behind.begun()
    await kept(store, tokens(run.id, 0))
    between.losing, between.loses, between.refuse_then = "request", lambda data: b'"t1 "' in data, True
    told: list[tuple[str, int, StoreError | None]] = []
    store.append(tokens(run.id, 1), lambda *args: told.append(("first", *args)))
    await between.lost.wait()
    store.append(tokens(run.id, 2), lambda *args: told.append(("second", *args)))
    with pytest.raises(StoreError):
        await ended(store, run.id)
    assert [(who, seq, trouble and trouble.trouble) for who, seq, trouble in told] == [
        ("first", 0, "unreachable"),
        ("second", 0, "unreachable"),
    ]


async def test_a_connection_that_breaks_while_a_commit_is_given_up_does_not_keep_it_trying(
    behind: BehindProxy,
) -> None:
    """psycopg raises the break then, and not the cancel that told it to give up."""
    between = behind.proxy
    store, run = await behind.begun()
    await kept(store, tokens(run.id, 0))
    between.silent = between.cut_on_cancel = True
    async with asyncio.timeout(30):
        (trouble,) = await kept(store, tokens(run.id, 1))
    assert trouble is not None
    assert trouble.trouble == "unreachable"
    between.silent = between.cut_on_cancel = False


# -------------------------------------------------------------------- writes


@pytest.mark.parametrize("losing", ["request", "answer"])
async def test_an_ending_whose_connection_broke_stands_once(behind: BehindProxy, losing: Any) -> None:
    between = behind.proxy
    store, run = await behind.begun(session_id="s", messages=(said("one"),))
    between.losing, between.loses = losing, lambda data: b"COMMIT" in data
    answer = answered("yes")
    result = await ended(store, run.id, tail=tail(run.id, 0), messages=(answer,))
    assert between.lost.is_set()
    assert isinstance(result, EndStands)
    transcript = await store.transcript(OWNER, "s")
    assert transcript is not None
    assert [message.id for message in transcript.messages[1:]] == [answer.id]


async def test_a_write_whose_connection_broke_in_its_middle_is_done_again_from_its_beginning(
    behind: BehindProxy,
) -> None:
    between = behind.proxy
    store = await behind.worker()
    between.losing, between.loses = "request", lambda data: b"INSERT INTO headwater.run_body" in data
    run = (await started(store, session_id="s", messages=(said("one"),))).run
    assert between.lost.is_set()
    assert (await store.runs(OWNER)).runs == (run,)
    transcript = await store.transcript(OWNER, "s")
    assert transcript is not None
    assert len(transcript.messages) == 1


@pytest.mark.parametrize(
    ("losing", "at"), [("request", "INSERT INTO headwater.run"), ("request", "COMMIT"), ("answer", "COMMIT")]
)
async def test_notes_whose_connection_broke_are_there_once(behind: BehindProxy, losing: Any, at: str) -> None:
    between = behind.proxy
    store = await behind.worker()
    found = asyncio.Event()
    store.watch_owner(OWNER, lambda _: found.set())
    notes = [a_run(state=RunState.ENDED, outcome=Completed(), recorded=False, created_at=n) for n in (3.0, 2.0, 1.0)]
    between.losing, between.loses = losing, lambda data: at.encode() in data
    for run in notes:
        store.note(run)
    await found.wait()
    assert between.lost.is_set()
    assert (await store.runs(OWNER)).runs == tuple(notes)


async def test_a_write_of_which_nobody_can_say_whether_it_was_kept_says_so(
    behind: BehindProxy,
) -> None:
    between = behind.proxy
    store, run = await behind.begun()
    between.loses, between.refuse_then = lambda data: b"COMMIT" in data, True
    with pytest.raises(StoreError, match="can't be known"):
        await ended(store, run.id, tail=tail(run.id, 0))
    between.refusing = False
    found = await store.run(OWNER, run.id)
    assert found is not None
    assert found.outcome == Completed()


async def test_a_write_that_is_undone_again_and_again_is_given_up(behind: BehindProxy) -> None:
    between = behind.proxy
    store = await behind.worker()
    between.refusing = True
    between.cut()
    with pytest.raises(StoreError) as raised:
        await started(store)
    assert raised.value.trouble == "unreachable"
    between.refusing = False
    assert isinstance(await started(store), Started)


async def test_a_read_that_breaks_is_told_and_the_next_one_is_not_harmed(
    behind: BehindProxy,
) -> None:
    between = behind.proxy
    store, run = await behind.begun()
    between.losing, between.loses = "request", lambda data: b"REPEATABLE READ" in data
    with pytest.raises(StoreError):
        await store.run(OWNER, run.id)
    assert await store.run(OWNER, run.id) == run


async def test_logs_that_many_ask_for_at_once_are_read_once_more_if_the_connection_broke(
    behind: BehindProxy,
) -> None:
    between = behind.proxy
    store = await behind.worker()
    runs = [(await started(store)).run for _ in range(3)]
    for n, run in enumerate(runs):
        await kept(store, tokens(run.id, 0, n + 1))
    between.losing, between.loses = "request", lambda data: b"WITH ORDINALITY" in data
    asked = [(run.id, after) for run in runs for after in range(-1, 40)]
    found = await asyncio.gather(*(store.read(OWNER, run_id, after) for run_id, after in asked))
    assert between.lost.is_set()
    for (run_id, after), piece in zip(asked, found, strict=True):
        number = [run.id for run in runs].index(run_id)
        assert piece is not None
        assert (piece.run.id, piece.last_seq) == (run_id, number)
        assert [len(batch.after(after)) for batch in piece.batches] == ([number - after] if after < number else [])
    assert await store.read(OWNER, "run_none") is None
    assert await store.read("bob", runs[0].id) is None


async def test_who_reads_while_the_store_is_closed_is_told(behind: BehindProxy) -> None:
    between = behind.proxy
    store, run = await behind.begun()
    between.silent_from, between.cut_on_cancel = lambda data: b"WITH ORDINALITY" in data, True
    reading = asyncio.create_task(store.read(OWNER, run.id))
    await asyncio.sleep(0.1)
    late = asyncio.create_task(store.read(OWNER, run.id))
    await asyncio.sleep(0)
    await behind.close()
    for task in (reading, late):
        with pytest.raises(StoreError):
            await task


# --------------------------------------------------------------- the server


class Writing:
    """Gives a run its next entry as soon as the one before is kept."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store, self._run_id = store, run_id
        self.kept_seq = -1
        self.trouble: StoreError | None = None
        self._over = False
        self._waiting: list[tuple[int, asyncio.Event]] = []
        self._give()

    def _give(self) -> None:
        self._store.append(tokens(self._run_id, self.kept_seq + 1), self._told)

    def _told(self, kept_seq: int, trouble: StoreError | None) -> None:
        self.kept_seq, self.trouble = kept_seq, trouble
        for seq, event in self._waiting:
            if trouble is not None or kept_seq >= seq:
                event.set()
        if trouble is None and not self._over:
            self._give()

    async def more(self, number: int = 5) -> None:
        event = asyncio.Event()
        self._waiting.append((self.kept_seq + number, event))
        async with asyncio.timeout(30):
            await event.wait()
        assert self.trouble is None

    async def stop(self) -> None:
        self._over = True
        await self.more(1)


KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headwater' AND pid <> pg_backend_pid()"


async def test_backends_that_are_killed_under_load_cost_no_entry(postgres: PostgresServer) -> None:
    backend = PostgresBackend(postgres.url())
    store = await backend.worker()
    runs = [(await started(store)).run for _ in range(4)]
    writing = [Writing(store, run.id) for run in runs]
    for _ in range(5):
        await asyncio.gather(*(one.more() for one in writing))
        with backend.sql() as connection:
            connection.execute(KILL)
    await asyncio.gather(*(one.stop() for one in writing))
    for run, one in zip(runs, writing, strict=True):
        found = await seqs(store, run.id)
        assert found == list(range(len(found)))
        assert len(found) > one.kept_seq
    await backend.close()


async def test_a_server_that_is_restarted_in_mid_stream_is_gone_on_with(postgres: PostgresServer) -> None:
    backend = PostgresBackend(postgres.url(), pace=Pace(0.05, 0.05))
    first, second = await backend.worker(), await backend.worker()
    run = (await started(first, session_id="s")).run
    writing = Writing(first, run.id)
    await writing.more()
    await asyncio.to_thread(postgres.stop)
    await asyncio.to_thread(postgres.start)
    await writing.more()
    told = asyncio.Event()
    second.watch_run(run.id, told.set)
    await told.wait()
    await writing.stop()
    found = await seqs(second, run.id)
    assert found == list(range(len(found)))
    await first.beat()
    await second.beat()
    await backend.close()
