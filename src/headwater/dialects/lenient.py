"""A second reading of what real servers get wrong: any JSON, and the value that was most likely meant.

For the rare frame that typed decoding refused. Raises `FrameUnreadable` for what is no JSON at all.
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


def mended(text: str) -> str:
    """Surrogate pairs joined, lone ones replaced: what UTF-8 can carry."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def mended_all(value: Any) -> Any:
    """The same for every string in a JSON value."""
    try:
        return json.loads(mended(json.dumps(value, ensure_ascii=False)))
    except RecursionError:
        raise FrameUnreadable("JSON that is nested too deep", b"") from None


def string(value: Any) -> str:
    """A string where one should be: integer ids and the like are taken as they read."""
    return "" if value is None else value if isinstance(value, str) else str(value)


def json_text(value: Any) -> str:
    """JSON in a string, where it should be; an object that was put in its place is written out."""
    return mended(value) if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def record(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def records(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and value >= 0 else None
