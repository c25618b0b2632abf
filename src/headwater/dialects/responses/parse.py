"""A Responses request, as clients send it, into ours."""

from typing import Annotated, Any, Final, Literal, assert_never

import msgspec
from msgspec import Meta, Struct

from headwater.conversation import (
    Ask,
    Effort,
    Extras,
    JsonSchema,
    NamedTool,
    OutputFormat,
    Parameters,
    Request,
    System,
    Text,
    Tool,
    ToolChoice,
)
from headwater.dialects.parsing import Metadata, SessionId, convert, parse, unsupported
from headwater.dialects.responses.items import read_input
from headwater.errors import CallerError

# --------------------------------------------------------------- wire types


class _Wire(Struct, forbid_unknown_fields=True):
    pass


class _Tool(_Wire):
    type: Literal["function"]
    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_.-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _NamedTool(_Wire):
    type: Literal["function"]
    name: str


class _TextFormat(_Wire, tag_field="type", tag="text"):
    pass


class _JsonFormat(_Wire, tag_field="type", tag="json_object"):
    pass


class _SchemaFormat(_Wire, tag_field="type", tag="json_schema"):
    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class _Text(_Wire):
    format: _TextFormat | _JsonFormat | _SchemaFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class _Reasoning(_Wire):
    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class _StreamOptions(_Wire):
    include_obfuscation: bool | None = None


_Count = Annotated[int, Meta(ge=1)]
_Penalty = Annotated[float, Meta(ge=-2, le=2)]


