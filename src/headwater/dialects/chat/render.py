"""Our request, as a chat completions upstream is asked."""

from typing import Any, assert_never

import msgspec

from headwater.conversation import (
    Assistant,
    Image,
    JsonSchema,
    Message,
    NamedTool,
    OutputFormat,
    Request,
    System,
    Target,
    Text,
    Tool,
    ToolOutput,
    User,
)
from headwater.dialects.chat.encode import reasoning_details, write_call


def render_request(request: Request, target: Target) -> bytes:
    parameters = request.parameters
    fields: dict[str, Any] = {
        "model": target.model,
        "messages": [_message(message, target) for message in request.messages],
        "stream": target.stream,
        "stream_options": {"include_usage": True} if target.stream else None,
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
        "store": False,
    }
    if request.extras is not None and request.extras.dialect == "chat":
        fields.update(request.extras.fields)
    return msgspec.json.encode(
        {name: value for name, value in fields.items() if value is not None and name not in target.omit}
    )


def _tool(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
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


def _message(message: Message, target: Target) -> dict[str, Any]:
    match message:
        case System(parts=parts):
            return {"role": "system", "content": _content(parts)}
        case User(parts=parts, name=name):
            return {"role": "user", "content": _content(parts)} | ({"name": name} if name else {})
        case Assistant():
            return _assistant(message, target)
        case ToolOutput(call_id=call_id, parts=parts):
            return {"role": "tool", "tool_call_id": call_id, "content": _content(parts)}
        case unreachable:
            assert_never(unreachable)


def _content(parts: tuple[Text | Image, ...]) -> Any:
    """Plain text where it is nothing else: every compatible server takes that."""
    match parts:
        case (Text(text=text),):
            return text
        case _:
            return [_part(part) for part in parts]


def _part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    image = {"url": part.url} | ({"detail": part.detail} if part.detail else {})
    return {"type": "image_url", "image_url": image}


def _assistant(message: Assistant, target: Target) -> dict[str, Any]:
    texts = [part for part in message.parts if isinstance(part, Text)]
    said = "".join(part.text for part in texts if not part.refusal)
    refused = "".join(part.text for part in texts if part.refusal)
    ours = message.origin in (None, target.origin)
    calls = [write_call(call if ours else msgspec.structs.replace(call, extra=None)) for call in message.tool_calls]
    fields: dict[str, Any] = {
        "content": said or (None if calls or refused else ""),
        "refusal": refused or None,
        "name": message.name,
        "tool_calls": calls or None,
        "reasoning_details": (ours and reasoning_details(message)) or None,
    }
    if target.reasoning_field is not None and message.reasoning:
        fields[target.reasoning_field] = message.reasoning
    return {"role": "assistant"} | {name: value for name, value in fields.items() if value is not None}
