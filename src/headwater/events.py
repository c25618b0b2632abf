"""What a run's log is made of: events, outcomes and usage.

Values only. Each has one JSON form, which is stored and is also what native
followers read: a log entry's bytes are made once. Nothing here knows a
provider, a clock or a socket.
"""

from datetime import datetime
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

DialectName = Literal["chat", "responses", "messages"]
FailureStyle = Literal["error", "finish_reason"]
"""How a chat stream says that it failed (docs/endings.md)."""


# ---------------------------------------------------------------- outcomes

FailureReason = Literal[
    "upstream_error",  # it said so, or it broke its own protocol
    "upstream_truncated",  # the stream ended before the answer did
    "upstream_unreachable",  # no connection, or none that lasted to the head
    "stalled",  # silent for longer than its limit
    "refused",  # it said no: a 4xx
    "empty",  # it finished, and had said nothing
    "agent_error",  # a user's own agent raised
    "too_large",  # more than we are willing to hold
]


class Completed(Struct, frozen=True, tag_field="type", tag="completed"):
    """The upstream proved that it was done."""

    reason: Literal["stop", "tool_calls"] = "stop"


class Incomplete(Struct, frozen=True, tag_field="type", tag="incomplete"):
    """An orderly end that is not the whole answer."""

    reason: Literal["length", "content_filter", "turn_limit"]


class Stopped(Struct, frozen=True, tag_field="type", tag="stopped"):
    """Somebody, or something on their behalf, told it to stop."""

    reason: Literal["user", "disconnect", "replaced"]


class Failed(Struct, frozen=True, tag_field="type", tag="failed"):
    """It broke. `message` is for a person; `status` is the upstream's, if it gave one."""

    reason: FailureReason
    message: str
    status: int | None = None
    retryable: bool = False
    """The same request might well succeed if it is sent again."""


class Interrupted(Struct, frozen=True, tag_field="type", tag="interrupted"):
    """We broke: the process, or the store, went away under the run."""

    reason: Literal["crash", "shutdown", "store"]


Outcome = Completed | Incomplete | Stopped | Failed | Interrupted


# ------------------------------------------------------------------- usage


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens used. None is "not known", which is never the same as 0.

    `input_tokens` includes the cached ones, `output_tokens` the reasoning ones.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    source: Literal["provider", "estimated", "unknown"] = "unknown"
    cache_write_tokens: int | None = None
    """Of the input ones: written to the provider's cache, which has a price of its own."""

    def __add__(self, other: "Usage") -> "Usage":
        """The sum over two turns, as sure as the less sure of the two."""
        sure = ("unknown", "estimated", "provider")
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cached_tokens, other.cached_tokens),
            _sum(self.reasoning_tokens, other.reasoning_tokens),
            min(self.source, other.source, key=sure.index),
            _sum(self.cache_write_tokens, other.cache_write_tokens),
        )


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


# ------------------------------------------------------------------ events


class _Event(Struct, frozen=True, omit_defaults=True, gc=False, tag_field="type"):
    pass


class RunStarted(_Event, frozen=True, tag="started"):
    run_id: str
    model: str
    """What the client asked for; `AttemptStarted` says who was asked."""
    at: datetime
    session_id: str | None = None


class AttemptStarted(_Event, frozen=True, tag="attempt"):
    """One request to an upstream is about to be made."""

    upstream: str
    model: str
    turn: int = 0
    """Counts model messages of the run, from 0."""
    reason: Literal["first", "retry", "fallback", "continue", "not_streaming"] = "first"
    because: str | None = None
    """What went wrong with the attempt before, for a person."""
    stands: Literal["nothing", "everything"] = "nothing"
    """How much of what this turn has so far stays: `everything` goes on after it."""


class AttemptEnded(_Event, frozen=True, tag="attempt_end"):
    """What is known of the attempt once it is over; not how the run ends."""

    status: int | None = None
    """Of the HTTP answer; None: there was none."""
    request_id: str | None = None
    """The provider's, for its support."""
    limits: dict[str, str] | None = None
    """Its rate-limit headers."""
    failed: Failed | None = None


class TextDelta(_Event, frozen=True, tag="text"):
    text: str
    refusal: bool = False
    """The model declines, in the field that its provider has for that."""


class ReasoningDelta(_Event, frozen=True, tag="reasoning"):
    text: str


class ToolCallStarted(_Event, frozen=True, tag="tool_call"):
    index: int
    """Dense from 0 within the turn, whatever the upstream counted."""
    id: str
    name: str
    extra: dict[str, Any] | None = None
    """The provider's own fields, sent back to it with the history."""


class ToolArgsDelta(_Event, frozen=True, tag="tool_args"):
    index: int
    text: str


