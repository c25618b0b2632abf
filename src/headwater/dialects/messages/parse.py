"""A Messages request, as clients send it, into ours."""

from typing import Annotated, Any, Final, Literal, assert_never

import msgspec
from msgspec import UNSET, Meta, Struct

from headwater.conversation import (
    Ask,
    Effort,
    Extras,
    JsonSchema,
    Message,
    NamedTool,
    OutputFormat,
    Parameters,
    Request,
    System,
    Tool,
    ToolChoice,
)
from headwater.dialects.messages.content import CacheControl, TextBlock, read_cache, read_message, read_texts
from headwater.dialects.parsing import SessionId, convert, parse, unsupported
from headwater.errors import CallerError


class _Wire(Struct, forbid_unknown_fields=True):
    pass


class _Turn(_Wire):
    role: Literal["user", "assistant", "system"]
    content: str | list[dict[str, Any]]


class _Tool(_Wire):
    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]
    input_schema: dict[str, Any]
    type: Literal["custom"] | None = None
    description: str | None = None
    strict: bool | None = None
    cache_control: CacheControl | None = None
    # Carried as they are, to this dialect only.
    allowed_callers: Any = UNSET
    defer_loading: Any = UNSET
    eager_input_streaming: Any = UNSET
    input_examples: Any = UNSET


class _Choice(_Wire):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class _Thinking(_Wire):
    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: Annotated[int, Meta(ge=1024)] | None = None
    display: Literal["summarized", "omitted"] | None = None


class _Format(_Wire):
    type: Literal["json_schema"]
    schema: dict[str, Any]


class _OutputConfig(_Wire):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: _Format | None = None


class _Metadata(_Wire):
    user_id: str | None = None


_Share = Annotated[float, Meta(ge=0, le=1)]


class MessagesRequest(_Wire):
    """Every field that we take. What is not here is refused."""

    messages: Annotated[list[_Turn], Meta(min_length=1)]
    max_tokens: Annotated[int, Meta(ge=1)]
    model: str | None = None
    system: str | list[TextBlock] | None = None
    stream: bool | None = None
    temperature: _Share | None = None
    top_p: _Share | None = None
    stop_sequences: list[str] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: _Choice | None = None
    thinking: _Thinking | None = None
    output_config: _OutputConfig | None = None
    output_format: _Format | None = None
    # Ours.
    session_id: SessionId | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_cut: Literal["end", "continue"] | None = None
    # Carried as they are, to this dialect only.
    metadata: _Metadata | None = None
    cache_control: CacheControl | None = None
    top_k: Annotated[int, Meta(ge=0)] | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    context_management: dict[str, Any] | None = None
    inference_geo: str | None = None
    speed: Literal["standard", "fast"] | None = None


_CARRIED: Final = (
    "metadata",
    "cache_control",
    "top_k",
    "service_tier",
    "context_management",
    "inference_geo",
    "speed",
    "thinking",
)
_TOOL_EXTRAS: Final = tuple(field.name for field in msgspec.structs.fields(_Tool) if field.default is UNSET)

_decoder = msgspec.json.Decoder(MessagesRequest)


def parse_request(body: bytes) -> Ask:
    wire = parse(_decoder, body)
    tools = [_tool(tool, f"tools[{n}]") for n, tool in enumerate(wire.tools or ())]
    _check_names([tool.name for tool in tools])
    extras = _extras(wire)
    request = Request(
        messages=_messages(wire),
        model=wire.model,
        tools=tuple(tools),
        tool_choice=_tool_choice(wire.tool_choice, [tool.name for tool in tools]),
        parameters=_parameters(wire),
        extras=Extras("messages", extras) if extras else None,
    )
    return Ask(
        request,
        stream=wire.stream or False,
        session_id=wire.session_id,
        on_disconnect=wire.on_disconnect or "cancel",
        on_cut=wire.on_cut or "end",
    )


def _messages(wire: MessagesRequest) -> tuple[Message, ...]:
    messages: list[Message] = []
    if wire.system:
        messages.append(System(read_texts(wire.system)))
    for n, turn in enumerate(wire.messages):
        messages += read_message(turn.role, turn.content, f"messages[{n}].content")
    return tuple(messages)


