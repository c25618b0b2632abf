"""What an upstream says of its usage besides the counts that every dialect has: a price, tokens of audio.

Kept as it came, for clients of the same dialect. Knows nothing of what a name means: numbers of several
attempts are added up, and of all else the last word stands.
"""

from collections.abc import Collection, Mapping
from typing import Any

from headwater.dialects.lenient import mended_all


def uncounted(usage: dict[str, Any], counted: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """What tells something. `counted`: the fields that have a place elsewhere; of objects, only those in them."""
    found: dict[str, Any] = {}
    for name, value in usage.items():
        if name not in counted:
            told = value
        elif isinstance(value, dict):
            told = {key: detail for key, detail in value.items() if key not in counted[name] and detail}
        else:
            continue
        if told:
            found[name] = mended_all(told)
    return found


def added(one: Any, other: Any) -> Any:
    """Of two attempts; what only one of them has, the other did not use."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one | other | {name: added(one[name], other[name]) for name in one if name in other}
    if _is_number(one) and _is_number(other):
        return one + other
    return one if other is None else other


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
