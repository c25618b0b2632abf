"""The agreement with a store: one object per worker, on something that many workers may share.

Three rules hold for all of it. **The owner is part of every question**: what is another's is as if it were not there.
**A worker that was fenced writes nothing**: every write checks that, and raises `StoreError`. **What is said to be
kept is kept**: an operation that returns has been committed as a whole, one that raises has changed nothing, or says
that this can't be known.

Nothing here says how: no SQL, no file, no clock but the one that came in.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from headwater.conversation import Request
from headwater.records import (
    KEYS_S,
    Approval,
    Blob,
    Group,
    IdempotencyKey,
    Key,
    QueueEntry,
    Run,
    RunBody,
    SearchHit,
    Session,
    SessionMessage,
    StopRequest,
    Transcript,
    Worker,
)
from headwater.store.results import (
    Adopted,
    Batch,
    Busy,
    Changed,
    Committed,
    Ending,
    EndResult,
    GroupList,
    KeyMismatch,
    LogSlice,
    Missing,
    Page,
    Replayed,
    RunList,
    SessionChange,
    SessionList,
    Start,
    Started,
    StartResult,
    StopStands,
)

Unwatch = Callable[[], None]

READ_BYTES: Final = 1 << 16


class RunStore(Protocol):
    """Runs and their logs."""

    async def start(self, ask: Start) -> StartResult:
        """The session's lock, what was said, the run and its idempotency key: all or nothing."""

    async def used(self, owner: str, key: IdempotencyKey) -> Replayed | KeyMismatch | None:
        """What came of this key before, if it was used: asked first, no replay is held up by what has changed since.

        Nothing is reserved. Whoever is told None, and then uses it, may find that somebody else was faster.
        """

    async def claim(self, run_id: str) -> Started | None:
        """Take up a run that waits, or the first of a queue whose turn has come. None: it is not to be had."""

    async def release(self, run_id: str, until: float | None = None, calls: Sequence[str] = ()) -> bool:
        """It waits for a person's word on these calls, and is no worker's. False: it is not this worker's to give up.

        If the word on one of them has come meanwhile, it is `ready` at once.
        """

    def append(self, batch: Batch, committed: Committed, /) -> None:
        """Hand over entries of a run that this worker has. They are kept when `committed` says so, or an `end` of the
        run that stands; not before.

        All that is waiting, of all runs, is kept as one. A later call for the same run may replace `committed` if it
        was not told yet. Entries that are refused are not tried again: `end` takes them with its tail. Raises
        `StoreError` if the run is not this worker's, `ValueError` if an entry is missing before these.
        """

    def watch_commits(self, told: Callable[[float], None]) -> None:
        """`told` how many seconds each start, each end and each commit of what was appended took. One is told."""

    async def end(self, ending: Ending) -> EndResult:
        """The rest of the log, the outcome, the messages, the notices and the next of the queue: all or nothing.

        A running run is ended by its own worker, or by any after its own was fenced; a queued or waiting one by any.
        """

    async def read(
        self, owner: str | None, run_id: str, after: int = -1, limit_bytes: int = READ_BYTES
    ) -> LogSlice | None:
        """Batches after the cursor, at least one if there is one. No owner: the server itself (recovery, an admin)."""

    def watch_run(self, run_id: str, told: Callable[[], None]) -> Unwatch:
        """`told` after every commit that touched the run, whichever worker's."""

    async def run(self, owner: str | None, run_id: str) -> Run | None: ...

    async def body(self, owner: str | None, run_id: str) -> RunBody | None: ...

    async def runs(
        self, owner: str | None, *, session_id: str | None = None, status: str | None = None, page: Page = Page()
    ) -> RunList:
        """`status` as the API shows it: a state, or how it ended."""

    def note(self, run: Run) -> None:
        """An unrecorded run that has ended: written behind, and lost without harm to it if the store is away."""

    async def delete_run(self, owner: str, run_id: str) -> Busy | Missing | None:
        """One that belongs to no session, with its log. Not while it is active."""

    # ----------------------------------------------------------------- orders

    async def ask_stop(self, owner: str | None, run_id: str, stop: StopRequest) -> StopStands | None:
        """Kept until the run has ended, also if it has not begun. Its worker is told (`watch_orders`)."""

    async def approve(
        self, owner: str, run_id: str, approval: Approval, key: IdempotencyKey | None = None
    ) -> Approval | Replayed | KeyMismatch | Missing:
        """The approval that stands, this one or an earlier. Whoever has the run is told; if nobody has, it is ready."""

    async def approvals(self, run_id: str) -> tuple[Approval, ...]: ...

    def watch_orders(self, told: Callable[[str], None]) -> Unwatch:
        """`told` the id of a run of this worker for which a stop or an approval has come."""


