"""How deep JSON may be nested: far more than anyone needs, far less than makes a reader or a writer give up.

Whatever is let in here can be read, stored and written again, from wherever in
the program that is done.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

MAX_DEPTH: Final = 200
SHALLOW_BYTES: Final = 2 * MAX_DEPTH
"""No shorter JSON is too deep: each level has two brackets."""


def may_be_deep(data: bytes) -> bool:
    """Without so many brackets there is no such depth, and nothing to look for."""
    return data.count(b"{") + data.count(b"[") > MAX_DEPTH


def is_deep(read: Any) -> bool:
    """Level by level, so that the depth of the JSON is not that of a stack."""
    level = _nested([read])
    for _ in range(MAX_DEPTH):
        level = [item for value in level for item in _nested(_inside(value))]
    return bool(level)


def is_deep_json(data: bytes) -> bool:
    """What is no JSON is not deep either."""
    if not may_be_deep(data):
        return False
    try:
        return is_deep(msgspec.json.decode(data))
    except RecursionError:
        return True
    except ValueError:
        return False


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value
    return (getattr(value, name) for name in value.__struct_fields__)


def _nested(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list | Struct)]
