"""Calls that are no function's and that a client answers all the same: a call and its output go together."""

from collections.abc import Sequence
from typing import Any, Final

from headwater.dialects.lenient import string

_OUTPUT: Final = "_output"
_CALLS: Final = frozenset({"custom_tool_call", "computer_call", "shell_call", "apply_patch_call"})


def is_clients(item: dict[str, Any]) -> bool:
    """The client's own word, unlike all else that stands between the messages: an output, or a decision."""
    kind = string(item.get("type"))
    return kind.endswith(_OUTPUT) or kind == "mcp_approval_response"


def unpaired(items: Sequence[dict[str, Any]]) -> set[int]:
    """The places of calls whose output is missing, and of outputs without a call before them: each is refused."""
    waiting: dict[tuple[str, str], int] = {}
    alone: set[int] = set()
    for place, item in enumerate(items):
        kind, id = string(item.get("type")), string(item.get("call_id"))
        if kind in _CALLS:
            # Asked twice under one id: the one before it stays without an answer.
            alone |= {waiting[kind, id]} if (kind, id) in waiting else set()
            waiting[kind, id] = place
        elif kind.removesuffix(_OUTPUT) in _CALLS and waiting.pop((kind.removesuffix(_OUTPUT), id), None) is None:
            alone.add(place)
    return alone | set(waiting.values())
