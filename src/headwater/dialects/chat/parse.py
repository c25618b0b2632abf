"""A chat completion request, as clients send it, into ours."""

from operator import attrgetter
from typing import Annotated, Any, Final, Literal, assert_never

import msgspec
from msgspec import UNSET, Meta, Struct
from msgspec.structs import astuple

from headwater.conversation import (
    Ask,
    Assistant,
    Effort,
    Extras,
    Image,
    JsonSchema,
    Message,
    NamedTool,
    Opaque,
    OutputFormat,
    Parameters,
    Reasoning,
    Request,
    System,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolOutput,
    User,
)
from headwater.dialects.chat.chunk import detail_text
from headwater.dialects.parsing import SessionId, parse, unsupported
from headwater.errors import CallerError

# --------------------------------------------------------------- wire types


class _Wire(Struct, forbid_unknown_fields=True):
    pass


class _TextPart(_Wire, tag_field="type", tag="text"):
    text: str


class _RefusalPart(_Wire, tag_field="type", tag="refusal"):
    refusal: str


class _ImageUrl(_Wire):
    url: Annotated[str, Meta(pattern=r"^(https?:|data:image/)")]
    detail: Literal["auto", "low", "high"] | None = None


class _ImagePart(_Wire, tag_field="type", tag="image_url"):
    image_url: _ImageUrl


_Texts = str | list[_TextPart]
_Name = Annotated[str, Meta(min_length=1, max_length=64)]


class _System(_Wire, tag_field="role", tag="system"):
    content: _Texts
    name: _Name | None = None


class _Developer(_System, tag_field="role", tag="developer"):
    pass


class _User(_Wire, tag_field="role", tag="user"):
    content: str | list[_TextPart | _ImagePart]
    name: _Name | None = None


class _Function(_Wire):
    name: Annotated[str, Meta(min_length=1)]
    arguments: str


class _Assistant(_Wire, tag_field="role", tag="assistant"):
    content: str | list[_TextPart | _RefusalPart] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    name: _Name | None = None
    # What an answer of ours, or of OpenAI's, has as well when it is sent back as it came.
    annotations: list[dict[str, Any]] | None = None
    images: list[dict[str, Any]] | None = None
    audio: None = None
    function_call: None = None


class _ToolMessage(_Wire, tag_field="role", tag="tool"):
    tool_call_id: Annotated[str, Meta(min_length=1)]
    content: _Texts
    name: str | None = None


class _ToolFunction(_Wire):
    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_.-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _Tool(_Wire):
    type: Literal["function"]
    function: _ToolFunction


class _NamedFunction(_Wire):
    name: str


class _NamedTool(_Wire):
    type: Literal["function"]
    function: _NamedFunction


class _TextFormat(_Wire, tag_field="type", tag="text"):
    pass


class _JsonFormat(_Wire, tag_field="type", tag="json_object"):
    pass


class _Schema(_Wire):
    name: Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class _SchemaFormat(_Wire, tag_field="type", tag="json_schema"):
    json_schema: _Schema


class _StreamOptions(_Wire):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


_Count = Annotated[int, Meta(ge=1)]
_Penalty = Annotated[float, Meta(ge=-2, le=2)]