class SessionStore(Protocol):
    """Conversations, and how several are compared."""

    async def create_session(self, session: Session) -> bool:
        """False: there is one of that id."""

    async def session(self, owner: str, session_id: str) -> Session | None: ...

    async def sessions(self, owner: str, page: Page = Page()) -> SessionList:
        """Hidden ones are left out."""

    async def transcript(self, owner: str, session_id: str) -> Transcript | None: ...

    async def change_session(self, owner: str, session_id: str, change: SessionChange) -> Session | Missing: ...

    async def delete_session(self, owner: str, session_id: str) -> Busy | Missing | None:
        """With its messages, runs, logs and what search knows of it. Not while a run of it is running."""

    async def fork(self, owner: str, session_id: str, message_id: str, new_id: str) -> Session | Missing:
        """A new session with copies of the messages up to this one."""

    async def search(self, owner: str, words: str, limit: int = 20) -> tuple[SearchHit, ...]:
        """Messages that have all the words, the best first."""

    async def reorder_queue(
        self, owner: str, session_id: str, run_ids: Sequence[str]
    ) -> tuple[QueueEntry, ...] | Missing:
        """Those that are named come first, in that order. If one of them does not wait, nothing is changed."""

    async def edit_queued(
        self, owner: str, run_id: str, messages: tuple[SessionMessage, ...], request: Request
    ) -> QueueEntry | Missing:
        """Other words: in the transcript, and in what the model is asked. All or nothing."""

    async def resume_queue(self, owner: str, session_id: str) -> Started | Missing | None:
        """A paused queue goes on. The first of it, if its turn has come: running, and this worker's."""

    async def create_group(
        self, group: Group, sessions: tuple[Session, ...], key: IdempotencyKey | None = None
    ) -> Replayed | KeyMismatch | None:
        """With its panes and its idempotency key: all or nothing."""

    async def group(self, owner: str, group_id: str) -> Group | None: ...

    async def groups(self, owner: str, page: Page = Page()) -> GroupList:
        """By when they were made."""

    async def delete_group(self, owner: str, group_id: str) -> Busy | Missing | None:
        """With its panes, but for the one that was picked: that is a session like any other."""

    async def pick(self, owner: str, group_id: str, session_id: str) -> Group | Missing:
        """This pane is the one to go on with: no longer hidden. The others are hidden (again)."""

    async def put_blob(self, owner: str, blob: Blob) -> None: ...

    async def blob(self, owner: str, hash: str) -> Blob | None: ...

    def watch_owner(self, owner: str, told: Callable[[Changed], None]) -> Unwatch:
        """`told` of what changes in this owner's sessions and runs, save for the growing of a log."""


class KeyStore(Protocol):
    """Who may act as whom."""

    async def put_key(self, key: Key) -> None:
        """New, or changed (revoked)."""

    async def key(self, hash: str) -> Key | None:
        """Revoked ones, too: the caller says no to them."""

    async def keys(self, owner: str | None = None) -> tuple[Key, ...]: ...

    async def adopt(self, owner: str, of: str) -> Adopted:
        """All that was `of`'s is `owner`'s now, but for sessions whose id `owner` has already, and what is in them."""


class WorkerStore(Protocol):
    """Workers that come and go, and what is found of those that went without a word."""

    @property
    def worker_id(self) -> str: ...

    async def beat(self) -> None:
        """This worker lives. Raises `StoreError` (`fenced`) if another has decided that it does not."""

    async def workers(self) -> tuple[Worker, ...]: ...

    async def fence_dead(self, known: Collection[str] = ()) -> tuple[Worker, ...]:
        """Declare dead whoever is: by an OS lock where there is one, else by a lease. They can write nothing more.

        `known`: whose processes are known to have ended.
        """

    async def abandoned(self) -> tuple[Run, ...]:
        """Running, and their worker is fenced: to be ended by whoever finds them."""

    async def mine(self) -> tuple[Run, ...]:
        """Running, and this worker's, with the stops that were asked for: for a look now and then, if news get lost."""

    async def ready(self) -> tuple[Run, ...]:
        """Queued, and nothing is before them: to be claimed after a restart.

        Also waiting ones whose time is over, or to which somebody has answered.
        """

    async def tell_following(self) -> None:
        """Let other workers know which runs are watched here (`watch_run`), if that has changed."""

    async def followed_elsewhere(self) -> frozenset[str]:
        """Runs of this worker that are watched at another one that lives, as far as that one has told."""

    async def tidy(self, keep_logs_s: float, keep_keys_s: float = KEYS_S) -> int:
        """Drop logs that ended longer ago, whole; keys that were used longer ago; blobs that nothing shows.

        How many logs; not all at once if there are very many, so call it again then.
        """

    async def check(self) -> None:
        """Raises `StoreError` if it can't be written to."""

    async def close(self) -> None:
        """All that was handed over is kept first. This worker has left: what it still had is abandoned."""


class Store(RunStore, SessionStore, KeyStore, WorkerStore, Protocol):
    """All of it."""
