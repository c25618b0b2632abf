"""What an engine provides to the rules: plain reads and writes of records, all within one transaction.

No decisions here. What is locked is kept from other transactions until this one is over; an engine whose writers are
alone anyway just reads. A session is locked before any run of it, and a run before it is written.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct, field

from headwater.conversation import Message, Request
from headwater.errors import StoreError
from headwater.records import (
    Approval,
    AtHead,
    Blob,
    Group,
    Key,
    QueueEntry,
    Reservation,
    Run,
    RunBody,
    SearchHit,
    Session,
    SessionMessage,
    SessionNotice,
    Under,
    Worker,
)
from headwater.store.news import Hub, News
from headwater.store.results import Adopted, Batch, LogSlice, Page
from headwater.store.writer import Troubles


class RunTables(Protocol):
    async def run(self, run_id: str) -> Run | None: ...

    async def lock_run(self, run_id: str) -> Run | None: ...

    async def add_run(self, run: Run, body: RunBody) -> None: ...

    async def add_notes(self, runs: Sequence[Run]) -> None:
        """Of runs that were not recorded. They have no body."""

    async def put_run(self, run: Run) -> None:
        """One that is there."""

    async def body(self, run_id: str) -> RunBody | None: ...

    async def put_request(self, run_id: str, request: Request) -> None:
        """Of its body, what was asked."""

    async def put_output(self, run_id: str, output: tuple[Message, ...]) -> None:
        """Of its body, what was answered."""

    async def runs(self, owner: str | None, session_id: str | None, status: str | None, page: Page) -> list[Run]:
        """By creation, newest first."""

    async def active_run(self, owner: str, session_id: str) -> Run | None:
        """Running, or waiting."""

    async def running(self, worker_id: str) -> list[Run]: ...

    async def unsettled(self) -> list[Run]:
        """All that are queued or waiting, oldest first."""

    async def delete_run(self, run_id: str) -> None:
        """With its log, its body and its approvals."""

    async def add_batch(self, batch: Batch) -> None: ...

    async def batches(self, run_id: str, after: int, limit_bytes: int) -> list[Batch]:
        """From the one that has `after + 1`, until the limit is passed."""

    async def last_seq(self, run_id: str) -> int:
        """Of what is in the log; -1: nothing is."""

    async def droppable(self, ended_before: float, limit: int) -> list[Run]:
        """Ended, and their log is still there; the oldest."""

    async def drop_log(self, run_id: str) -> None: ...

    async def approvals(self, run_id: str) -> list[Approval]: ...

    async def add_approval(self, run_id: str, approval: Approval) -> None: ...

    async def reservation(self, owner: str, key: str) -> Reservation | None: ...

    async def lock_reservation(self, owner: str, key: str) -> Reservation | None:
        """Also if there is none: nobody else can make it."""

    async def put_reservation(self, reservation: Reservation) -> None: ...

    async def drop_reservations(self, before: float) -> None: ...


class SessionTables(Protocol):
    async def session(self, owner: str, session_id: str) -> Session | None: ...

    async def lock_session(self, owner: str, session_id: str) -> Session | None:
        """Also if there is none: nobody else can make it."""

    async def put_session(self, session: Session) -> None: ...

    async def sessions(self, owner: str, page: Page) -> list[Session]:
        """By `updated_at`, newest first, without hidden ones."""

    async def delete_session(self, owner: str, session_id: str) -> None:
        """With its messages, notices and queue; its runs, too."""

    async def rename_owner(self, owner: str, of: str) -> Adopted:
        """They are not the same."""

    async def message(self, owner: str, session_id: str, message_id: str) -> SessionMessage | None: ...

    async def messages(self, owner: str, session_id: str) -> list[SessionMessage]: ...

    async def add_message(self, owner: str, session_id: str, message: SessionMessage) -> None: ...

    async def notices(self, owner: str, session_id: str) -> list[SessionNotice]: ...

    async def add_notice(self, owner: str, session_id: str, notice: SessionNotice) -> None: ...

    async def queue(self, owner: str, session_id: str) -> list[QueueEntry]: ...

    async def put_queued(
        self, run: Run, messages: tuple[SessionMessage, ...], place: AtHead | Under, position: int
    ) -> None: ...

    async def drop_queued(self, run_id: str) -> None: ...

    async def group(self, owner: str, group_id: str) -> Group | None: ...

    async def put_group(self, group: Group) -> None: ...

    async def groups(self, owner: str) -> list[Group]:
        """All of them, in any order: somebody made each of them by hand."""

    async def delete_group(self, owner: str, group_id: str) -> None:
        """Itself; not its sessions."""

    async def sessions_named(self, owner: str, session_ids: Sequence[str]) -> list[Session]:
        """Those that are there, in any order."""


class OtherTables(Protocol):
    async def put_blob(self, owner: str, blob: Blob, at: float) -> None: ...

    async def drop_blobs(self, unused_since: float) -> None:
        """Those that came before, and that no message shows."""

    async def key(self, hash: str) -> Key | None: ...

    async def keys(self, owner: str | None) -> list[Key]: ...

    async def put_key(self, key: Key) -> None: ...

    async def worker(self, worker_id: str) -> Worker | None: ...

    async def hold_worker(self, worker_id: str) -> Worker | None:
        """It can't be locked before this transaction is over; several may hold it."""

    async def lock_worker(self, worker_id: str) -> Worker | None: ...

    async def workers(self) -> list[Worker]: ...

    async def put_worker(self, worker: Worker) -> None: ...

    async def drop_worker(self, worker_id: str) -> None:
        """With what it has told of whom it follows."""

    async def put_following(self, worker_id: str, new: Collection[str], gone: Collection[str]) -> None:
        """Runs that this worker's clients have begun to follow, and that they don't any more."""

    async def followed(self, worker_id: str) -> list[str]:
        """Running runs of this worker that are followed at others that live."""


