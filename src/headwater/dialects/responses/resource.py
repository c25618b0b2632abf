"""The response object: what every stream begins and ends with, and what an answer in one piece is."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from headwater.dialects.base import Head, noted
from headwater.events import Usage

_json = msgspec.json.encode

# What the object says of a request that left it open. Open Responses wants all of them to be there.
DEFAULTS: Final[dict[str, Any]] = {
    "background": False,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}


PREFIX: Final = "resp_"
"""Where runs have `run_`."""


def response_id(run_id: str) -> str:
    return PREFIX + run_id.removeprefix("run_")


def suffix(head: Head) -> str:
    """What all ids of an answer have in common."""
    return head.run_id.removeprefix("run_")


class Resource:
    def __init__(self, head: Head) -> None:
        self._fixed: dict[str, Any] = {
            "id": response_id(head.run_id),
            "object": "response",
            "created_at": head.created,
            # No event tells the time of the end.
            "completed_at": None,
            "model": head.model,
            **DEFAULTS,
            **head.echo,
        }
        self._start = _json(self._fixed)[:-1]

    def write(
        self,
        status: str,
        output: list[bytes],
        usage: dict[str, Any] | None,
        *,
        error: dict[str, Any] | None = None,
        reason: str | None = None,
        notes: Sequence[str] = (),
        tier: str | None = None,
    ) -> msgspec.Raw:
        """`reason`: why it is incomplete. `tier`: that it was served in, where the request had only asked for one."""
        start = self._start if tier is None else _json(self._fixed | {"service_tier": tier})[:-1]
        return msgspec.Raw(
            b'%b,"status":%b,"error":%b,"incomplete_details":%b,"output":[%b],"usage":%b%b}'
            % (
                start,
                _json(status),
                _json({name: error[name] for name in ("code", "message")} if error else None),
                _json({"reason": reason} if reason else None),
                b",".join(output),
                _json(usage),
                b"," + _json(noted(notes))[1:-1] if notes else b"",
            )
        )


def write_usage(usage: Usage, details: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """Null unless both sums are known. A detail has no way to be unknown here: it is left at 0.

    `details`: what only this dialect has.
    """
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    more = details or {}
    read = {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": usage.cache_write_tokens or 0}
    written = {"reasoning_tokens": usage.reasoning_tokens or 0}
    return more | {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": read | more.get("input_tokens_details", {}),
        "output_tokens": usage.output_tokens,
        "output_tokens_details": written | more.get("output_tokens_details", {}),
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
