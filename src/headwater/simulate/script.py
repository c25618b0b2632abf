"""What a simulated model is told to do. Values only: `load` reads them from TOML, `names` from a model's name.

A script is a list of answers; an answer says what is said, how it is written to the wire, and what goes wrong.
"""

from typing import Any, Final, Literal, get_args

from msgspec import Struct, field

from headwater.events import DialectName

Point = Literal[
    "before_head",
    "in_head",
    "after_head",
    "after_tokens",
    "in_arguments",
    "before_finish",
    "after_finish",
    "before_terminator",
    "after_terminator",
]
"""Where a fault strikes. In the Responses dialect one event is both the finish and the terminator."""

POINTS: Final[tuple[Point, ...]] = get_args(Point)
COUNTED: Final = ("after_tokens", "in_arguments")


class _Value(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


# ---------------------------------------------------------------------- faults


class _Fault(_Value, frozen=True, kw_only=True, tag_field="kind"):
    at: Point = "after_tokens"
    tokens: int = 0
    """After so many tokens of text and reasoning; with `in_arguments`, after so many fragments of them (at least 1)."""

    def __post_init__(self) -> None:
        if self.tokens and self.at not in COUNTED:
            raise ValueError(f"`tokens` counts only with at = {' or '.join(map(repr, COUNTED))}, not {self.at!r}")


class _BodyFault(_Fault, frozen=True, kw_only=True):
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at in ("before_head", "in_head"):
            raise ValueError(f"it is something in the body: {self.at!r} is too early, 'after_head' is the first place")


class Cut(_Fault, frozen=True, kw_only=True, tag="cut"):
    """The body ends there, cleanly: nothing but what is missing tells that it was cut."""


class Fin(_Fault, frozen=True, kw_only=True, tag="fin"):
    """The connection is closed (FIN) in the middle of a chunk."""


class Reset(_Fault, frozen=True, kw_only=True, tag="reset"):
    """The connection is reset (RST)."""


class Stall(_Fault, frozen=True, kw_only=True, tag="stall"):
    """Silence, for ever or for `seconds`; then it goes on. Before the head it is a slow head."""

    seconds: float | None = None
    keep_alive_s: float | None = None
    """A comment, or the dialect's ping, so often during the silence."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep_alive_s is not None and self.keep_alive_s <= 0:
            raise ValueError("`keep_alive_s` must be more than 0")
        if self.keep_alive_s is not None and self.at in ("before_head", "in_head"):
            raise ValueError(f"`keep_alive_s` needs a body to write into: {self.at!r} is too early")


class StreamError(_BodyFault, frozen=True, kw_only=True, tag="error"):
    """An error object in the stream, in the dialect's own shape, then a clean end. Not streamed, it is a 500."""

    message: str = "The server had an error while processing your request."
    type: str | None = None
    """E.g. `overloaded_error`. None: what the dialect calls a server's error."""
    code: str | None = None
    body: dict[str, Any] | None = None
    """The frame's JSON, if it is to be another than the dialect's."""


class BadChunk(_BodyFault, frozen=True, kw_only=True, tag="bad_chunk"):
    """A chunk whose size is no number, then FIN."""


class BadJson(_BodyFault, frozen=True, kw_only=True, tag="bad_json"):
    """A frame whose JSON breaks off. The stream goes on."""


class BadUtf8(_BodyFault, frozen=True, kw_only=True, tag="bad_utf8"):
    """A token with bytes that are no UTF-8. The stream goes on."""


class HugeFrame(_BodyFault, frozen=True, kw_only=True, tag="huge_frame"):
    """One more token, of so many bytes. The stream goes on."""

    size_bytes: int = 1024 * 1024


class Raw(_BodyFault, frozen=True, kw_only=True, tag="raw"):
    """These bytes, as they are, into the body. The stream goes on."""

    text: str


Fault = Cut | Fin | Reset | Stall | StreamError | BadChunk | BadJson | BadUtf8 | HugeFrame | Raw


# ------------------------------------------------------------- what is said, and how


class Reasoning(_Value, frozen=True, kw_only=True):
    text: str | None = None
    tokens: int = 8
    """So many made-up ones if there is no `text`."""
    field: Literal["reasoning_content", "reasoning", "think_tags"] = "reasoning_content"
    """How the chat dialect, which has no word of its own for it, tells it."""
    signature: str = "c2ltdWxhdGVkIHNpZ25hdHVyZQ=="
    """Messages: the thinking block's. Responses: the item's encrypted content."""
    redacted: bool = False
    """Messages: a `redacted_thinking` block. Responses: an item with no summary."""


class Call(_Value, frozen=True, kw_only=True):
    name: str | None = None
    """None: the first tool that the request offers."""
    arguments: dict[str, Any] | str | None = None
    """None: made up by the tool's schema. A text is sent as it is, JSON or not."""
    id: str | None = None
    fragments: int = 3
    """The arguments come in so many pieces."""
    extras: dict[str, Any] = field(default_factory=dict)
    """Further fields of the call, e.g. `extra_content`."""


class Usage(_Value, frozen=True, kw_only=True):
    send: Literal["as_asked", "always", "none", "every_chunk", "with_finish"] = "as_asked"
    """`as_asked`: chat only with `stream_options.include_usage`, after the finish; the others in their usual places."""
    input_tokens: int = 12
    output_tokens: int | None = None
    """None: counted."""
    cached_tokens: int = 0


class Pace(_Value, frozen=True, kw_only=True):
    tokens_per_s: float | None = None
    """None: as fast as it goes."""
    head_s: float = 0.0
    """Silence before the head."""
    first_token_s: float = 0.0
    """Silence before the first token."""
    delays_s: tuple[float, ...] = ()
    """Before the first tokens, one by one; `tokens_per_s` holds for the rest."""

    def __post_init__(self) -> None:
        if self.tokens_per_s is not None and self.tokens_per_s <= 0:
            raise ValueError("`tokens_per_s` must be more than 0; leave it out for full speed")


class Writes(_Value, frozen=True, kw_only=True):
    """How bytes become chunks and writes: each piece is a chunk and a write of its own."""

    tokens: int = 1
    """So many tokens in one."""
    every_bytes: int | None = None
    """Cut after so many bytes, wherever that is."""
    seed: int | None = None
    """Cut at random places, the same ones for the same seed, into pieces of up to `up_to_bytes`."""
    up_to_bytes: int = 64
    gap_s: float = 0.0
    """Between the pieces of one write."""
    framing: Literal["chunked", "close"] = "chunked"
    """`close`: no chunks, the end of the connection is the end of the body."""

    def __post_init__(self) -> None:
        if min(self.tokens, self.up_to_bytes, 1 if self.every_bytes is None else self.every_bytes) < 1:
            raise ValueError("`tokens`, `every_bytes` and `up_to_bytes` must be at least 1")


class Http(_Value, frozen=True, kw_only=True):
    """An answer that is no model's: an error, a redirect, a captive portal's page."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | str | None = None
    """None: an error object in the dialect's own shape."""
    message: str | None = None
    """In that error object."""


Omitted = Literal["start", "finish", "usage", "terminator"]


class Answer(_Value, frozen=True, kw_only=True):
    text: str | None = None
    """None: so many made-up `tokens`, or the `echo`."""
    tokens: int = 8
    echo: bool = False
    """Say what was said last: the user's text, or a tool's result."""
    reasoning: Reasoning | None = None
    calls: tuple[Call, ...] = ()
    """With calls there is text only if `text` or `echo` says so."""
    interleaved: bool = False
    """In chat: the fragments of several calls' arguments take turns."""
    finish: str | None = None
    """`stop`, `length`, `tool_calls`, `content_filter` are told in the dialect's own words, any other as it is."""
    usage: Usage = Usage()
    omit: tuple[Omitted, ...] = ()
    """Parts of the stream that never come."""

    pace: Pace = Pace()
    writes: Writes = Writes()
    streaming: Literal["as_asked", "never", "refused"] = "as_asked"
    """`never`: a JSON body even to `stream: true`. `refused`: 400 to `stream: true`, as some servers have it."""
    dialect: DialectName | None = None
    """Answer in this one, whatever was asked."""
    id: str | None = None
    model: str | None = None
    """What the answer says its model is; None: the one that was asked for."""
    headers: dict[str, str] = field(default_factory=dict)
    """Besides the dialect's usual ones, or instead of them."""
    http: Http | None = None

    faults: tuple[Fault, ...] = ()
    times: int = 1
    """For so many requests; the last answer that fits goes on for ever."""
    when: Literal["any", "user", "tool_result"] = "any"
    """Only for a request that ends so."""

    def __post_init__(self) -> None:
        if self.times < 1:
            raise ValueError("`times` must be at least 1")


class Script(_Value, frozen=True, kw_only=True):
    """The first answer that fits the request and is not used up; the last that fits, when all are."""

    answers: tuple[Answer, ...] = (Answer(),)
    like: str | None = None
    """Instead of answers: a name such as `sim/tokens-100@50`."""

    def __post_init__(self) -> None:
        if not self.answers:
            raise ValueError("`answers` must have at least one")


class Scenario(_Value, frozen=True, kw_only=True):
    """A script file."""

    models: dict[str, Script] = field(default_factory=dict)
    """By name; `*` is any name that is not known otherwise."""
    key: str | None = None
    """If set, a request without it is answered 401."""
    strict: bool = True
    """Answer 400 to what the real provider would refuse."""
