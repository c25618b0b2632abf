"""An answer of a script, made definite for one request: words, calls, ids and counts. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from headwater.simulate.asked import Asked, Tool
from headwater.simulate.script import Answer, Call, Reasoning

_TOKEN: Final = re.compile(r"\s*\S+\s?|\s+$")
_MADE_UP: Final[dict[str, Any]] = {
    "string": "x",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "null": None,
}


class SaidCall(Struct, frozen=True):
    id: str
    name: str
    fragments: tuple[str, ...]
    extras: dict[str, Any]

    @property
    def arguments(self) -> str:
        return "".join(self.fragments)


class SaidReasoning(Struct, frozen=True):
    tokens: tuple[str, ...]
    told: Reasoning


class Said(Struct, frozen=True):
    id: str
    """Without a dialect's prefix, unless the script gave one."""
    own_id: bool
    created: int
    model: str
    tokens: Callable[[], Iterator[str]]
    """Made anew each time: a thousand long answers are never all in memory."""
    reasoning: SaidReasoning | None
    calls: tuple[SaidCall, ...]
    interleaved: bool
    finish: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    usage: Literal["after_finish", "none", "every_chunk", "with_finish"]

    def text(self) -> str:
        return "".join(self.tokens())

    def full_id(self, prefix: str) -> str:
        return self.id if self.own_id else prefix + self.id


def say(answer: Answer, asked: Asked, *, number: int, created: int) -> Said:
    """`number` of the request, so that no two answers have the same ids."""
    tokens, count = _tokens(answer, asked)
    reasoning = _reasoning(answer.reasoning) if answer.reasoning else None
    calls = tuple(_call(call, asked.tools, f"{number}_{n}") for n, call in enumerate(answer.calls))
    thought = len(reasoning.tokens) if reasoning else 0
    counted = count + thought + sum(len(call.fragments) for call in calls)
    usage = answer.usage
    return Said(
        id=answer.id or f"sim{number:08d}",
        own_id=answer.id is not None,
        created=created,
        model=answer.model or asked.model,
        tokens=tokens,
        reasoning=reasoning,
        calls=calls,
        interleaved=answer.interleaved,
        finish=answer.finish or ("tool_calls" if calls else "stop"),
        input_tokens=usage.input_tokens,
        output_tokens=counted if usage.output_tokens is None else usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=thought,
        usage=_when(answer, asked),
    )


def split_tokens(text: str) -> tuple[str, ...]:
    """Words, each with the space after it: what they join to is the text."""
    return tuple(_TOKEN.findall(text))


def _when(answer: Answer, asked: Asked) -> Literal["after_finish", "none", "every_chunk", "with_finish"]:
    send = answer.usage.send
    if "usage" in answer.omit:
        # Where it is no event of its own it is left out of those that have it.
        return "none"
    if send == "as_asked":
        told = asked.dialect != "chat" or asked.include_usage or not asked.stream
        return "after_finish" if told else "none"
    return "after_finish" if send == "always" else send


def _tokens(answer: Answer, asked: Asked) -> tuple[Callable[[], Iterator[str]], int]:
    text = asked.last_text if answer.echo else answer.text
    if text is None and answer.calls:
        text = ""
    if text is None:
        return lambda: _count_up(answer.tokens), answer.tokens
    words = split_tokens(text)
    return lambda: iter(words), len(words)


def _count_up(count: int) -> Iterator[str]:
    return (f"t{n} " for n in range(count))


def _reasoning(told: Reasoning) -> SaidReasoning:
    if told.redacted:
        return SaidReasoning((), told)
    words: Iterable[str] = split_tokens(told.text) if told.text is not None else (f"r{n} " for n in range(told.tokens))
    return SaidReasoning(tuple(words), told)


def _call(call: Call, tools: tuple[Tool, ...], mark: str) -> SaidCall:
    name = call.name or (tools[0].name if tools else "look")
    schema = next((tool.schema for tool in tools if tool.name == name), {})
    arguments = call.arguments
    if arguments is None:
        arguments = make_up(schema)
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    return SaidCall(call.id or f"call_sim{mark}", name, _fragments(arguments, call.fragments), call.extras)


def _fragments(text: str, count: int) -> tuple[str, ...]:
    size = max(1, -(-len(text) // max(1, count)))
    return tuple(text[start : start + size] for start in range(0, len(text), size))


def make_up(schema: Any) -> Any:
    """The least value that fits a JSON schema, as far as models' tools usually have one."""
    if not isinstance(schema, dict):
        return {}
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind != "object":
        return _MADE_UP.get(str(kind))
    properties = schema.get("properties")
    wanted = schema.get("required")
    if not isinstance(properties, dict) or not isinstance(wanted, list):
        return {}
    return {str(name): make_up(properties.get(name)) for name in wanted}
