"""Which of a request's fields that not every dialect has a dialect is told."""

from typing import Any, Final

from headwater.conversation import Extras
from headwater.events import DialectName

# OpenAI's two dialects mean the same by them.
_SHARED: Final = frozenset(
    {"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "service_tier", "verbosity"}
)
METADATA: Final = "metadata"
"""Of a chat completion: only one that is stored may have it, and upstreams are asked to store nothing."""


def told(extras: Extras | None, dialect: DialectName) -> dict[str, Any]:
    """Its own, as they came; and what it shares with the dialect that they came from."""
    if extras is None:
        return {}
    if extras.dialect == dialect == "chat":
        return {name: value for name, value in extras.fields.items() if name != METADATA}
    if extras.dialect == dialect:
        return extras.fields
    if "messages" in (extras.dialect, dialect):
        return {}
    return {name: value for name, value in extras.fields.items() if name in _SHARED}
