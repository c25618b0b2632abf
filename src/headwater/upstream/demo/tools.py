"""`demo/tools`: calls a tool that the request offers, and answers with its result."""

import re
from typing import Final

import msgspec

from headwater.upstream.demo.asked import Asked, Offered
from headwater.upstream.demo.fit import fit
from headwater.upstream.demo.script import Beat, Call, Say, Script

_WORD: Final = re.compile(r"[a-z]{3,}")
_SEVERAL: Final = re.compile(r"\b(both|two|twice|parallel|each|all)\b", re.IGNORECASE)
_TOO_COMMON: Final = frozenset(
    {"the", "and", "for", "get", "tool", "with", "that", "this", "from", "you", "use", "call"}
)
_SHOWN_CHARS: Final = 2000

_NO_TOOLS: Final = """\
I would call a tool now, but this request offers none.

Offer me one and ask again. From a client, put it into `tools`:

```json
{"type": "function", "function": {"name": "get_weather", "description": "The weather of a place",
 "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}}
```

I pick the tool whose name and description fit your words best, and make up arguments that fit its schema. \
Say *both* or *in parallel* to see two calls at once."""
_NO_OPINION: Final = "That is what I was told, and I pass it on as it is: a demo model has no opinion."
_NOT_ALLOWED: Final = "There are tools here, but this request says that I may not call any (`tool_choice` is `none`)."


def script(asked: Asked) -> Script:
    if asked.results:
        return Script(beats=(Say(f"{told(asked)}\n\n{_NO_OPINION}"),))
    if not asked.tools:
        return Script(beats=(Say(_NO_TOOLS),))
    if asked.choice == "none":
        return Script(beats=(Say(_NOT_ALLOWED),))
    return Script(beats=calls(asked, _picked(asked)))


def calls(asked: Asked, picked: list[Offered]) -> tuple[Beat, ...]:
    made = [
        Call(f"call_{asked.seed[n * 12 : n * 12 + 24]}", tool.name, _arguments(tool, asked.prompt, n))
        for n, tool in enumerate(picked)
    ]
    return (Say(_announced(picked)), *made)


def fitting(asked: Asked) -> list[Offered]:
    """Of those that were picked, the ones that the prompt has a word of."""
    words = _words(asked)
    return [tool for tool in _picked(asked) if _fitness(tool, words) > 0]


def _picked(asked: Asked) -> list[Offered]:
    """The one that fits best; two, where both fit or several were asked for."""
    if isinstance(asked.choice, Offered):
        return [asked.choice]
    words = _words(asked)
    ranked = sorted(asked.tools, key=lambda tool: -_fitness(tool, words))
    if not asked.parallel:
        return ranked[:1]
    if _SEVERAL.search(asked.prompt):
        return (ranked * 2)[:2]
    return ranked[:1] + [tool for tool in ranked[1:2] if _fitness(tool, words) >= 2]


def _words(asked: Asked) -> set[str]:
    return set(_WORD.findall(asked.prompt.lower())) - _TOO_COMMON


def _fitness(tool: Offered, words: set[str]) -> int:
    named = words & set(_WORD.findall(tool.name.lower()))
    described = words & set(_WORD.findall(tool.description.lower()))
    return 2 * len(named) + len(described)


def _arguments(tool: Offered, prompt: str, skip: int) -> str:
    """The second call of two starts at the second thing that was named."""
    said = prompt if not skip else prompt.partition(" and ")[2] or prompt
    return msgspec.json.encode(fit({"type": "object", **tool.parameters}, said)).decode()


def _announced(tools: list[Offered]) -> str:
    names = [f"`{tool.name}`" for tool in tools]
    return f"Let me ask {' and '.join(dict.fromkeys(names))}{', twice' if len(set(names)) < len(names) else ''}."


def told(asked: Asked) -> str:
    return "\n\n".join(f"`{result.tool}` says:\n\n{_quoted(result.text)}" for result in asked.results)


def _quoted(text: str) -> str:
    if not text.strip():
        return "> *(nothing at all)*"
    shown = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
    if shown.lstrip()[:1] in ("{", "["):
        return f"```json\n{shown.strip()}\n```"
    return "\n".join(f"> {line}" for line in shown.splitlines())
