"""What the native API takes and gives. The same types read requests, write answers and make `/openapi.json`.

Values only. What is taken refuses fields that it does not name; times that are given are in UTC.
"""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from headwater.accumulate import CallState
from headwater.conversation import Effort
from headwater.dialects.parsing import SessionId
from headwater.events import Outcome, Usage
from headwater.records import NAME_PATTERN, Scope
from headwater.sessions.view import CallItem, MessageItem, NoticeItem, Part
from headwater.store.results import Multitask

Status = Literal["queued", "running", "waiting", "completed", "incomplete", "stopped", "failed", "interrupted"]
OnDisconnect = Literal["cancel", "continue"]
Id = SessionId
Name = Annotated[str, Meta(max_length=128, pattern=NAME_PATTERN)]
Content = Annotated[str, Meta(max_length=16_000_000)]
ModelName = Annotated[str, Meta(min_length=1, max_length=256)]
Title = Annotated[str, Meta(min_length=1, max_length=300)]
Seq = Annotated[int, Meta(ge=-1, le=2**53)]
Limit = Annotated[int, Meta(ge=1, le=200)]
Place = Annotated[str, Meta(max_length=200, pattern=NAME_PATTERN, description="`next` of the page before")]


class Taken(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request's body, or its query."""


class Given(Struct, frozen=True, kw_only=True):
    """An answer, or a part of one."""


# ------------------------------------------------------------------ what is said


class ImageIn(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="image"):
    """One that was put there before (`blob`), or an address: `https:` or `data:`."""

    blob: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None = None
    url: Annotated[str, Meta(pattern="^(https?|data):")] | None = None


PartsIn = Annotated[tuple[ImageIn, ...], Meta(max_length=64)]


class MessageIn(Taken, frozen=True, kw_only=True):
    role: Literal["system", "user", "assistant"] = "user"
    content: Content = ""
    parts: PartsIn = ()


class ParametersShape(Taken, frozen=True, kw_only=True):
    """What is null, or left out, is left to the session, and then to the model."""

    system: Content | None = None
    temperature: Annotated[float, Meta(ge=0, le=10)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=2**31)] | None = None
    reasoning_effort: Effort | None = None
    seed: Annotated[int, Meta(ge=-(2**53), le=2**53)] | None = None
    stop: Annotated[tuple[str, ...], Meta(max_length=16)] = ()


class SessionParametersShape(ParametersShape, frozen=True, kw_only=True):
    model: ModelName | None = None


# -------------------------------------------------------------------------- runs


class RunIn(Taken, frozen=True, kw_only=True):
    """`input` is short for one message of yours; `agent` is a `model` that has to be one."""

    model: ModelName | None = None
    agent: ModelName | None = None
    messages: Annotated[tuple[MessageIn, ...], Meta(max_length=10_000)] = ()
    input: Content | None = None
    parameters: ParametersShape = ParametersShape()
    session_id: Id | None = None
    on_disconnect: OnDisconnect = "continue"
    on_cut: Literal["end", "continue"] = "end"
    multitask: Multitask = "reject"


class AgainIn(Taken, frozen=True, kw_only=True):
    """For an answer that is to be given again, or gone on with."""

    model: ModelName | None = None
    parameters: ParametersShape = ParametersShape()
    on_disconnect: OnDisconnect = "continue"
    multitask: Multitask = "reject"


class GoOnIn(AgainIn, frozen=True, kw_only=True):
    session_id: (
        Annotated[Id, Meta(description="a fork that has a copy of the answer; else where it was given")] | None
    ) = None


class SaidIn(AgainIn, frozen=True, kw_only=True):
    content: Content = ""
    parts: PartsIn = ()


class StopIn(Taken, frozen=True, kw_only=True):
    wait_s: Annotated[float, Meta(ge=0, le=60)] = 5.0


class ApprovalIn(Taken, frozen=True, kw_only=True):
    decision: Literal["yes", "no"]
    arguments_digest: Annotated[str, Meta(max_length=128, description="of the arguments that were shown")]
    reason: Annotated[str, Meta(max_length=10_000)] | None = None
    remember: Literal["session"] | None = None