class ChatRequest(_Wire):
    """Every field that we take. What is not here is refused."""

    messages: Annotated[list[_System | _Developer | _User | _Assistant | _ToolMessage], Meta(min_length=1)]
    model: str | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: _Count | None = None
    max_completion_tokens: _Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    tools: list[_Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | _NamedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: _TextFormat | _JsonFormat | _SchemaFormat | None = None
    reasoning_effort: Effort | None = None
    # Ours.
    session_id: SessionId | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_cut: Literal["end", "continue"] | None = None
    # Taken only with the one value that changes nothing.
    n: Annotated[int, Meta(ge=1)] | None = None
    store: bool | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None
    # Of some servers of this dialect, and carried to them as they are.
    top_k: Any = UNSET
    min_p: Any = UNSET
    typical_p: Any = UNSET
    repetition_penalty: Any = UNSET
    logit_bias: Any = UNSET
    min_tokens: Any = UNSET
    user: Any = UNSET
    safety_identifier: Any = UNSET
    prompt_cache_key: Any = UNSET
    service_tier: Any = UNSET
    verbosity: Any = UNSET
    prediction: Any = UNSET
    web_search_options: Any = UNSET
    reasoning: Any = UNSET
    thinking: Any = UNSET
    enable_thinking: Any = UNSET
    chat_template_kwargs: Any = UNSET
    provider: Any = UNSET
    transforms: Any = UNSET
    guided_json: Any = UNSET
    guided_regex: Any = UNSET
    guided_choice: Any = UNSET
    guided_grammar: Any = UNSET
    grammar: Any = UNSET
    options: Any = UNSET
    keep_alive: Any = UNSET


EXTRAS: Final = tuple(field.name for field in msgspec.structs.fields(ChatRequest) if field.default is UNSET)

_decoder = msgspec.json.Decoder(ChatRequest)
_extras = attrgetter(*EXTRAS)
_FIRST_OPTION: Final = ChatRequest.__struct_fields__.index("max_tokens")
_NO_EXTRAS: Final = (UNSET,) * len(EXTRAS)
_NO_OPTIONS: Final = astuple(ChatRequest([]))[_FIRST_OPTION:]


# ------------------------------------------------------------------- parsing


def parse_request(body: bytes) -> Ask:
    wire = parse(_decoder, body)
    # Most requests have none: to look for each took longer than to read the JSON.
    optionless = astuple(wire)[_FIRST_OPTION:] == _NO_OPTIONS
    if not optionless or wire.stream_options is not None:
        _refuse_what_we_lack(wire)
    messages = tuple([_message(message, n) for n, message in enumerate(wire.messages)])
    return Ask(
        Request(messages, wire.model) if optionless else _with_options(messages, wire),
        stream=wire.stream or False,
        include_usage=bool(wire.stream_options and wire.stream_options.include_usage),
        session_id=wire.session_id,
        on_disconnect=wire.on_disconnect or "cancel",
        on_cut=wire.on_cut or "end",
    )


def _with_options(messages: tuple[Message, ...], wire: ChatRequest) -> Request:
    extras = _extras(wire)
    return Request(
        messages,
        wire.model,
        tools=tuple(_tool(tool.function) for tool in wire.tools or ()),
        tool_choice=_tool_choice(wire),
        parameters=_parameters(wire),
        extras=None if extras == _NO_EXTRAS else Extras("chat", _given(extras)),
    )


def _given(extras: tuple[Any, ...]) -> dict[str, Any]:
    return {name: value for name, value in zip(EXTRAS, extras, strict=True) if value is not UNSET}


def _refuse_what_we_lack(wire: ChatRequest) -> None:
    if wire.n is not None and wire.n > 1:
        raise unsupported("n", "one answer at a time.")
    if wire.store:
        raise unsupported("store", "answers are kept in sessions; give a 'session_id' for that.")
    if wire.logprobs:
        raise unsupported("logprobs", "log probabilities are not carried.")
    if wire.modalities not in (None, ["text"]):
        raise unsupported("modalities", "only text is carried.")
    if wire.stream_options is not None and not wire.stream:
        raise CallerError("'stream_options' goes with 'stream: true' only.", param="stream_options")
    if wire.stream_options is not None and wire.stream_options.include_obfuscation:
        raise unsupported("stream_options.include_obfuscation", "streams are not padded.")


def _parameters(wire: ChatRequest) -> Parameters:
    limits = {wire.max_tokens, wire.max_completion_tokens} - {None}
    if len(limits) > 1:
        raise CallerError("'max_tokens' and 'max_completion_tokens' differ: give one of them.", param="max_tokens")
    return Parameters(
        max_tokens=next(iter(limits), None),
        temperature=wire.temperature,
        top_p=wire.top_p,
        stop=(wire.stop,) if isinstance(wire.stop, str) else tuple(wire.stop or ()),
        seed=wire.seed,
        presence_penalty=wire.presence_penalty,
        frequency_penalty=wire.frequency_penalty,
        parallel_tool_calls=wire.parallel_tool_calls,
        reasoning_effort=wire.reasoning_effort,
        output=_output(wire),
    )


def _output(wire: ChatRequest) -> OutputFormat:
    match wire.response_format:
        case None | _TextFormat():
            return "text"
        case _JsonFormat():
            return "json_object"
        case _SchemaFormat(json_schema=schema):
            return JsonSchema(schema.name, schema.schema, schema.description, schema.strict)
        case unreachable:
            assert_never(unreachable)


def _tool(function: _ToolFunction) -> Tool:
    return Tool(function.name, function.description, function.parameters, function.strict)


def _tool_choice(wire: ChatRequest) -> ToolChoice | None:
    choice = wire.tool_choice
    if choice is None:
        return None
    names = [tool.function.name for tool in wire.tools or ()]
    if choice not in ("none", "auto") and not names:
        raise CallerError("'tool_choice' needs 'tools' to choose from.", param="tool_choice")
    if not isinstance(choice, _NamedTool):
        return choice
    if choice.function.name not in names:
        raise CallerError(
            f"'tool_choice' names '{choice.function.name}', which is not in 'tools'.", param="tool_choice"
        )
    return NamedTool(choice.function.name)


# ------------------------------------------------------------------ messages


def _message(wire: _System | _User | _Assistant | _ToolMessage, place: int) -> Message:
    match wire:
        case _User(content=content, name=name):
            return User((Text(content),) if isinstance(content, str) else tuple(map(_visible, content)), name)
        case _Assistant():
            return _assistant(wire, f"messages[{place}]")
        case _ToolMessage(tool_call_id=call_id, content=content, name=name):
            return ToolOutput(call_id, _texts(content), name=name)
        case _System(content=content, name=name):  # and _Developer, its younger name
            return System(_texts(content), name)
        case unreachable:
            assert_never(unreachable)


def _texts(content: str | list[_TextPart]) -> tuple[Text, ...]:
    return (Text(content),) if isinstance(content, str) else tuple(Text(part.text) for part in content)


def _visible(part: _TextPart | _ImagePart) -> Text | Image:
    return Text(part.text) if isinstance(part, _TextPart) else Image(part.image_url.url, part.image_url.detail)


def _said(part: _TextPart | _RefusalPart) -> Text:
    return Text(part.text) if isinstance(part, _TextPart) else Text(part.refusal, refusal=True)


def _assistant(wire: _Assistant, path: str) -> Assistant:
    reasoning = wire.reasoning_content or wire.reasoning or "".join(map(detail_text, wire.reasoning_details or ()))
    parts: list[Text | Reasoning | ToolCall | Opaque] = []
    if wire.reasoning_details:
        parts.append(Reasoning(reasoning, "chat", {"reasoning_details": wire.reasoning_details}))
    elif reasoning:
        parts.append(Reasoning(reasoning))
    parts += [Text(wire.content)] if isinstance(wire.content, str) else map(_said, wire.content or ())
    if wire.refusal:
        parts.append(Text(wire.refusal, refusal=True))
    if wire.annotations:
        parts.append(Opaque("chat", {"type": "message", "annotations": wire.annotations}))
    if wire.images:
        parts.append(Opaque("chat", {"type": "images", "images": wire.images}))
    parts += [_tool_call(call, f"{path}.tool_calls[{n}]") for n, call in enumerate(wire.tool_calls or ())]
    return Assistant(tuple(part for part in parts if not isinstance(part, Text) or part.text), wire.name)


def _tool_call(wire: dict[str, Any], path: str) -> ToolCall:
    """By hand, since a provider may have added fields of its own, which must go back to it."""
    id = wire.get("id")
    if not isinstance(id, str) or not id:
        raise CallerError(f"'{path}.id' is missing: every tool call has one.", param=f"{path}.id")
    if wire.get("type", "function") != "function":
        raise CallerError(f"'{path}.type' can only be 'function'.", code="unsupported_value", param=f"{path}.type")
    try:
        function = msgspec.convert(wire.get("function"), _Function)
    except msgspec.ValidationError as error:
        message = f"'{path}.function' needs a 'name' and its 'arguments' as text: {error}."
        raise CallerError(message, param=f"{path}.function") from None
    extra = {key: value for key, value in wire.items() if key not in ("id", "type", "function", "index")}
    return ToolCall(id, function.name, function.arguments, extra or None)
