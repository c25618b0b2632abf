"""Our request, as a Messages upstream is asked. What it is not told is in `dialects.carry`."""

from typing import Any, Final, assert_never

import msgspec

from headwater.conversation import JsonSchema, NamedTool, OutputFormat, Request, Target, Tool
from headwater.dialects.extras import told
from headwater.dialects.history import plain_name
from headwater.dialects.messages.thinking import Plan, plan
from headwater.dialects.messages.turns import MAX_NAME_CHARS, History, limit_marks, write_history
from headwater.dialects.messages.write import cached

MARKS: Final = 4
"""As many cache marks as the provider takes."""
_WEIGHED: Final = ("thinking", "output_config")


def render_request(request: Request, target: Target) -> bytes:
    history = write_history(request, target)
    tools = _tools(request, history)
    planned = plan(request, target, history)
    given = _given(request, planned)
    limit_marks(tools, history, MARKS - ("cache_control" in given))
    parameters = request.parameters
    fields: dict[str, Any] = {
        "model": target.model,
        "max_tokens": parameters.max_tokens or target.default_max_tokens + planned.budget,
        "system": history.system or None,
        "messages": [{"role": turn.role, "content": turn.content} for turn in history.turns],
        "stream": target.stream,
        "temperature": planned.temperature(parameters.temperature),
        "top_p": planned.top_p(parameters.top_p),
        "stop_sequences": [sequence for sequence in parameters.stop if sequence.strip()] or None,
        "tools": tools or None,
        "tool_choice": _choice(request, tools),
        "thinking": planned.thinking,
        "output_config": (_format(parameters.output) | ({"effort": planned.effort} if planned.effort else {})) or None,
        **given,
    }
    return msgspec.json.encode(
        {name: value for name, value in fields.items() if value is not None and name not in target.omit}
    )


def _given(request: Request, planned: Plan) -> dict[str, Any]:
    """The client's own words, where it speaks this dialect; but for what the plan has weighed."""
    weighed = (*_WEIGHED, "top_k") if planned.on else _WEIGHED
    return {name: value for name, value in told(request.extras, "messages").items() if name not in weighed}


def _format(output: OutputFormat) -> dict[str, Any]:
    match output:
        case JsonSchema(schema=dict(schema)):
            return {"format": {"type": "json_schema", "schema": schema}}
        case "text" | "json_object" | JsonSchema():
            return {}
        case unreachable:
            assert_never(unreachable)


# ------------------------------------------------------------------------ tools


def _tools(request: Request, history: History) -> list[dict[str, Any]]:
    if request.tools:
        return [_tool(tool) for tool in request.tools]
    # A history of calls needs tools that it can be the history of; `_choice` sees to it that none is called.
    called = {block["name"] for turn in history.turns for block in turn.blocks if block["type"] == "tool_use"}
    return [{"name": name, "input_schema": {"type": "object"}} for name in sorted(called)]


def is_name(name: str) -> bool:
    return plain_name(name, (), MAX_NAME_CHARS) == name


def _tool(tool: Tool) -> dict[str, Any]:
    fields = {
        "name": plain_name(tool.name, (), MAX_NAME_CHARS),
        "description": tool.description,
        "input_schema": {"type": "object"} | (tool.parameters or {}),
        "strict": None if tool.strict == "if_possible" else tool.strict,
    }
    if tool.extras is not None and tool.extras.dialect == "messages":
        fields |= tool.extras.fields
    return cached({key: value for key, value in fields.items() if value is not None}, tool.cache)


def _choice(request: Request, tools: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not tools:
        return None
    single = {"disable_parallel_tool_use": True} if request.parameters.parallel_tool_calls is False else {}
    match request.tool_choice if request.tools else "none":
        case None:
            return {"type": "auto"} | single if single else None
        case "none":
            return {"type": "none"}
        case "auto":
            return {"type": "auto"} | single
        case "required":
            return {"type": "any"} | single
        case NamedTool(name=name):
            return {"type": "tool", "name": plain_name(name, (), MAX_NAME_CHARS)} | single
        case unreachable:
            assert_never(unreachable)
