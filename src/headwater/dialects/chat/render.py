"""Our request, as a chat completions upstream is asked."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, assert_never

import msgspec
from msgspec.structs import replace

from headwater.conversation import (
    Assistant,
    Image,
    JsonSchema,
    NamedTool,
    Opaque,
    OutputFormat,
    Parameters,
    Request,
    System,
    Target,
    Text,
    Tool,
    ToolOutput,
    User,
)
from headwater.dialects import extras
from headwater.dialects.chat.encode import reasoning_details, remarks, write_call
from headwater.dialects.chat.said import Said
from headwater.dialects.history import NOTHING_SAID, plain_name, settled

_MAX_ID_CHARS: Final = 40
ODD_IN_NAME: Final = re.compile(r"[\s<|\\/>]+")
_FROM_TOOLS: Final = "Images from the tool results above:"
_NO_PARAMETERS: Final = Parameters()


def render_request(request: Request, target: Target) -> bytes:
    fields: dict[str, Any] = {"model": target.model, "messages": _messages(request, target), "stream": target.stream}
    if target.stream:
        fields["stream_options"] = {"include_usage": True}
    if request.parameters != _NO_PARAMETERS or request.tools:
        fields |= _options(request, target)
    fields["store"] = False
    if request.extras is not None:
        fields |= extras.told(request.extras, "chat")
    if target.omit or request.extras is not None:
        fields = {name: value for name, value in fields.items() if value is not None and name not in target.omit}
    return msgspec.json.encode(fields)


def _options(request: Request, target: Target) -> dict[str, Any]:
    parameters = request.parameters
    options = {
        target.max_tokens_field: parameters.max_tokens,
        "temperature": parameters.temperature,
        "top_p": parameters.top_p,
        "stop": list(parameters.stop) or None,
        "seed": parameters.seed,
        "presence_penalty": parameters.presence_penalty,
        "frequency_penalty": parameters.frequency_penalty,
        "reasoning_effort": parameters.reasoning_effort,
        "response_format": _format(parameters.output),
        "tools": [_tool(tool) for tool in request.tools] or None,
        "tool_choice": _choice(request) if request.tools else None,
        "parallel_tool_calls": parameters.parallel_tool_calls if request.tools else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": None if tool.strict == "if_possible" else tool.strict,
    }
    return {"type": "function", "function": {name: value for name, value in function.items() if value is not None}}


def _choice(request: Request) -> Any:
    choice = request.tool_choice
    return {"type": "function", "function": {"name": choice.name}} if isinstance(choice, NamedTool) else choice


def _format(output: OutputFormat) -> dict[str, Any] | None:
    match output:
        case "text":
            return None
        case "json_object":
            return {"type": "json_object"}
        case JsonSchema():
            return {"type": "json_schema", "json_schema": output}
        case unreachable:
            assert_never(unreachable)


# ------------------------------------------------------------------ history


def _messages(request: Request, target: Target) -> list[dict[str, Any]]:
    def fits(message: Assistant, id: str) -> bool:
        # Another provider's ids, which a client may bring, too, can be longer than OpenAI takes.
        # Its own go back as they are.
        own = message.origin is not None and message.origin == target.origin
        return bool(id) and (own or len(id) <= _MAX_ID_CHARS)

    declared = [tool.name for tool in request.tools]
    written: list[dict[str, Any]] = []
    pictures: list[Image] = []
    for message in settled(request.messages, fits):
        if pictures and not isinstance(message, ToolOutput):
            written += _shown(pictures)
        match message:
            case User(parts=parts, name=name):
                written += _said("user", parts, name)
            case System(parts=parts, name=name):
                written += _said("system", parts, name)
            case Assistant():
                written += _assistant(message, target, declared)
            case ToolOutput(call_id=call_id, parts=parts, name=name):
                # A tool's message takes text alone: its images follow the results as the user's.
                pictures += [part for part in parts if isinstance(part, Image)]
                texts = [part for part in parts if isinstance(part, Text) and part.text]
                written.append({"role": "tool", "tool_call_id": call_id, "content": _content(texts)} | _named(name))
            case unreachable:
                assert_never(unreachable)
    if pictures:
        written += _shown(pictures)
    return written or _said("user", (Text(NOTHING_SAID),))


def _ours(message: Assistant, target: Target) -> bool:
    return message.origin in (None, target.origin)


def _shown(pictures: list[Image]) -> list[dict[str, Any]]:
    """The images of the results before, and no longer waiting."""
    shown = _said("user", (Text(_FROM_TOOLS), *pictures))
    pictures.clear()
    return shown


def _said(role: str, parts: tuple[Text | Image | Opaque, ...], name: str | None = None) -> list[dict[str, Any]]:
    """No message at all, if it has nothing to say."""
    visible = [part for part in parts if _is_told(part)]
    if not visible:
        return []
    said = {"role": role, "content": _content(visible)}
    return [said | _named(name) if name else said]


def _is_told(part: Text | Image | Opaque) -> bool:
    if type(part) is Text:
        return bool(part.text)
    return type(part) is Image or (type(part) is Opaque and part.dialect == "chat")


def _named(name: str | None) -> dict[str, str]:
    return {"name": ODD_IN_NAME.sub("_", name)} if name else {}


def _content(parts: Sequence[Text | Image | Opaque]) -> Any:
    """Plain text where it is nothing else: every compatible server takes that."""
    if len(parts) == 1 and type(parts[0]) is Text:
        return parts[0].text
    return [_part(part) for part in parts] if parts else ""


def _part(part: Text | Image | Opaque) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Opaque):
        return part.data
    image = {"url": part.url} | ({"detail": part.detail} if part.detail else {})
    return {"type": "image_url", "image_url": image}


def _says_something(message: Assistant) -> bool:
    return bool(message.tool_calls) or any(isinstance(part, Text) and part.text for part in message.parts)


def left_out(request: Request, target: Target) -> Iterator[str]:
    """What of this dialect's own goes with a turn that has no text and no call, and would be refused."""
    for message in request.messages:
        if isinstance(message, Assistant) and _ours(message, target) and not _says_something(message):
            yield from remarks(message)
            yield from ["reasoning_details"] if reasoning_details(message) else []


def _assistant(message: Assistant, target: Target, declared: list[str]) -> list[dict[str, Any]]:
    said = Said(message)
    ours = _ours(message, target)
    calls = [
        write_call(replace(call, name=plain_name(call.name, declared), extra=call.extra if ours else None))
        for call in message.tool_calls
    ]
    if not _says_something(message):
        return []
    fields: dict[str, Any] = {
        "content": said.text or None,
        "refusal": said.refusal or None,
        "tool_calls": calls or None,
        "reasoning_details": (ours and reasoning_details(message)) or None,
    }
    fields |= _named(message.name) | (remarks(message) if ours else {})
    if target.reasoning_field is not None and said.reasoning:
        fields[target.reasoning_field] = said.reasoning
    return [{"role": "assistant"} | {name: value for name, value in fields.items() if value is not None}]
