"""What is asked of a model: messages and their parts, tools, parameters.

Our own form, between the dialects: every dialect's request is read into it and
every upstream's request is written from it. Values only, stored as they are.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from headwater.events import DialectName

# -------------------------------------------------------------------- parts

Cache = Literal["5m", "1h"]
"""The provider may keep all that comes up to here in its cache, for so long. Not every dialect has a word for it."""


class _Part(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    pass


class Text(_Part, frozen=True, tag="text"):
    text: str
    refusal: bool = False
    cache: Cache | None = None


class Image(_Part, frozen=True, tag="image"):
    url: str
    """`https:` or `data:`."""
    detail: Literal["auto", "low", "high"] | None = None
    cache: Cache | None = None


class Reasoning(_Part, frozen=True, tag="reasoning"):
    text: str
    dialect: DialectName | None = None
    """Whose `state` it is."""
    state: dict[str, Any] | None = None
    """Signatures and the like: goes back unread, to its own dialect only."""


class ToolCall(_Part, frozen=True, tag="tool_call"):
    id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""
    extra: dict[str, Any] | None = None
    cache: Cache | None = None


class Opaque(_Part, frozen=True, tag="opaque"):
    """An item that only its own dialect understands."""

    dialect: DialectName
    data: dict[str, Any]


def is_remark(item: Mapping[str, Any]) -> bool:
    """Of an opaque item: it says something of the text before it, or of the end, and is nothing to see by itself."""
    kind = str(item.get("type"))
    return kind == "message" or kind.startswith("headwater.")


# ----------------------------------------------------------------- messages


class _Message(Struct, frozen=True, omit_defaults=True, tag_field="role"):
    pass


class System(_Message, frozen=True, tag="system"):
    """Also what some call the developer's: the same authority under a younger name."""

    parts: tuple[Text, ...]
    name: str | None = None


class User(_Message, frozen=True, tag="user"):
    parts: tuple[Text | Image | Opaque, ...]
    name: str | None = None


class Assistant(_Message, frozen=True, tag="assistant"):
    parts: tuple[Text | Reasoning | ToolCall | Opaque, ...] = ()
    name: str | None = None
    origin: str | None = None
    """The upstream that wrote it, None if a client brought it: its extras go back to nobody else."""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if type(part) is Text)

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if type(part) is Reasoning)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple([part for part in self.parts if type(part) is ToolCall])


class ToolOutput(_Message, frozen=True, tag="tool"):
    call_id: str
    parts: tuple[Text | Image | Opaque, ...]
    is_error: bool = False
    cache: Cache | None = None
    name: str | None = None


Message = System | User | Assistant | ToolOutput


# ------------------------------------------------------------------ request


class Extras(Struct, frozen=True):
    """Fields of one dialect that no other has, carried to that dialect as they came."""

    dialect: DialectName
    fields: dict[str, Any]


class Tool(Struct, frozen=True, omit_defaults=True):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """A JSON schema of the arguments; None takes no arguments."""
    strict: bool | Literal["if_possible"] | None = None
    """Arguments keep to the schema; `if_possible` is what the responses dialect does when nothing is said."""
    cache: Cache | None = None
    extras: Extras | None = None


class NamedTool(Struct, frozen=True):
    """The model must call this one."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | NamedTool


class JsonSchema(Struct, frozen=True, omit_defaults=True):
    name: str
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


OutputFormat = Literal["text", "json_object"] | JsonSchema

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Parameters(Struct, frozen=True, omit_defaults=True):
    """What every dialect has in some form. None leaves it to the upstream."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: Effort | None = None
    output: OutputFormat = "text"


class Request(Struct, frozen=True, omit_defaults=True):
    messages: tuple[Message, ...]
    model: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parameters: Parameters = Parameters()
    extras: Extras | None = None


class Ask(Struct, frozen=True):
    """A client's request: what it wants of the model, and how it wants the answer."""

    request: Request
    stream: bool = False
    include_usage: bool = False
    session_id: str | None = None
    on_disconnect: Literal["cancel", "continue"] = "cancel"
    on_cut: Literal["end", "continue"] = "end"
    store: bool = False
    """The answer is to be found by its id later."""
    background: bool = False
    """The client does not wait: it gets the id at once, and comes back."""
    previous_response_id: str | None = None
    """The answer that this one follows: its history comes first."""
    echo: dict[str, Any] = field(default_factory=dict)
    """Fields of the request that the dialect's answer repeats; `Head.echo` takes them to it."""


class Target(Struct, frozen=True, kw_only=True):
    """The upstream that a request is written for, as far as the writing depends on it."""

    model: str
    origin: str | None = None
    """Its name; see `Assistant.origin`."""
    stream: bool = True
    max_tokens_field: str = "max_tokens"
    reasoning_field: str | None = None
    """Where it wants to see its earlier reasoning; most want none."""
    default_max_tokens: int = 16_000
    """For a dialect that must be told a limit, when the client gave none."""
    thinking: Literal["adaptive", "budget", "none"] = "adaptive"
    """How a model of the messages dialect is told to reason: by an effort, by a number of tokens, not at all."""
    omit: frozenset[str] = field(default_factory=frozenset)
    """Fields of ours that this one refuses."""
