"""What the operations of a store take and give: values, matched to the end by whoever asks."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from headwater.conversation import Message, Request
from headwater.errors import StoreError
from headwater.events import Outcome, Usage
from headwater.lifecycle import status
from headwater.records import (
    AtHead,
    Group,
    IdempotencyKey,
    Run,
    Session,
    SessionMessage,
    SessionNotice,
    SessionParameters,
    Under,
)

# ---------------------------------------------------------------------- log


class Batch(Struct, frozen=True):
    """Consecutive entries of one run's log, each in its one representation (`events.encode_entry`)."""

    run_id: str
    first_seq: int
    entries: Sequence[bytes]

    @property
    def last_seq(self) -> int:
        return self.first_seq + len(self.entries) - 1

    def after(self, seq: int) -> Sequence[bytes]:
        return self.entries[max(0, seq + 1 - self.first_seq) :]


Committed = Callable[[int, StoreError | None], None]
"""Told once per commit of a run's entries: the last `seq` that is kept, and what became of the rest."""


class LogSlice(Struct, frozen=True):
    """A piece of a log together with its run, as of one moment."""

    run: Run
    batches: tuple[Batch, ...]
    """The first may begin before the cursor: `Batch.after`."""
    last_seq: int
    """Of all that is committed, whether it is in this piece or not."""


# -------------------------------------------------------------------- start

Multitask = Literal["reject", "queue", "interrupt"]


class Start(Struct, frozen=True, kw_only=True):
    """Somebody asks for a run. Ids are the caller's; places in the tree are the store's."""

    run: Run
    request: Request | None = None
    messages: tuple[SessionMessage, ...] = ()
    """What was said with it; none to have a message answered again."""
    place: AtHead | Under = AtHead()
    multitask: Multitask = "reject"
    echo: dict[str, Any] = field(default_factory=dict)
    """See `RunBody.echo`."""
    create_session: bool = False
    """A session that is not there is made: its id was the client's to choose."""
    title: str | None = None
    """For the session, if it has none."""
    idempotency: IdempotencyKey | None = None


class Started(Struct, frozen=True):
    """It is running, and this worker's. If `run.stop` is set, it is only to be ended."""

    run: Run
    messages: tuple[SessionMessage, ...]


class Queued(Struct, frozen=True):
    run: Run
    ahead: int
    """Runs that come before it, not counting the active one."""
    stopping: Run | None = None
    """The active one, which was asked to make way. Unless it is running, the caller has to end it."""
    replaced: tuple[Run, ...] = ()
    """Those that came to interrupt before this one, and have not begun: the caller has to end them."""


class Busy(Struct, frozen=True):
    """The session has this run already; nothing was changed."""

    active: Run


class Replayed(Struct, frozen=True):
    """The same was asked before, with this key."""

    subject_id: str


class KeyMismatch(Struct, frozen=True):
    """The key was used before, with another body."""

    subject_id: str


class Missing(Struct, frozen=True):
    """There is none such, or it is another owner's, which is the same."""

    what: Literal["session", "message", "run", "group"]


StartResult = Started | Queued | Busy | Replayed | KeyMismatch | Missing


# ---------------------------------------------------------------------- end


class Ending(Struct, frozen=True, kw_only=True):
    """How a run ends, with all that it leaves."""

    run_id: str
    outcome: Outcome
    tail: Batch | None = None
    """What of the log is not committed yet, the `RunEnded` at its end."""
    messages: tuple[SessionMessage, ...] = ()
    notices: tuple[SessionNotice, ...] = ()
    output: tuple[Message, ...] = ()
    """Outside of sessions: what a later run may follow."""
    usage: Usage = Usage()
    answered_by: str | None = None
    first_token_at: float | None = None
    idle: bool = False
    """Meant for a run that no worker has: nothing is changed if one has begun it meanwhile."""
    take_next: bool = True
    """This worker takes up what comes next in the queue; false while it is shutting down."""


class EndStands(Struct, frozen=True):
    run: Run
    next: Started | None = None
    """Of the queue: it is running now, and this worker's."""


class EndLost(Struct, frozen=True):
    """Nothing was changed: it has ended before (`run.outcome` stands), or somebody else has it, or it was deleted."""

    run: Run | None


EndResult = EndStands | EndLost


# --------------------------------------------------------------------- stop


class StopStands(Struct, frozen=True):
    """Unless it is running, no worker has it, and the caller has to end it."""

    run: Run
    first: bool
    """Nobody had asked before, and it had not ended."""


# ------------------------------------------------------------------ sessions


class SessionChange(Struct, frozen=True, kw_only=True):
    """What is None stays as it is."""

    title: str | None = None
    parameters: SessionParameters | None = None
    head_id: str | None = None
    """Shows another branch."""
    read_id: str | None = None
    approved: tuple[str, ...] | None = None


class Page(Struct, frozen=True):
    """Newest first. `before` is the place of the last one of the page before."""

    limit: int = 50
    before: tuple[float, str] | None = None


class Compared(Struct, frozen=True):
    group: Group
    sessions: tuple[Session, ...]
    """Of its panes, in their order; without those that were deleted."""


class GroupList(Struct, frozen=True):
    groups: tuple[Compared, ...]
    next: tuple[float, str] | None
    """None: there are no more."""


class SessionList(Struct, frozen=True):
    sessions: tuple[Session, ...]
    next: tuple[float, str] | None
    """None: there are no more."""


class RunList(Struct, frozen=True):
    runs: tuple[Run, ...]
    next: tuple[float, str] | None


class Adopted(Struct, frozen=True):
    sessions: int
    """How many have another owner now."""
    left: tuple[str, ...] = ()
    """Those that have not: the new owner had one of that id before."""


class RunQuestion(Struct, frozen=True):
    """Which runs are to be listed; what is None is any."""

    owner: str | None = None
    session_id: str | None = None
    status: str | None = None
    """As the API shows it: a state, or how it ended."""
    page: Page = Page()

    def of(self, runs: Iterable[Run]) -> list[Run]:
        """The page of these, newest first. One that is there twice is as it is there last."""
        fit = [run for run in {run.id: run for run in runs}.values() if self._takes(run)]
        return sorted(fit, key=lambda run: (run.created_at, run.id), reverse=True)[: self.page.limit]

    def _takes(self, run: Run) -> bool:
        return (
            self.owner in (None, run.owner)
            and self.session_id in (None, run.session_id)
            and self.status in (None, status(run.state, run.outcome))
            and (self.page.before is None or (run.created_at, run.id) < self.page.before)
        )

    def answer(self, runs: Sequence[Run]) -> RunList:
        return RunList(tuple(runs), (runs[-1].created_at, runs[-1].id) if len(runs) == self.page.limit else None)


# --------------------------------------------------------------------- news


class Changed(Struct, frozen=True):
    """A hint for somebody who shows it: fetch it again."""

    kind: Literal["session", "run", "group", "all"]
    """`all`: hints may have been lost, so whatever is shown."""
    id: str
