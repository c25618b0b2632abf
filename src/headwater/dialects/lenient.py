"""Reads what upstreams get wrong: the second reading, when the typed one has failed.

Whatever comes out of `mended` can be written as UTF-8; what comes out of `load` may not be.
"""

import json
from typing import Any

from headwater.errors import FrameUnreadable


def load(data: bytes) -> Any:
    """Any JSON, with bad UTF-8 and lone surrogates let through."""
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise FrameUnreadable("no JSON", data) from None


def load_object(data: bytes) -> dict[str, Any]:
    loaded = load(data)
    if not isinstance(loaded, dict):
        raise FrameUnreadable("JSON that is no object", data)
    return loaded


def mended(text: str) -> str:
    """Surrogate pairs joined, lone ones replaced: what UTF-8 can carry."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def string(value: Any) -> str:
    """A string where one should be: integer ids and the like are taken as they read."""
    return "" if value is None else value if isinstance(value, str) else str(value)


def object_or_none(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(value: Any) -> int | None:
    """A number of tokens."""
    return int(value) if isinstance(value, (int, float)) and value >= 0 else None