# --------------------------------------------------------------------- tools


def _tool(wire: dict[str, Any], path: str) -> Tool:
    kind = wire.get("type")
    if kind not in (None, "custom"):
        raise unsupported(f"{path}.type", f"'{kind}' is a tool that its provider runs, and is not carried.")
    tool = convert(wire, _Tool, path)
    extras = {name: value for name in _TOOL_EXTRAS if (value := getattr(tool, name)) is not UNSET}
    return Tool(
        tool.name,
        tool.description,
        tool.input_schema,
        tool.strict,
        read_cache(tool.cache_control),
        Extras("messages", extras) if extras else None,
    )


def _check_names(names: list[str]) -> None:
    places = {name: place for place, name in enumerate(names)}
    for place, name in enumerate(names):
        if places[name] != place:
            message = f"'tools' has '{name}' more than once: names must be unique."
            raise CallerError(message, param=f"tools[{places[name]}].name")


def _tool_choice(choice: _Choice | None, names: list[str]) -> ToolChoice | None:
    if choice is None:
        return None
    if choice.type in ("any", "tool") and not names:
        raise CallerError("'tool_choice' needs 'tools' to choose from.", param="tool_choice")
    match choice.type:
        case "auto" | "none" as word:
            return word
        case "any":
            return "required"
        case "tool":
            if choice.name not in names:
                message = f"'tool_choice' names {choice.name!r}, which is not in 'tools'."
                raise CallerError(message, param="tool_choice.name")
            return NamedTool(choice.name)
        case unreachable:
            assert_never(unreachable)


# ---------------------------------------------------------------- parameters


def _parameters(wire: MessagesRequest) -> Parameters:
    single = wire.tool_choice is not None and wire.tool_choice.disable_parallel_tool_use
    return Parameters(
        max_tokens=wire.max_tokens,
        temperature=wire.temperature,
        top_p=wire.top_p,
        stop=tuple(wire.stop_sequences or ()),
        parallel_tool_calls=False if single else None,
        reasoning_effort=_effort(wire),
        output=_output(wire),
    )


def _effort(wire: MessagesRequest) -> Effort | None:
    """For an upstream of another dialect: one of this gets the client's own words, from the extras."""
    thinking = wire.thinking
    if thinking is not None and thinking.type == "enabled":
        _check_budget(thinking, wire.max_tokens)
    if thinking is not None and thinking.type == "disabled":
        return "none"
    if wire.output_config is not None and wire.output_config.effort is not None:
        return wire.output_config.effort
    if thinking is None or thinking.budget_tokens is None:
        return None
    return "low" if thinking.budget_tokens < 4096 else "medium" if thinking.budget_tokens < 16384 else "high"


def _check_budget(thinking: _Thinking, max_tokens: int) -> None:
    if thinking.budget_tokens is None:
        raise CallerError("'thinking.budget_tokens' is missing.", param="thinking.budget_tokens")
    if thinking.budget_tokens >= max_tokens:
        message = "'thinking.budget_tokens' must be less than 'max_tokens'."
        raise CallerError(message, param="thinking.budget_tokens")


def _output(wire: MessagesRequest) -> OutputFormat:
    format = (wire.output_config and wire.output_config.format) or wire.output_format
    # Here a schema is always a promise, as it is elsewhere only when it is strict.
    return "text" if format is None else JsonSchema("output", format.schema, strict=True)


def _extras(wire: MessagesRequest) -> dict[str, Any]:
    extras = {name: _plain(value) for name in _CARRIED if (value := getattr(wire, name)) is not None}
    if wire.output_config is not None and wire.output_config.effort is not None:
        extras["output_config"] = {"effort": wire.output_config.effort}
    return extras


def _plain(value: Any) -> Any:
    """As it came: a struct's fields that were given."""
    if not isinstance(value, Struct):
        return value
    return {name: given for name, given in msgspec.structs.asdict(value).items() if given is not None}