class ResponsesRequest(_Wire):
    """Every field that we take. What is not here is refused."""

    input: str | Annotated[list[dict[str, Any]], Meta(min_length=1)]
    model: str | None = None
    instructions: str | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_output_tokens: _Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Literal["auto", "none", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: _Text | None = None
    reasoning: _Reasoning | None = None
    include: list[str] | None = None
    store: bool | None = None
    background: bool | None = None
    previous_response_id: Annotated[str, Meta(min_length=1)] | None = None
    metadata: Metadata | None = None
    # Ours.
    session_id: SessionId | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_cut: Literal["end", "continue"] | None = None
    # Taken only with the one value that changes nothing.
    top_logprobs: int | None = None
    conversation: Any = None
    prompt: Any = None
    # Of servers of this dialect, and carried to them as they are.
    truncation: Literal["auto", "disabled"] | None = None
    service_tier: str | None = None
    max_tool_calls: _Count | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None


EXTRAS: Final = (
    "truncation",
    "service_tier",
    "max_tool_calls",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
)
_INCLUDABLE: Final = "reasoning.encrypted_content"

_decoder = msgspec.json.Decoder(ResponsesRequest)


# ------------------------------------------------------------------- parsing


def parse_request(body: bytes) -> Ask:
    wire = parse(_decoder, body)
    _refuse_what_we_lack(wire)
    _refuse_what_contradicts(wire)
    system = [System((Text(wire.instructions),))] if wire.instructions else []
    tools = tuple(_tool(tool, f"tools[{n}]") for n, tool in enumerate(wire.tools or ()))
    extras = _extras(wire)
    request = Request(
        messages=(*system, *read_input(wire.input)),
        model=wire.model,
        tools=tools,
        tool_choice=_tool_choice(wire, tools),
        parameters=_parameters(wire),
        extras=Extras("responses", extras) if extras else None,
    )
    background = wire.background or False
    return Ask(
        request,
        stream=wire.stream or False,
        include_usage=True,
        session_id=wire.session_id,
        on_disconnect=wire.on_disconnect or ("continue" if background else "cancel"),
        on_cut=wire.on_cut or "end",
        store=wire.store is not False,
        background=background,
        previous_response_id=wire.previous_response_id,
        echo=_echo(wire, request),
    )


def _refuse_what_we_lack(wire: ResponsesRequest) -> None:
    if wire.top_logprobs:
        raise unsupported("top_logprobs", "log probabilities are not carried.")
    if wire.conversation is not None:
        raise unsupported("conversation", "give a 'session_id' or a 'previous_response_id' for that.")
    if wire.prompt is not None:
        raise unsupported("prompt", "prompts are not kept here; send 'instructions' and 'input'.")
    for n, name in enumerate(wire.include or ()):
        if name != _INCLUDABLE:
            raise CallerError(
                f"'{name}' can't be included: only '{_INCLUDABLE}' can.",
                code="unsupported_value",
                param=f"include[{n}]",
            )


def _refuse_what_contradicts(wire: ResponsesRequest) -> None:
    if wire.stream_options is not None and wire.stream_options.include_obfuscation:
        raise unsupported("stream_options.include_obfuscation", "streams are not padded.")
    if wire.stream_options is not None and not wire.stream:
        raise CallerError("'stream_options' goes with 'stream: true' only.", param="stream_options")
    if wire.background and wire.store is False:
        raise CallerError("'background' needs 'store': there is no other way to the answer.", param="background")
    if wire.background and wire.on_disconnect == "cancel":
        raise CallerError(
            "'background' goes on without its client: 'on_disconnect' can't be 'cancel'.", param="background"
        )
    if wire.previous_response_id is not None and wire.session_id is not None:
        raise CallerError(
            "'previous_response_id' and 'session_id' each bring a history: give one of them.",
            param="previous_response_id",
        )


def _parameters(wire: ResponsesRequest) -> Parameters:
    return Parameters(
        max_tokens=wire.max_output_tokens,
        temperature=wire.temperature,
        top_p=wire.top_p,
        presence_penalty=wire.presence_penalty,
        frequency_penalty=wire.frequency_penalty,
        parallel_tool_calls=wire.parallel_tool_calls,
        reasoning_effort=wire.reasoning.effort if wire.reasoning else None,
        output=_output(wire.text),
    )


def _output(text: _Text | None) -> OutputFormat:
    match text.format if text is not None else None:
        case None | _TextFormat():
            return "text"
        case _JsonFormat():
            return "json_object"
        case _SchemaFormat(name=name, schema=schema, description=description, strict=strict):
            return JsonSchema(name, schema, description, strict)
        case unreachable:
            assert_never(unreachable)


def _extras(wire: ResponsesRequest) -> dict[str, Any]:
    """Two stand inside fields that all dialects have in some form: `render` puts them back there."""
    extras = {name: value for name in EXTRAS if (value := getattr(wire, name)) is not None}
    if wire.text and wire.text.verbosity:
        extras["verbosity"] = wire.text.verbosity
    if wire.reasoning and wire.reasoning.summary:
        extras["summary"] = wire.reasoning.summary
    return extras


def _tool(tool: dict[str, Any], path: str) -> Tool:
    if tool.get("type") not in (None, "function"):
        raise CallerError(
            f"'{path}' is a tool of type '{tool['type']}', which can't be used here: only functions are carried.",
            code="unsupported_value",
            param=f"{path}.type",
        )
    function = convert(tool, _Tool, path)
    strict: bool | Literal["if_possible"] = "if_possible" if function.strict is None else function.strict
    return Tool(function.name, function.description, function.parameters, strict)


def _tool_choice(wire: ResponsesRequest, tools: tuple[Tool, ...]) -> ToolChoice | None:
    choice = wire.tool_choice
    if choice not in (None, "none", "auto") and not tools:
        raise CallerError("'tool_choice' needs 'tools' to choose from.", param="tool_choice")
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") not in (None, "function"):
        raise CallerError(
            f"'tool_choice' of type '{choice['type']}' can't be used here: name one function, or a mode.",
            code="unsupported_value",
            param="tool_choice.type",
        )
    name = convert(choice, _NamedTool, "tool_choice").name
    if name not in [tool.name for tool in tools]:
        raise CallerError(f"'tool_choice' names '{name}', which is not in 'tools'.", param="tool_choice")
    return NamedTool(name)


# -------------------------------------------------------------------- answer


def _echo(wire: ResponsesRequest, request: Request) -> dict[str, Any]:
    """What the response object repeats, as far as the request has said it."""
    said = {
        "background": wire.background,
        "frequency_penalty": wire.frequency_penalty,
        "instructions": wire.instructions,
        "max_output_tokens": wire.max_output_tokens,
        "metadata": wire.metadata,
        "parallel_tool_calls": wire.parallel_tool_calls,
        "presence_penalty": wire.presence_penalty,
        "previous_response_id": wire.previous_response_id,
        "reasoning": wire.reasoning,
        "store": wire.store,
        "temperature": wire.temperature,
        "text": wire.text and _echo_text(wire.text),
        "tool_choice": wire.tool_choice,
        "tools": [_echo_tool(tool) for tool in request.tools],
        "top_p": wire.top_p,
        **{name: getattr(wire, name) for name in EXTRAS},
    }
    return {name: msgspec.to_builtins(value) for name, value in said.items() if value is not None}


def _echo_text(text: _Text) -> dict[str, Any]:
    echo = {"format": text.format or _TextFormat(), "verbosity": text.verbosity}
    return {name: value for name, value in echo.items() if value is not None}


def _echo_tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": None if tool.strict == "if_possible" else tool.strict,
    }
