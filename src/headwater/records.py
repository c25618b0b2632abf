"""What is kept: runs, sessions and their messages, groups, blobs, owners and keys.

Values only, each with one JSON form. A store keeps them and changes them by whole values; who may change what, and
when, is in `store`. Times (`…_at`) are seconds since 1970. Whatever belongs to somebody names its `owner`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from headwater.conversation import Message, Parameters, Request
from headwater.events import Outcome, Usage
from headwater.lifecycle import RunState

NAME_PATTERN: Final = "^[^\\x00]*$"
"""Of whatever is looked up by its name. Postgres keeps no text with a null character: so nothing is called that."""


def can_name(text: str) -> bool:
    return "\0" not in text


# --------------------------------------------------------------------- runs

Route = Literal["chat", "responses", "messages", "native"]


class StopRequest(Struct, frozen=True):
    """Asked for, and not yet acted on: the worker that has the run does that."""

    reason: Literal["user", "disconnect", "replaced"]
    at: float


class Run(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One generation that somebody asked for. What was asked, and what came, is in its `RunBody` and its log."""

    id: str
    owner: str
    model: str
    """What the client asked for."""
    created_at: float
    state: RunState = RunState.QUEUED
    route: Route = "native"
    session_id: str | None = None
    parent_id: str | None = None
    """The message that it answers; None before it has begun, and outside of sessions."""
    back_id: str | None = None
    """What was shown before it was asked to answer a message again: shown once more if it leaves nothing."""
    continues: str | None = None
    """The run whose cut answer it goes on with."""
    previous_run_id: str | None = None
    """The run whose history comes before this one's, outside of sessions."""
    interrupts: bool = False
    """It came to take the place of the run before it: if another comes to do so before it has begun, it is replaced."""
    agent: str | None = None
    on_disconnect: Literal["cancel", "continue"] = "continue"
    on_cut: Literal["end", "continue"] = "end"
    recorded: bool = True
    worker_id: str | None = None
    """Who has it while it is running; who had it last, afterwards."""
    waits_until: float | None = None
    """While it is waiting: when it is no longer to be waited for."""
    stop: StopRequest | None = None
    outcome: Outcome | None = None
    answered_by: str | None = None
    """`upstream/model`."""
    usage: Usage = Usage()
    started_at: float | None = None
    first_token_at: float | None = None
    ended_at: float | None = None
    last_seq: int = -1
    """Of the whole log; true only once it has ended. Before that, the log itself says."""
    log_dropped: bool = False
    """Its log was past its retention: nothing of it is left."""


class RunBody(Struct, frozen=True, omit_defaults=True):
    """What was asked, and outside of sessions also what was answered: there, no other place keeps it."""

    request: Request | None = None
    output: tuple[Message, ...] = ()
    echo: dict[str, Any] = field(default_factory=dict)
    """What of the request the answer repeats, in the client's own words (`Ask.echo`)."""