class ToolCallEnded(_Event, frozen=True, tag="tool_call_end"):
    """The upstream says that this call is whole."""

    index: int
    extra: dict[str, Any] | None = None
    """Provider fields that came after the call had started."""


class ToolRunStarted(_Event, frozen=True, tag="tool_run"):
    """Committed before the tool is called: without it, it never ran."""

    call_id: str


class ToolProgress(_Event, frozen=True, tag="tool_progress"):
    call_id: str
    text: str = ""
    done: float | None = None
    total: float | None = None


class ToolResult(_Event, frozen=True, tag="tool_result"):
    call_id: str
    text: str
    images: tuple[str, ...] = ()
    state: Literal["done", "failed", "unknown"] = "done"


class ProviderState(_Event, frozen=True, tag="provider_state"):
    """What only its own dialect understands: kept, and given back to it, unread."""

    dialect: DialectName
    data: dict[str, Any]
    of: Literal["reasoning", "message"] = "message"
    """`reasoning` belongs to the reasoning before it (a signature); else it is an item."""


class UsageReported(_Event, frozen=True, tag="usage"):
    """The turn's usage; a later one for the same turn replaces it."""

    usage: Usage


class Notice(_Event, frozen=True, tag="notice"):
    """Something a person should know, and that is no part of the answer."""

    code: str
    text: str
    tools: tuple[str, ...] = ()
    for_model: bool = False
    """Enters the model's next context; true of `tool_call_dropped` alone."""


class ApprovalAsked(_Event, frozen=True, tag="approval"):
    call_id: str
    name: str
    arguments: str
    arguments_digest: str
    expires_at: datetime | None = None


class ApprovalGiven(_Event, frozen=True, tag="approved"):
    call_id: str
    decision: Literal["yes", "no"]
    reason: str | None = None
    remember: Literal["session"] | None = None
    by: str | None = None


class RunEnded(_Event, frozen=True, tag="ended"):
    outcome: Outcome


Event = (
    RunStarted
    | AttemptStarted
    | AttemptEnded
    | TextDelta
    | ReasoningDelta
    | ToolCallStarted
    | ToolArgsDelta
    | ToolCallEnded
    | ToolRunStarted
    | ToolProgress
    | ToolResult
    | ProviderState
    | UsageReported
    | Notice
    | ApprovalAsked
    | ApprovalGiven
    | RunEnded
)

EVENT_TYPES: Final[tuple[type[Event], ...]] = get_args(Event)


# --------------------------------------------------------------- log entries


class Entry(Struct, frozen=True):
    """An event in its place in the log."""

    seq: int
    t: float
    """Milliseconds since the run started; one reading of the clock per upstream read."""
    event: Event


class _Place(Struct):
    seq: int
    t: float


_event_encoder = msgspec.json.Encoder()
_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_place_decoder = msgspec.json.Decoder(_Place)


PLACED: Final = b'{"seq":%d,"t":%.1f,%b'
"""An entry: its place, then the event's object without its first bracket."""
PLAIN_TEXT: Final = (b'"type":"text","text":"', b'"}')
"""What stands there around a text of the model's that needs no escapes."""


def encode_entry(entry: Entry) -> bytes:
    """The entry's one representation: the event's object, with `seq` and `t` in front."""
    # Spliced, so that events need not carry their place: an object of ours is never empty.
    return PLACED % (entry.seq, entry.t, _event_encoder.encode(entry.event)[1:])


def decode_entry(data: bytes) -> Entry:
    place = _place_decoder.decode(data)
    return Entry(place.seq, place.t, _event_decoder.decode(data))


def wire_name(event: Event) -> str:
    """The SSE event name of the native API; an ending is named for its outcome."""
    if type(event) is RunEnded:
        return f"run.{event.outcome.__struct_config__.tag}"
    return f"run.{event.__struct_config__.tag}"


# ------------------------------------------------------------------------ ids

_CROCKFORD: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = [one + other for one in _CROCKFORD for other in _CROCKFORD]
_LETTERS: Final = _CROCKFORD.encode() * 8
"""For each byte: its lowest five bits."""


def make_id(prefix: str, time_ms: int, entropy: bytes) -> str:
    """`prefix_` and 26 characters that sort by time; `entropy` is sixteen random bytes, of which 80 bits count."""
    if len(entropy) != 16:
        raise ValueError(f"an id takes 16 bytes of entropy, not {len(entropy)}")
    # In a loop it takes twice as long.
    return (
        f"{prefix}_{_PAIRS[time_ms >> 40 & 1023]}{_PAIRS[time_ms >> 30 & 1023]}{_PAIRS[time_ms >> 20 & 1023]}"
        f"{_PAIRS[time_ms >> 10 & 1023]}{_PAIRS[time_ms & 1023]}{entropy.translate(_LETTERS).decode()}"
    )
