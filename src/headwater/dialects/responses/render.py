"""Our request, as a Responses upstream is asked: with all of its history, and with nothing to be stored.

This dialect has no stop sequences, no seed and no penalties: whoever pairs it
with a client's dialect refuses or notes them.
"""

from typing import Any, Final, assert_never

import msgspec

from headwater.conversation import (
    JsonSchema,
    Message,
    NamedTool,
    OutputFormat,
    Request,
    System,
    Target,
    Tool,
    ToolChoice,
)
from headwater.dialects.extras import told
from headwater.dialects.responses.history import write_input

LEAST_TOKENS: Final = 16
"""Fewer are refused as a limit."""
# What `parse` took out of `text` and `reasoning`.
_NESTED: Final = frozenset({"verbosity", "summary"})


def render_request(request: Request, target: Target) -> bytes:
    parameters = request.parameters
    extras = told(request.extras, "responses")
    instructions, messages = _instructions(request.messages)
    reasoning = {"effort": parameters.reasoning_effort, "summary": extras.get("summary")}
    text = {"format": _format(parameters.output), "verbosity": extras.get("verbosity")}
    fields: dict[str, Any] = {
        "model": target.model,
        "instructions": instructions,
        "input": write_input(messages, target, [tool.name for tool in request.tools]),
        "stream": target.stream,
        "store": False,
        # Without it nothing is left of its thoughts for the next turn. A model that has none refuses it: `omit`.
        "include": ["reasoning.encrypted_content"] if parameters.reasoning_effort != "none" else None,
        "max_output_tokens": parameters.max_tokens and max(parameters.max_tokens, LEAST_TOKENS),
        "temperature": parameters.temperature,
        "top_p": parameters.top_p,
        "reasoning": _given(reasoning),
        "text": _given(text),
        "tools": [_tool(tool) for tool in request.tools] or None,
        "tool_choice": _choice(request.tool_choice) if request.tools else None,
        "parallel_tool_calls": parameters.parallel_tool_calls if request.tools else None,
        **{name: value for name, value in extras.items() if name not in _NESTED},
    }
    return msgspec.json.encode(
        {name: value for name, value in fields.items() if value is not None and name not in target.omit}
    )


def _given(fields: dict[str, Any]) -> dict[str, Any] | None:
    return {name: value for name, value in fields.items() if value is not None} or None


def _instructions(messages: tuple[Message, ...]) -> tuple[str | None, tuple[Message, ...]]:
    """The first system message has a field of its own, but an input may not be empty for that."""
    match messages:
        case (System(parts=parts), _, *_):
            return "\n\n".join(part.text for part in parts if part.text) or None, messages[1:]
        case _:
            return None, messages


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        **({"description": tool.description} if tool.description else {}),
        "parameters": tool.parameters,
        # Left out it is true here, as far as the schema allows: no other dialect means that by leaving it out.
        **({} if tool.strict == "if_possible" else {"strict": tool.strict or False}),
    }


def _choice(choice: ToolChoice | None) -> Any:
    return {"type": "function", "name": choice.name} if isinstance(choice, NamedTool) else choice


def _format(output: OutputFormat) -> dict[str, Any] | None:
    match output:
        case "text":
            return None
        case "json_object":
            return {"type": "json_object"}
        case JsonSchema():
            return {"type": "json_schema", **msgspec.to_builtins(output)}
        case unreachable:
            assert_never(unreachable)
