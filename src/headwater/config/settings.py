"""Everything that can be set: its type, its default, the range that makes sense, and a line about it.

Values only. `schema` reads the types, so that the checks, `headwater config show` and
docs/configuration.md all say the same; `load` fills them from files and the environment.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from headwater.config.secret import Secret, SecretUrl
from headwater.events import DialectName, FailureStyle
from headwater.policy import Prefill

# 30 years; what is longer, event loops can't wait for.
_LONGEST_S = 1e9
# What a JSON number holds exactly.
_MOST = 2**53

Seconds = Annotated[float, Meta(ge=0, le=_LONGEST_S)]
PositiveSeconds = Annotated[float, Meta(gt=0, le=_LONGEST_S)]
Count = Annotated[int, Meta(ge=0, le=_MOST)]
PositiveCount = Annotated[int, Meta(ge=1, le=_MOST)]
Name = Annotated[str, Meta(min_length=1)]

# The rows of `upstream.providers`, which is above this layer; a test holds them together.
ProviderName = Literal[
    "openai",
    "anthropic",
    "ollama",
    "vllm",
    "llama.cpp",
    "lmstudio",
    "openrouter",
    "gemini",
    "deepseek",
    "deepseek-beta",
    "mistral",
    "demo",
    "generic",
]


def about(what: str) -> Meta:
    return Meta(description=what)


class Section(Struct, frozen=True, kw_only=True):
    pass


class KeySettings(Section, frozen=True, kw_only=True):
    """A key that a client may come with."""

    owner: Annotated[Name, about("whose it is")]
    key: Annotated[Secret, about("at least 16 characters")]
    scopes: Annotated[tuple[Literal["chat", "approve", "admin"], ...], about("`admin`: all runs, and metrics")] = (
        "chat",
    )
    models: Annotated[tuple[Name, ...], about("patterns of the models that it may ask for")] = ("*",)
    requests_per_minute: Annotated[PositiveCount, about("more are refused")] = 600
    concurrent_runs: Annotated[PositiveCount, about("per worker")] = 50


class ServerSettings(Section, frozen=True, kw_only=True):
    """Where it listens, to whom, and how it answers."""

    host: Annotated[Name, about("an address of this machine")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535), about("0 takes any free one")] = 8790
    workers: Annotated[int, Meta(ge=1, le=1024), about("processes on this address; more than one needs Postgres")] = 1
    default_model: Annotated[Name | None, about("for requests that name none")] = None
    failure_style: Annotated[FailureStyle, about("how a chat stream says that it failed (docs/endings.md)")] = "error"
    drain_s: Annotated[Seconds, about("how long open runs may go on after the server was told to end")] = 30.0
    heartbeat_s: Annotated[PositiveSeconds, about("a comment is sent after so much silence")] = 15.0
    linger_s: Annotated[
        Seconds, about("a native run with `on_disconnect: cancel` goes on for so long with nobody following")
    ] = 15.0
    behind_limit_bytes: Annotated[
        PositiveCount, about("an unrecorded run's upstream is not read while its client is so far behind")
    ] = 256 * 1024
    max_body_bytes: Annotated[PositiveCount, about("of a request; more is refused")] = 32 * 1024 * 1024
    request_timeout_s: Annotated[
        PositiveSeconds, about("a request that is not whole by then, or never comes, is not waited for")
    ] = 60.0
    trusted_proxies: Annotated[tuple[Name, ...], about("addresses or networks whose forwarding headers count")] = ()
    allowed_hosts: Annotated[
        tuple[Name, ...], about("names that it may be called by; none, or `*`: any, and without keys only loopback's")
    ] = ()
    base_path: Annotated[str, about("the path under which a proxy serves it, e.g. `/headwater`")] = ""
    cors_origins: Annotated[
        tuple[Name, ...], about("other origins whose pages may ask, with a key: `https://app.example.com`")
    ] = ()
    log_format: Annotated[
        Literal["auto", "json", "text"], about("`auto`: text on a terminal, else a line of JSON each")
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], about("`info` has a line for each run that has ended")
    ] = "info"
    traces: Annotated[
        bool, about("OpenTelemetry spans, sent as its own `OTEL_…` variables say; takes `headwater[otel]`")
    ] = False
    keys: tuple[KeySettings, ...] = ()


class StoreSettings(Section, frozen=True, kw_only=True):
    """What is kept, where, and for how long."""

    url: Annotated[SecretUrl, about("`sqlite:PATH`, `postgresql://…` or `memory:`")] = SecretUrl(
        "sqlite:~/.local/share/headwater/headwater.db"
    )
    durability: Annotated[
        Literal["process", "power"], about("survives a killed process; `power`: also a power failure")
    ] = "process"
    lease_s: Annotated[
        float, Meta(ge=1, le=3600), about("Postgres: a worker that was not heard of for so long is dead")
    ] = 15.0
    keep_logs_days: Annotated[float, Meta(ge=0, le=36_500), about("event logs; messages stay until deleted")] = 7.0
    keep_idempotency_hours: Annotated[float, Meta(ge=0, le=876_000), about("answers to an `Idempotency-Key`")] = 24.0
    max_unfollowed_s: Annotated[PositiveSeconds, about("a run that nobody follows for so long is stopped")] = 3600.0
    tail_bytes: Annotated[Count, about("of a run's log, kept in memory; older parts are read back")] = 64 * 1024


class UpstreamSettings(Section, frozen=True, kw_only=True):
    """A model endpoint."""

    dialect: Annotated[DialectName, about("what it speaks")] = "chat"
    base_url: Annotated[str, about("its address, with the `/v1` or what else its paths begin with")]
    api_key: Annotated[tuple[Secret, ...], about("one, or a list that rotates")] = ()
    provider: Annotated[ProviderName | None, about("whose oddities to expect; not set: by the address")] = None
    headers: Annotated[dict[str, Secret], about("sent with every request")] = field(default_factory=dict)
    retries: Annotated[int, Meta(ge=0, le=100), about("on top of the first attempt")] = 2
    backoff_s: Annotated[Seconds, about("before the first retry; doubles with each")] = 0.5
    backoff_cap_s: Annotated[Seconds, about("it grows no longer")] = 8.0
    retry_after_cap_s: Annotated[Seconds, about("an upstream that asks for more patience is given up")] = 30.0
    continuations: Annotated[Count, about("how often a cut answer is gone on with, where that is asked for")] = 3
    connect_timeout_s: Annotated[PositiveSeconds, about("DNS, TCP and TLS")] = 10.0
    first_token_timeout_s: Annotated[PositiveSeconds, about("until the first token, and between two items")] = 120.0
    idle_timeout_s: Annotated[PositiveSeconds, about("silence after a token")] = 60.0
    total_timeout_s: Annotated[PositiveSeconds, about("one attempt")] = 3600.0
    max_connections: Annotated[PositiveCount, about("at a time")] = 1000
    limit_bytes: Annotated[PositiveCount, about("of one answer")] = 64 * 1024 * 1024
    cool_down_s: Annotated[Seconds, about("one that keeps failing is left alone for so long")] = 30.0
    cool_down_after: Annotated[PositiveCount, about("turns that have failed in a row")] = 3
    not_streaming_s: Annotated[Seconds, about("for how long it is remembered that a model can't stream")] = 600.0
    list_models: Annotated[bool, about("offer the models that it lists")] = True
    list_models_ttl_s: Annotated[Seconds, about("for how long a list is good")] = 300.0
    think_tags: Annotated[Literal["auto", "off"], about("`off`: a `<think>` is text")] = "auto"
    needs_finish_reason: Annotated[
        bool | None, about("without one an answer was cut; not set: as its provider is known, else true")
    ] = None
    allow_empty: Annotated[bool, about("an empty answer is an answer")] = False
    prefill: Annotated[Prefill | None, about("how a model is made to go on; not set: as its provider is known")] = None
    record: Annotated[bool, about("keep raw bytes with their timing")] = False
    record_dir: Annotated[Name | None, about("where; not set: `recordings` beside the database")] = None
    omit: Annotated[tuple[Name, ...], about("fields of the request that it refuses")] = ()


class ModelSettings(Section, frozen=True, kw_only=True):
    """A name that clients may ask for."""

    name: Annotated[Name, about("what clients ask for")]
    upstream: Annotated[Name, about("a name under `[upstreams]`, or `demo`")]
    model: Annotated[Name | None, about("what the upstream is asked for; not set: the name")] = None
    fallbacks: Annotated[tuple[Name, ...], about("other models, asked in turn")] = ()
    prefill: Annotated[Prefill | None, about("where it differs from its upstream's")] = None
    max_tokens: Annotated[PositiveCount | None, about("told to a dialect that must be told a limit")] = None
    context_tokens: Annotated[
        PositiveCount | None, about("what fits into its context; the oldest of a session is left out beyond it")
    ] = None
    thinking: Annotated[
        Literal["adaptive", "budget", "none"] | None, about("how it is asked to; not set: as its provider is known")
    ] = None


class AgentSettings(Section, frozen=True, kw_only=True):
    """An agent, listed as a model, too: the built-in loop around a `model`, or your own in `python`."""

    model: Annotated[Name | None, about("the model that the loop asks")] = None
    python: Annotated[Name | None, about("`package.module:name` of your own agent")] = None
    system: Annotated[str | None, about("its instructions")] = None
    tools: Annotated[tuple[Name, ...], about("names under `[mcp]`")] = ()
    max_turns: Annotated[PositiveCount, about("then it ends as incomplete")] = 20
    max_tokens: Annotated[PositiveCount | None, about("of one turn")] = None
    budget_tokens: Annotated[
        PositiveCount | None, about("read and written, over all turns; then it ends as incomplete")
    ] = None
    result_limit_chars: Annotated[PositiveCount, about("of one result; the rest is cut off, with a note")] = 50_000
    approve: Annotated[tuple[Name, ...], about("tools that wait for a person: `server.tool`, with `*`")] = ()
    approve_timeout_s: Annotated[PositiveSeconds, about("for so long; then the answer is no")] = 86_400.0
    cleanup_timeout_s: Annotated[Seconds, about("for your own agent's cleanup when it is stopped")] = 10.0


class McpSettings(Section, frozen=True, kw_only=True):
    """A server of tools: a `command` to start, or a `url`."""

    command: Annotated[tuple[str, ...], about("the program and its arguments")] = ()
    url: Annotated[SecretUrl | None, about("of one that runs already")] = None
    env: Annotated[dict[str, Secret], about("variables for the command")] = field(default_factory=dict)
    cwd: Annotated[Name | None, about("its working folder")] = None
    headers: Annotated[dict[str, Secret], about("sent with every request to the url")] = field(default_factory=dict)
    start_timeout_s: Annotated[PositiveSeconds, about("until it can be used")] = 30.0
    timeout_s: Annotated[PositiveSeconds, about("one call")] = 60.0
    cancel_timeout_s: Annotated[
        float, Meta(ge=0, le=3), about("a call that was cancelled may still answer for so long")
    ] = 1.0
    idle_s: Annotated[PositiveSeconds, about("one that nobody calls for so long is ended, and started again")] = 600.0
    limit_bytes: Annotated[PositiveCount, about("of one message; one that sends more is ended")] = 16 * 1024 * 1024
    scope: Annotated[Literal["session", "shared"], about("a process for each session, or one for all")] = "session"


class Settings(Section, frozen=True, kw_only=True):
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    upstreams: dict[str, UpstreamSettings] = field(default_factory=dict)
    models: tuple[ModelSettings, ...] = ()
    agents: dict[str, AgentSettings] = field(default_factory=dict)
    mcp: dict[str, McpSettings] = field(default_factory=dict)
