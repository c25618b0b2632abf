"""A chat completion request, as clients send it, into ours."""

from operator import attrgetter
from typing import Any, Final, assert_never

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from headwater.conversation import (
    Ask,
    Assistant,
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
from headwater.dialects.chat.wire import (
    AssistantMessage,
    AudioPart,
    ChatRequest,
    ChosenTool,
    FilePart,
    FunctionCall,
    ImagePart,
    JsonFormat,
    RefusalPart,
    SchemaFormat,
    SystemMessage,
    TextFormat,
    TextPart,
    ToolFunction,
    ToolMessage,
    UserMessage,
    VisiblePart,
)
from headwater.dialects.extras import METADATA
from headwater.dialects.parsing import parse, unsupported
from headwater.errors import CallerError

EXTRAS: Final = tuple(field.name for field in msgspec.structs.fields(ChatRequest) if field.default is UNSET)

_decoder = msgspec.json.Decoder(ChatRequest)
_extras = attrgetter(*EXTRAS)
_FIRST_OPTION: Final = ChatRequest.__struct_fields__.index("max_tokens")
_NO_EXTRAS: Final = (UNSET,) * len(EXTRAS)
_NO_OPTIONS: Final = astuple(ChatRequest([]))[_FIRST_OPTION:]


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
    extras = _extras_of(wire)
    return Request(
        messages,
        wire.model,
        tools=tuple(_tool(tool.function) for tool in wire.tools or ()),
        tool_choice=_tool_choice(wire),
        parameters=_parameters(wire),
        extras=Extras("chat", extras) if extras else None,
    )


def _extras_of(wire: ChatRequest) -> dict[str, Any]:
    given = _extras(wire)
    extras = {}
    if given != _NO_EXTRAS:
        extras = {name: value for name, value in zip(EXTRAS, given, strict=True) if value not in (UNSET, None)}
    return extras | {METADATA: wire.metadata} if wire.metadata else extras


_NOT_CARRIED: Final = {
    "store": "answers are kept in sessions; give a 'session_id' for that.",
    "logprobs": "log probabilities are not carried.",
    "top_logprobs": "log probabilities are not carried.",
    "audio": "only text is carried.",
    "moderation": "what a moderation finds is not carried.",
    "functions": "it is the old form of 'tools'; give those.",
    "function_call": "it is the old form of 'tool_choice'; give that, and 'tools'.",
}


def _refuse_what_we_lack(wire: ChatRequest) -> None:
    if wire.n is not None and wire.n > 1:
        raise unsupported("n", "one answer at a time.")
    for name, why in _NOT_CARRIED.items():
        if getattr(wire, name):
            raise unsupported(name, why)
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
        case None | TextFormat():
            return "text"
        case JsonFormat():
            return "json_object"
        case SchemaFormat(json_schema=schema):
            return JsonSchema(schema.name, schema.schema, schema.description, schema.strict)
        case unreachable:
            assert_never(unreachable)


def _tool(function: ToolFunction) -> Tool:
    return Tool(function.name, function.description, function.parameters, function.strict)


def _tool_choice(wire: ChatRequest) -> ToolChoice | None:
    choice = wire.tool_choice
    if choice is None:
        return None
    names = [tool.function.name for tool in wire.tools or ()]
    if choice not in ("none", "auto") and not names:
        raise CallerError("'tool_choice' needs 'tools' to choose from.", param="tool_choice")
    if not isinstance(choice, ChosenTool):
        return choice
    if choice.function.name not in names:
        raise CallerError(
            f"'tool_choice' names '{choice.function.name}', which is not in 'tools'.", param="tool_choice"
        )
    return NamedTool(choice.function.name)


# ------------------------------------------------------------------ messages


def _message(wire: SystemMessage | UserMessage | AssistantMessage | ToolMessage, place: int) -> Message:
    match wire:
        case UserMessage(content=content, name=name):
            return User((Text(content),) if isinstance(content, str) else tuple(map(_visible, content)), name)
        case AssistantMessage():
            return _assistant(wire, f"messages[{place}]")
        case ToolMessage(tool_call_id=call_id, content=content, name=name):
            return ToolOutput(call_id, _texts(content), name=name)
        case SystemMessage(content=content, name=name):  # and _Developer, its younger name
            return System(_texts(content), name)
        case unreachable:
            assert_never(unreachable)


def _texts(content: str | list[TextPart]) -> tuple[Text, ...]:
    return (Text(content),) if isinstance(content, str) else tuple(Text(part.text) for part in content)


def _visible(part: VisiblePart) -> Text | Image | Opaque:
    match part:
        case TextPart(text=text):
            return Text(text)
        case ImagePart(image_url=image):
            return Image(image.url, image.detail)
        case FilePart(file=file):
            return Opaque("chat", {"type": "file", "file": file})
        case AudioPart(input_audio=audio):
            return Opaque("chat", {"type": "input_audio", "input_audio": audio})
        case unreachable:
            assert_never(unreachable)


def _said(part: TextPart | RefusalPart) -> Text:
    return Text(part.text) if isinstance(part, TextPart) else Text(part.refusal, refusal=True)


def _assistant(wire: AssistantMessage, path: str) -> Assistant:
    if wire.function_call is not None:
        raise unsupported(f"{path}.function_call", "it is the old form of 'tool_calls'; give those.")
    if wire.audio is not None:
        raise unsupported(f"{path}.audio", "only text is carried.")
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
        function = msgspec.convert(wire.get("function"), FunctionCall)
    except msgspec.ValidationError as error:
        message = f"'{path}.function' needs a 'name' and its 'arguments' as text: {error}."
        raise CallerError(message, param=f"{path}.function") from None
    extra = {key: value for key, value in wire.items() if key not in ("id", "type", "function", "index")}
    return ToolCall(id, function.name, function.arguments, extra or None)
