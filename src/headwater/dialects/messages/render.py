"""Our request, as a Messages upstream is asked. What it is not told is in `dialects.carry`."""

from typing import Any, Final, assert_never

import msgspec

from headwater.conversation import Effort, JsonSchema, NamedTool, OutputFormat, Request, Target, Tool
from headwater.dialects.history import plain_name
from headwater.dialects.messages.turns import MAX_NAME_CHARS, History, limit_marks, write_history
from headwater.dialects.messages.write import cached

_MARKS: Final = 4
_WEIGHED: Final = ("thinking", "output_config")
_LEAST_BUDGET: Final = 1024
_BUDGETS: Final[dict[Effort, int]] = {
    "minimal": _LEAST_BUDGET,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 32768,
    "max": 64000,
}
_EFFORTS: Final[dict[Effort, str]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}


def render_request(request: Request, target: Target) -> bytes:
    history = write_history(request, target)
    tools = _tools(request, history)
    given = _given(request)
    limit_marks(tools, history, _MARKS - ("cache_control" in given))
    parameters = request.parameters
    thinking, effort, budget = _reasoning(request, target, history)
    fields: dict[str, Any] = {
        "model": target.model,
        "max_tokens": parameters.max_tokens or target.default_max_tokens + budget,
        "system": history.system or None,
        "messages": [{"role": turn.role, "content": turn.content} for turn in history.turns],
        "stream": target.stream,
        "temperature": _temperature(parameters.temperature, thinking),
        "top_p": parameters.top_p,
        "stop_sequences": [sequence for sequence in parameters.stop if sequence.strip()] or None,
        "tools": tools or None,
        "tool_choice": _choice(request, tools),
        "thinking": thinking,
        "output_config": (_format(parameters.output) | effort) or None,
        **given,
    }
    return msgspec.json.encode(
        {name: value for name, value in fields.items() if value is not None and name not in target.omit}
    )


def _given(request: Request) -> dict[str, Any]:
    """The client's own words, where it speaks this dialect; but for those that `_reasoning` has to weigh."""
    if request.extras is None or request.extras.dialect != "messages":
        return {}
    return {name: value for name, value in request.extras.fields.items() if name not in _WEIGHED}


# -------------------------------------------------------------------- reasoning


def reasons(request: Request, target: Target) -> bool:
    """The upstream will be asked to reason."""
    thinking, _, _ = _reasoning(request, target, write_history(request, target))
    return thinking is not None and thinking["type"] != "disabled"


def cannot_reason(request: Request, target: Target) -> bool:
    """The client wants reasoning, and the dialect does not allow it here."""
    wanted = request.parameters.reasoning_effort not in (None, "none") or _asked_thinking(request) is not None
    return wanted and not _may_reason(request, target, write_history(request, target))


def _reasoning(request: Request, target: Target, history: History) -> tuple[dict[str, Any] | None, dict[str, Any], int]:
    """`thinking`, the effort for `output_config`, and the tokens that thinking takes for itself."""
    may = _may_reason(request, target, history)
    if request.extras is not None and request.extras.dialect == "messages":
        return _asked_thinking(request) if may else None, request.extras.fields.get("output_config", {}), 0
    effort = request.parameters.reasoning_effort
    if effort == "none":
        return {"type": "disabled"}, {}, 0
    if effort is None or not may:
        return None, {}, 0
    if target.thinking == "adaptive":
        return {"type": "adaptive"}, {"effort": _EFFORTS[effort]}, 0
    limit = request.parameters.max_tokens
    budget = _BUDGETS[effort] if limit is None else max(_LEAST_BUDGET, min(_BUDGETS[effort], limit // 2))
    return {"type": "enabled", "budget_tokens": budget}, {}, budget if limit is None else 0


def _asked_thinking(request: Request) -> dict[str, Any] | None:
    """In this dialect's own words."""
    if request.extras is None or request.extras.dialect != "messages":
        return None
    thinking: dict[str, Any] | None = request.extras.fields.get("thinking")
    return thinking


def _may_reason(request: Request, target: Target, history: History) -> bool:
    # The calls that are answered now were made without signed reasoning, as by another dialect's model.
    turns = history.turns
    unsigned = len(turns) > 1 and bool(turns[-1].results) and not turns[-2].opens_with_thinking
    if (asked := _asked_thinking(request)) is not None:
        return asked["type"] != "enabled" or not unsigned
    forced = bool(request.tools) and request.tool_choice not in (None, "auto", "none")
    if target.thinking == "none" or forced:
        return False
    limit = request.parameters.max_tokens
    return target.thinking == "adaptive" or not (unsigned or (limit is not None and limit <= _LEAST_BUDGET))


# ------------------------------------------------------------------- parameters


def _temperature(temperature: float | None, thinking: dict[str, Any] | None) -> float | None:
    if temperature is None or (thinking is not None and thinking["type"] != "disabled"):
        return None
    return min(temperature, 1.0)


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
        "strict": tool.strict,
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
