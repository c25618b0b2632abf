"""Upstreams from the variables that other programs use, so that it works with no file at all.

Only where the file has no `upstreams`: one that has them says all that there is. Its author learns by a hint what
else could be used.
"""

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from headwater.config.addresses import ollama_base
from headwater.config.environment import put
from headwater.config.places import Origins
from headwater.errors import Problem


class _Found(Struct, frozen=True):
    name: str
    variable: str
    """What made it."""
    base_variable: str
    """What its address is from."""
    values: dict[str, Any]


def discover(tree: dict[str, Any], environ: Mapping[str, str], origins: Origins) -> None:
    """Adds an upstream to the tree for each provider that the environment knows."""
    for found in _found(environ):
        place = ("upstreams", found.name)
        put(tree, place, found.values)
        origins.note(place, f"environment {found.variable}")
        origins.note((*place, "base_url"), f"environment {found.base_variable}")


def unused(environ: Mapping[str, str], referred: Collection[str]) -> list[Problem]:
    """A hint for each variable that would have made an upstream if the file had none."""
    what = "is not used: the file has upstreams of its own."
    return [
        Problem(f"environment {found.variable}", "", what, f"An [upstreams.{found.name}] in it could.")
        for found in _found(environ)
        if found.variable not in referred
    ]


def _found(environ: Mapping[str, str]) -> list[_Found]:
    found: list[_Found] = []
    if environ.get("OPENAI_API_KEY"):
        base, source = _base(environ, "OPENAI", "https://api.openai.com/v1")
        # The chat dialect, not responses: whatever stands behind OPENAI_BASE_URL speaks it.
        values = {"dialect": "chat", "base_url": base, "api_key": "env:OPENAI_API_KEY"}
        found.append(_Found("openai", "OPENAI_API_KEY", source, values))
    if environ.get("ANTHROPIC_API_KEY"):
        base, source = _base(environ, "ANTHROPIC", "https://api.anthropic.com")
        # Its SDK puts /v1 behind the base; for us that is part of it.
        base = f"{base.rstrip('/').removesuffix('/v1')}/v1"
        values = {"dialect": "messages", "base_url": base, "api_key": "env:ANTHROPIC_API_KEY"}
        found.append(_Found("anthropic", "ANTHROPIC_API_KEY", source, values))
    if environ.get("OLLAMA_HOST"):
        # Named, since it may be at any port.
        values = {"dialect": "chat", "base_url": ollama_base(environ["OLLAMA_HOST"]), "provider": "ollama"}
        found.append(_Found("ollama", "OLLAMA_HOST", "OLLAMA_HOST", values))
    return found


def _base(environ: Mapping[str, str], provider: str, otherwise: str) -> tuple[str, str]:
    """The address, and the variable that it comes from."""
    given = environ.get(f"{provider}_BASE_URL")
    return (given, f"{provider}_BASE_URL") if given else (otherwise, f"{provider}_API_KEY")