class CallShape(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    name: str
    arguments: str
    state: CallState
    result: str | None = None


class AttemptShape(Given, frozen=True, kw_only=True):
    upstream: str
    model: str
    reason: str
    status: int | None


class RunSummary(Given, frozen=True, kw_only=True):
    """A run, without what its log amounts to."""

    id: str
    session_id: str | None
    model: str
    status: Status
    outcome: Outcome | None
    on_disconnect: OnDisconnect
    recorded: bool
    continues: str | None
    answered_by: str | None
    usage: Usage
    created_at: datetime
    started_at: datetime | None
    first_token_at: datetime | None
    ended_at: datetime | None


class RunShape(RunSummary, frozen=True, kw_only=True):
    """All of a run, as far as it is committed: what is said here and `last_seq` are of one moment."""

    last_seq: int
    text: str
    reasoning: str
    tool_calls: tuple[CallShape, ...]
    attempts: tuple[AttemptShape, ...]
    last_token_at: datetime | None
    """With `first_token_at`, how fast they came. Null also where the log is no longer kept."""
    last_event_at: datetime | None


class RunPage(Given, frozen=True, kw_only=True):
    runs: tuple[RunSummary, ...]
    next: str | None


class Stopping(Given, frozen=True, kw_only=True):
    run: RunShape
    caused_by_this_call: bool
    upstream_closed: bool | Literal["unknown"]


class ApprovalShape(Given, frozen=True, kw_only=True):
    call_id: str
    decision: Literal["yes", "no"]
    by: str
    at: datetime
    reason: str | None
    remember: Literal["session"] | None


class Asked(Given, frozen=True, kw_only=True):
    """A run has begun, or waits for its turn, and what was said with it."""

    message: MessageItem | None
    run: RunShape


# ---------------------------------------------------------------------- sessions


class SessionIn(Taken, frozen=True, kw_only=True):
    id: Annotated[str, Meta(pattern="^[A-Za-z0-9_.:~-]{1,128}$", description="else one is made")] | None = None
    title: Title | None = None
    parameters: SessionParametersShape = SessionParametersShape()


class SessionPatch(Taken, frozen=True, kw_only=True):
    """What is left out stays. `parameters` are replaced as a whole."""

    title: Title | None = None
    parameters: SessionParametersShape | None = None
    head_id: Annotated[Name, Meta(description="a message whose branch is to be shown")] | None = None
    read_id: Annotated[Name, Meta(description="the last message that was seen")] | None = None


class ForkIn(Taken, frozen=True, kw_only=True):
    message_id: Id


class SessionShape(Given, frozen=True, kw_only=True):
    id: str
    title: str | None
    created_at: datetime
    updated_at: datetime
    parameters: SessionParametersShape
    head_id: str | None
    read_id: str | None
    group_id: str | None
    forked_from: str | None
    queue_paused: bool


class SessionNow(SessionShape, frozen=True, kw_only=True):
    active_run_id: str | None
    """Running, or waiting for somebody."""
    queued: int


class SessionPage(Given, frozen=True, kw_only=True):
    sessions: tuple[SessionShape, ...]
    next: str | None


class MessageShape(MessageItem, frozen=True, kw_only=True, tag="message"):
    """`sessions.view` gives the fields after `siblings` with the model's messages only."""

    reasoning: str | UnsetType = UNSET
    tool_calls: tuple[CallItem, ...] | UnsetType = UNSET
    model: str | UnsetType | None = UNSET
    answered_by: str | UnsetType | None = UNSET
    usage: Usage | UnsetType | None = UNSET
    outcome: Outcome | UnsetType | None = UNSET
    continues: str | UnsetType | None = UNSET


class Messages(Given, frozen=True, kw_only=True):
    items: tuple[MessageShape | NoticeItem, ...]


class QueueItem(Given, frozen=True, kw_only=True):
    run: RunSummary
    content: str
    parts: tuple[Part, ...]


class QueueShape(Given, frozen=True, kw_only=True):
    paused: bool
    items: tuple[QueueItem, ...]


class QueueEdit(Taken, frozen=True, kw_only=True):
    run_id: Id
    content: Content = ""
    parts: PartsIn = ()


class QueuePatch(Taken, frozen=True, kw_only=True):
    order: Annotated[tuple[Id, ...], Meta(max_length=1000, description="runs that come first, in this order")] = ()
    edit: QueueEdit | None = None
    resume: bool = False


class HitShape(Given, frozen=True, kw_only=True):
    session_id: str
    message_id: str
    title: str | None
    snippet: str
    created_at: datetime


class Hits(Given, frozen=True, kw_only=True):
    hits: tuple[HitShape, ...]


# ------------------------------------------------------------------- blobs, keys


class BlobShape(Given, frozen=True, kw_only=True):
    hash: str
    media_type: str
    size_bytes: int


class LoginIn(Taken, frozen=True, kw_only=True):
    key: Annotated[str, Meta(min_length=1, max_length=1000)]


class Me(Given, frozen=True, kw_only=True):
    owner: str
    scopes: tuple[Scope, ...]
    models: tuple[str, ...]
    key_id: str | None
    """Null: there are no keys, and whoever is at this machine is let in."""
    default_model: str | None
    """What answers where no model is named."""


# -------------------------------------------------------------------------- query


class RunsQuery(Taken, frozen=True, kw_only=True):
    status: Status | None = None
    session_id: Id | None = None
    all: Annotated[bool, Meta(description="everybody's; needs the scope `admin`")] = False
    limit: Limit = 50
    before: Place | None = None


class EventsQuery(Taken, frozen=True, kw_only=True):
    after: Annotated[Seq, Meta(description="the last `seq` that is known; a `Last-Event-ID` goes before it")] = -1


class ManyQuery(Taken, frozen=True, kw_only=True):
    runs: Annotated[
        str,
        Meta(
            max_length=20_000,
            pattern=NAME_PATTERN,
            description="`run:seq,run:seq`, as in `?runs=run_a:12,run_b:-1`",
        ),
    ] = ""


class PageQuery(Taken, frozen=True, kw_only=True):
    limit: Limit = 50
    before: Place | None = None


class MessagesQuery(Taken, frozen=True, kw_only=True):
    head_id: Id | None = None


class SearchQuery(Taken, frozen=True, kw_only=True):
    q: Annotated[str, Meta(min_length=1, max_length=1000)]
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class QueueQuery(Taken, frozen=True, kw_only=True):
    run_id: Annotated[Name, Meta(description="this one only; else all")] | None = None


class ExportQuery(Taken, frozen=True, kw_only=True):
    format: Literal["md", "json"] = "md"


# ------------------------------------------------------------------------- errors


class ErrorShape(Given, frozen=True, kw_only=True):
    """Facts of the error may stand beside these."""

    code: str
    message: str


class ErrorAnswer(Given, frozen=True, kw_only=True):
    error: ErrorShape