class Approval(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's answer to a call that waits for one. The first one stands."""

    call_id: str
    decision: Literal["yes", "no"]
    by: str
    at: float
    reason: str | None = None
    remember: Literal["session"] | None = None


KEYS_S: Final = 86_400.0
"""How long an idempotency key is remembered, unless the settings say otherwise."""


class IdempotencyKey(Struct, frozen=True):
    """What a client sent to be able to ask again: the key, and a digest of the body that it came with."""

    key: str
    digest: str
    keep_s: float = KEYS_S
    """For so long it means what it meant first."""


class Reservation(Struct, frozen=True):
    """A key that was used, and what came of it."""

    owner: str
    key: str
    digest: str
    subject_id: str
    """The run that was started, or the call that was approved."""
    at: float


# ----------------------------------------------------------------- sessions


class SessionParameters(Struct, frozen=True, omit_defaults=True):
    model: str | None = None
    system: str | None = None
    request: Parameters = Parameters()


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation: a tree of messages, of which the path to `head_id` is the one that is shown and gone on with."""

    id: str
    """Unique for its owner only: a client may have made it up."""
    owner: str
    created_at: float
    updated_at: float
    title: str | None = None
    head_id: str | None = None
    read_id: str | None = None
    """The last message that its owner has seen."""
    parameters: SessionParameters = SessionParameters()
    group_id: str | None = None
    hidden: bool = False
    """A pane of a comparison that was not picked: in no list and no search."""
    queue_paused: bool = False
    """The run before did not complete: what is queued waits for a person."""
    forked_from: str | None = None
    approved: tuple[str, ...] = ()
    """Tools that a person has said yes to for all of it."""


class SessionMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message in its place in the tree. It never changes."""

    id: str
    message: Message
    created_at: float
    parent_id: str | None = None
    """Set by the store, which alone knows the head."""
    status: Literal["complete", "partial"] = "complete"
    run_id: str | None = None
    model: str | None = None
    answered_by: str | None = None
    usage: Usage | None = None
    outcome: Outcome | None = None
    continues: str | None = None
    """The partial message that this one goes on from."""
    blobs: tuple[str, ...] = ()
    """Hashes of what it shows; they are kept as long as it is."""


class SessionNotice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something a person should know, and that is no message."""

    id: str
    code: str
    text: str
    created_at: float
    after_id: str | None = None
    """The message that it stands behind; set by the store."""
    run_id: str | None = None
    tools: tuple[str, ...] = ()
    for_model: bool = False


class AtHead(Struct, frozen=True, tag="head"):
    """Goes on where the session stands once its lock is held."""


class Under(Struct, frozen=True, tag="under"):
    """Another branch: behind this message. None begins a new root."""

    message_id: str | None


class QueueEntry(Struct, frozen=True, kw_only=True):
    """A run that waits for its turn, and what was said with it: no part of the tree before its turn has come."""

    run: Run
    messages: tuple[SessionMessage, ...]
    place: AtHead | Under = AtHead()
    position: int
    """Grows along the queue; not dense."""


class Transcript(Struct, frozen=True):
    """All of a session, as of one moment."""

    session: Session
    messages: tuple[SessionMessage, ...]
    """All branches, in the order in which they came."""
    notices: tuple[SessionNotice, ...]
    queue: tuple[QueueEntry, ...]
    active: Run | None
    """Running, or waiting."""


class Group(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Several models asked side by side, each in a session of its own."""

    id: str
    owner: str
    created_at: float
    session_ids: tuple[str, ...]
    picked_id: str | None = None


class SearchHit(Struct, frozen=True):
    session_id: str
    message_id: str
    title: str | None
    snippet: str
    created_at: float


def path_to(messages: Iterable[SessionMessage], head_id: str | None) -> list[SessionMessage]:
    """From the root to `head_id`. A parent that is missing is the root's: nothing is before it."""
    by_id: Mapping[str, SessionMessage] = {message.id: message for message in messages}
    path: list[SessionMessage] = []
    while head_id is not None and (message := by_id.get(head_id)) is not None:
        path.append(message)
        head_id = message.parent_id
    path.reverse()
    return path


# -------------------------------------------------------------------- blobs


class Blob(Struct, frozen=True):
    hash: str
    """SHA-256 of the bytes, in hex."""
    media_type: str
    data: bytes


# --------------------------------------------------- owners, keys and workers

Scope = Literal["chat", "approve", "admin"]


class Key(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The right to act as an owner. The key itself is not kept: it is random enough for its plain hash to be safe."""

    id: str
    owner: str
    hash: str
    """SHA-256, in hex."""
    created_at: float
    hint: str = ""
    """How it begins, so that a person can tell it from others."""
    name: str | None = None
    scopes: tuple[Scope, ...] = ("chat",)
    models: tuple[str, ...] = ("*",)
    requests_per_minute: int = 600
    concurrent_runs: int = 50
    revoked_at: float | None = None


class Worker(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One server process that shares the store."""

    id: str
    address: str
    joined_at: float
    beat_at: float
    visiting: bool = False
    """A command beside the server: it takes up no runs."""
    fenced: bool = False
    """Declared dead: nothing that it writes counts, for ever."""
