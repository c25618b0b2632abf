"""What a request asks for, as far as an answer depends on it. Takes any JSON: the checks say what is wrong with it."""

from typing import Any, Final

from msgspec import Struct

from headwater.events import DialectName

PATHS: Final[dict[str, DialectName]] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}


class Tool(Struct, frozen=True):
    name: str
    schema: dict[str, Any]


class Asked(Struct, frozen=True):
    dialect: DialectName
    model: str
    stream: bool
    include_usage: bool
    last_text: str
    """Of the last message: the user's text, or a tool's result."""
    tool_result: bool
    """The last message is one."""
    tools: tuple[Tool, ...]
    body: dict[str, Any]


def read_asked(dialect: DialectName, body: dict[str, Any]) -> Asked:
    turns = body.get("input") if dialect == "responses" else body.get("messages")
    last = turns[-1] if isinstance(turns, list) and turns else {"content": turns}
    last = last if isinstance(last, dict) else {"content": last}
    options = body.get("stream_options")
    return Asked(
        dialect=dialect,
        model=str(body.get("model", "")),
        stream=body.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        last_text=_text(last.get("output", last.get("content"))),
        tool_result=_is_result(last),
        tools=_tools(body.get("tools")),
        body=body,
    )


def _text(content: Any) -> str:
    """All text in it, however deep: parts have `text`, tool results `content`."""
    match content:
        case str():
            return content
        case list():
            return "".join(map(_text, content))
        case {"text": str(text)}:
            return text
        case {"content": inner}:
            return _text(inner)
        case _:
            return ""


def _is_result(message: dict[str, Any]) -> bool:
    if message.get("role") == "tool" or message.get("type") == "function_call_output":
        return True
    content = message.get("content")
    blocks = content if isinstance(content, list) else ()
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _tools(declared: Any) -> tuple[Tool, ...]:
    tools = []
    for tool in declared if isinstance(declared, list) else ():
        # Chat puts it one level deeper than the others, Messages calls the schema by another name.
        inner = tool.get("function", tool) if isinstance(tool, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            schema = inner.get("parameters", inner.get("input_schema"))
            tools.append(Tool(inner["name"], schema if isinstance(schema, dict) else {}))
    return tuple(tools)
