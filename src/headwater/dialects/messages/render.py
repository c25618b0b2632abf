"""Our request, as a Messages upstream is asked; and what of it that upstream is not told.

Both come out of one writing, so that they can't disagree.
"""

from typing import Any, Final, assert_never

import msgspec

from headwater.conversation import Effort, JsonSchema, NamedTool, OutputFormat, Request, Target, Tool
from headwater.dialects.base import Note
from headwater.dialects.history import plain_name
from headwater.dialects.messages.turns import MAX_NAME_CHARS, History, limit_marks, write_history
from headwater.dialects.messages.write import cached

_MARKS: Final = 4
_WEIGHED: Final = ("thinking", "output_config")
_NOT_ITS_OWN: Final = "The tools that were called last were not called by this model's own, signed reasoning."
_LEAST_BUDGET: Final = 1024
_BUDGETS: Final[dict[Effort, int]] = {
    "minimal": _LEAST_BUDGET,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 32768,
}
_EFFORTS: Final[dict[Effort, str]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
}


def render_request(request: Request, target: Target) -> bytes:
    fields, _ = _write(request, target)
    return msgspec.json.encode({name: value for name, value in fields.items() if name not in target.omit})


def notes(request: Request, target: Target) -> list[Note]:
    """What the upstream is not told, or not in the client's words."""
    fields, found = _write(request, target)
    return found + [Note(name, "This upstream refuses it.") for name in fields if name in target.omit]


def _write(request: Request, target: Target) -> tuple[dict[str, Any], list[Note]]:
    history = write_history(request, target)
    notes = history.notes
    tools = _tools(request, history)
    given = _given(request, notes)
    limit_marks(tools, history, _MARKS - ("cache_control" in given))
    parameters = request.parameters
    thinking, effort, budget = _reasoning(request, target, history)
    max_tokens = parameters.max_tokens or target.default_max_tokens + budget
    fields: dict[str, Any] = {
        "model": target.model,
        "max_tokens": max_tokens,
        "system": history.system or None,
        "messages": [{"role": turn.role, "content": turn.content} for turn in history.turns],
        "stream": target.stream,
        "temperature": _temperature(parameters.temperature, thinking, notes),
        "top_p": parameters.top_p,
        "stop_sequences": _stop_sequences(parameters.stop, notes),
        "tools": tools or None,
        "tool_choice": _choice(request, tools),
        "thinking": thinking,
        "output_config": (_format(parameters.output, notes) | effort) or None,
    }
    for name in ("seed", "presence_penalty", "frequency_penalty"):
        if getattr(parameters, name) is not None:
            notes.append(Note(name, "This dialect has no such parameter."))
    return {name: value for name, value in (fields | given).items() if value is not None}, notes


def _given(request: Request, notes: list[Note]) -> dict[str, Any]:
    """The client's own words, where it speaks this dialect; but for those that `_reasoning` has to weigh."""
    if request.extras is None:
        return {}
    if request.extras.dialect == "messages":
        return {name: value for name, value in request.extras.fields.items() if name not in _WEIGHED}
    dialect = request.extras.dialect
    notes += [Note(name, f"A parameter of the {dialect} dialect only.") for name in request.extras.fields]
    return {}


# -------------------------------------------------------------------- reasoning


def _reasoning(request: Request, target: Target, history: History) -> tuple[dict[str, Any] | None, dict[str, Any], int]:
    """`thinking`, the effort for `output_config`, and the tokens that thinking takes for itself."""
    extras = request.extras
    if extras is not None and extras.dialect == "messages":
        return _as_asked(extras.fields.get("thinking"), history), extras.fields.get("output_config", {}), 0
    effort = request.parameters.reasoning_effort
    if effort is None:
        return None, {}, 0
    if effort == "none":
        return {"type": "disabled"}, {}, 0
    why = _no_thinking(request, target, history)
    if why is not None:
        history.notes.append(Note("reasoning_effort", why))
        return None, {}, 0
    if target.thinking == "adaptive":
        return {"type": "adaptive"}, {"effort": _EFFORTS[effort]}, 0
    limit = request.parameters.max_tokens
    budget = _BUDGETS[effort] if limit is None else max(_LEAST_BUDGET, min(_BUDGETS[effort], limit // 2))
    return {"type": "enabled", "budget_tokens": budget}, {}, budget if limit is None else 0


def _as_asked(thinking: dict[str, Any] | None, history: History) -> dict[str, Any] | None:
    if thinking is not None and thinking["type"] == "enabled" and _called_without_thinking(history):
        history.notes.append(Note("thinking", _NOT_ITS_OWN))
        return None
    return thinking


def _called_without_thinking(history: History) -> bool:
    """The calls that are answered now were made without signed reasoning, as by another dialect's model."""
    turns = history.turns
    return len(turns) > 1 and bool(turns[-1].results) and not turns[-2].opens_with_thinking


def _no_thinking(request: Request, target: Target, history: History) -> str | None:
    if target.thinking == "none":
        return "This model is not one that reasons."
    if request.tools and request.tool_choice not in (None, "auto", "none"):
        return "This dialect does not let a model reason that is made to call a tool."
    if target.thinking == "adaptive":
        return None
    if (limit := request.parameters.max_tokens) is not None and limit <= _LEAST_BUDGET:
        return f"There is no room for it: thinking takes at least {_LEAST_BUDGET} tokens."
    return _NOT_ITS_OWN if _called_without_thinking(history) else None


# ------------------------------------------------------------------- parameters


def _temperature(temperature: float | None, thinking: dict[str, Any] | None, notes: list[Note]) -> float | None:
    if temperature is None:
        return None
    if thinking is not None and thinking["type"] != "disabled":
        if temperature != 1:
            notes.append(Note("temperature", "A model that reasons has its own."))
        return None
    if temperature > 1:
        notes.append(Note("temperature", f"{temperature:g} is sent as 1, which is the highest here."))
    return min(temperature, 1.0)


def _stop_sequences(stop: tuple[str, ...], notes: list[Note]) -> list[str] | None:
    visible = [sequence for sequence in stop if sequence.strip()]
    if len(visible) < len(stop):
        notes.append(Note("stop", "A stop sequence of white space is not possible here."))
    return visible or None


def _format(output: OutputFormat, notes: list[Note]) -> dict[str, Any]:
    match output:
        case "text":
            return {}
        case JsonSchema(schema=dict(schema)):
            return {"format": {"type": "json_schema", "schema": schema}}
        case "json_object" | JsonSchema():
            notes.append(Note("output", "JSON without a schema can't be demanded here: the prompt has to."))
            return {}
        case unreachable:
            assert_never(unreachable)


# ------------------------------------------------------------------------ tools


def _tools(request: Request, history: History) -> list[dict[str, Any]]:
    if request.tools:
        return [_tool(tool, history.notes) for tool in request.tools]
    # A history of calls needs tools that it can be the history of; `_choice` sees to it that none is called.
    called = {block["name"] for turn in history.turns for block in turn.blocks if block["type"] == "tool_use"}
    return [{"name": name, "input_schema": {"type": "object"}} for name in sorted(called)]


def _tool(tool: Tool, notes: list[Note]) -> dict[str, Any]:
    name = plain_name(tool.name, (), MAX_NAME_CHARS)
    if name != tool.name:
        why = f"The tool '{tool.name}' can't be named so here: letters, digits, '_' and '-', {MAX_NAME_CHARS} at most."
        notes.append(Note("tools.name", why, refuse=True))
    fields = {
        "name": name,
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
