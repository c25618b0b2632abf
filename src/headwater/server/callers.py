"""Who is asking, and what they may do."""

from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from headwater.records import Scope


class Caller(Struct, frozen=True, kw_only=True):
    owner: str
    scopes: tuple[Scope, ...] = ("chat",)
    models: tuple[str, ...] = ("*",)
    """Patterns of the names that they may ask for."""
    key_id: str | None = None

    def may_ask(self, model: str) -> bool:
        return any(fnmatchcase(model, pattern) for pattern in self.models)


LOCAL: Final = Caller(owner="local", scopes=("chat", "approve", "admin"))
"""Whoever is at this machine, when no keys are set."""