class Tables(RunTables, SessionTables, OtherTables, Protocol):
    """All of them."""

    exclusive: bool
    """Nobody else writes before this transaction is over: what was read is as good as locked."""


class Undone(StoreError):
    """Nothing of a transaction was kept, by no fault of its own (a deadlock, a connection that broke)."""


class Database(Protocol):
    """An engine: where transactions come from."""

    alone: bool
    """No other worker can be alive: the engine itself has seen to that."""

    at_once: bool
    """Nothing in it waits: a transaction is over before it is anybody else's turn."""

    def reading(self) -> AbstractAsyncContextManager[Tables]:
        """Everything is read as of one moment."""

    def writing(self) -> AbstractAsyncContextManager[Tables]:
        """Committed at its end, undone as a whole if it raises. Raises `Undone` if another try may do."""

    def commit(self, worker_id: str, batches: Sequence[Batch]) -> Troubles | asyncio.Future[Troubles]:
        """Keeps entries of runs that are running and this worker's. One batch a run, one commit at a time."""

    async def slice(self, run_id: str, after: int, limit_bytes: int) -> LogSlice | None:
        """A piece of a log behind the cursor, with its run: what followers ask, again and again."""

    def publish(self, news: News) -> None:
        """To the watchers of all workers."""

    async def index(self) -> None:
        """Let search know of what has come since the last time."""

    async def forget(self) -> None:
        """Let nothing be left in what search knows of what was deleted."""

    async def search(self, owner: str, words: str, limit: int) -> list[SearchHit]: ...

    async def blob(self, owner: str, hash: str) -> Blob | None: ...

    def attach(self, hub: Hub) -> None:
        """Where this worker's watchers are."""

    async def close(self, hub: Hub) -> None: ...


class Transaction(Struct):
    """One transaction of one worker, as the rules see it."""

    tables: Tables
    me: Worker
    """Alive, as of its beginning."""
    now: float
    entropy: Callable[[int], bytes]
    news: News = field(default_factory=News)

    @property
    def worker_id(self) -> str:
        return self.me.id
