"""Everything that can be set, with its default. Values only; `load` reads them from files and the environment."""

from typing import Literal

from msgspec import Struct, field

from headwater.dialects.base import FailureStyle
from headwater.events import DialectName
from headwater.policy import Prefill


class Secret:
    """A key or a password. It shows itself to nobody who does not ask by name."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class UpstreamSettings(_Section, frozen=True, kw_only=True):
    """One model endpoint."""

    dialect: DialectName = "chat"
    base_url: str
    api_key: tuple[Secret, ...] = ()
    """Several rotate."""
    provider: str | None = None
    """A row of `upstream.providers`; None goes by the address."""
    headers: dict[str, str] = field(default_factory=dict)
    retries: int = 2
    backoff_s: float = 0.5
    backoff_cap_s: float = 8.0
    retry_after_cap_s: float = 30.0
    continuations: int = 3
    connect_timeout_s: float = 10.0
    first_token_timeout_s: float = 120.0
    idle_timeout_s: float = 60.0
    total_timeout_s: float = 3600.0
    max_connections: int = 1000
    limit_bytes: int = 64 * 1024 * 1024
    """Of one answer."""
    cool_down_s: float = 30.0
    """An upstream that keeps failing is left alone for so long while there is another."""
    cool_down_after: int = 3
    """Turns that have failed in a row."""
    not_streaming_s: float = 600.0
    """For how long it is remembered that a model can't stream."""
    list_models: bool = True
    list_models_ttl_s: float = 300.0
    think_tags: Literal["auto", "off"] = "auto"
    needs_finish_reason: bool | None = None
    """None: as the provider's row says; true if that says nothing."""
    allow_empty: bool = False
    prefill: Prefill | None = None
    record: bool = False
    record_dir: str | None = None
    """None: `recordings` beside the database."""
    omit: tuple[str, ...] = ()
    """Fields that this upstream refuses."""


class ModelSettings(_Section, frozen=True, kw_only=True):
    """A name that clients may ask for."""

    name: str
    upstream: str
    model: str | None = None
    """What the upstream is asked for; None: the name."""
    fallbacks: tuple[str, ...] = ()
    """Names of other models."""
    prefill: Prefill | None = None
    max_tokens: int | None = None
    """Told to a dialect that must be told a limit."""
    thinking: Literal["adaptive", "budget", "none"] | None = None


class KeySettings(_Section, frozen=True, kw_only=True):
    owner: str
    key: Secret
    scopes: tuple[Literal["chat", "approve", "admin"], ...] = ("chat",)
    models: tuple[str, ...] = ("*",)
    requests_per_minute: int = 600
    concurrent_runs: int = 50
    """Per worker."""


class ServerSettings(_Section, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int = 8790
    default_model: str | None = None
    failure_style: FailureStyle = "error"
    drain_s: float = 30.0
    heartbeat_s: float = 15.0
    linger_s: float = 15.0
    """A native run with `on_disconnect: cancel` is stopped once nobody has followed it for so long."""
    trusted_proxies: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    base_path: str = ""
    keys: tuple[KeySettings, ...] = ()


class StoreSettings(_Section, frozen=True, kw_only=True):
    url: str = "sqlite:~/.local/share/headwater/headwater.db"
    durability: Literal["process", "power"] = "process"
    keep_logs_days: float = 7.0
    max_unfollowed_s: float = 3600.0


class AgentSettings(_Section, frozen=True, kw_only=True):
    """Either `model` (the built-in loop) or `python` (a user's own)."""

    model: str | None = None
    python: str | None = None
    system: str | None = None
    tools: tuple[str, ...] = ()
    max_turns: int = 20
    max_tokens: int | None = None
    approve: tuple[str, ...] = ()
    approve_timeout_s: float = 86_400.0


class McpSettings(_Section, frozen=True, kw_only=True):
    """Either `command` or `url`."""

    command: tuple[str, ...] = ()
    url: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout_s: float = 60.0
    scope: Literal["session", "shared"] = "session"


class Settings(_Section, frozen=True, kw_only=True):
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    upstreams: dict[str, UpstreamSettings] = field(default_factory=dict)
    models: tuple[ModelSettings, ...] = ()
    agents: dict[str, AgentSettings] = field(default_factory=dict)
    mcp: dict[str, McpSettings] = field(default_factory=dict)
