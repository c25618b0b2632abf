"""Messages, as clients read them in one piece: the whole object, and the error object."""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final, assert_never

import msgspec

from headwater.conversation import Assistant, Opaque, Reasoning, Text, ToolCall
from headwater.dialects import endings
from headwater.dialects.base import STOP, Head, Whole, noted, stops
from headwater.dialects.details import added
from headwater.dialects.messages.block import CITATIONS
from headwater.dialects.messages.stream import write_usage
from headwater.dialects.messages.write import call_block, is_object, redacted_block, text_block, thinking_block
from headwater.errors import CallerError
from headwater.events import Completed, Failed, Incomplete, Interrupted, Outcome, Stopped, Usage

_json = msgspec.json.encode

# A turn limit has no word of its own here; the nearest truth is that the answer was cut.
_STOP_REASON: Final = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "turn_limit": "max_tokens",
}


def answer_id(head: Head) -> str:
    return "msg_" + head.run_id.removeprefix("run_")


def whole(head: Head, message: Assistant, usage: Usage, outcome: Outcome, notes: Sequence[str] = ()) -> Whole:
    status = endings.status(outcome)
    content = _content(message)
    match outcome:
        case Completed(reason=reason) | Incomplete(reason=reason):
            told = stops(message, "messages")
            details: dict[str, Any] = reduce(added, [one.get("usage") or {} for one in told], {})
            stop = stop_body(reason, told[-1] if told else {})
            body = message_body(head, content, stop, write_usage(usage, details))
            return Whole(status, _json(body | noted([*notes, *_changed_arguments(message)])))
        case Stopped() | Failed() | Interrupted():
            partial = {"role": "assistant", "content": content}
            kept = {"outcome": outcome, "partial": partial, "usage": write_usage(usage), "notes": notes}
            return Whole(status, _json({**error_body(outcome), "headwater": kept}))
        case unreachable:
            assert_never(unreachable)


def _changed_arguments(message: Assistant) -> list[str]:
    """A stream tells them as they were written; an object has to be one."""
    odd = [call.name for call in message.tool_calls if call.arguments.strip() and not is_object(call.arguments)]
    return [f"The arguments for '{name}' are no JSON object: they stand in one, as INVALID_JSON." for name in odd]


def message_body(head: Head, content: list[Any], stop: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": answer_id(head),
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": content,
        **stop,
        "usage": usage,
    }


def stop_body(reason: str, told: dict[str, Any]) -> dict[str, Any]:
    """How an orderly end is put; `told` is what this dialect's own upstream said besides."""
    sequence = told.get("stop_sequence") if reason == "stop" else None
    stop = {"stop_reason": "stop_sequence" if sequence else _STOP_REASON[reason], "stop_sequence": sequence}
    return stop | ({"stop_details": told["stop_details"]} if "stop_details" in told else {})


def _is(part: Opaque, type: str) -> bool:
    return part.dialect == "messages" and part.data.get("type") == type


def _content(message: Assistant) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case Text(text=text):
                content.append(text_block(text))
            case Reasoning():
                content += _thinking(part)
            case ToolCall():
                content.append({**(part.extra or {}), **call_block(part)})
            case Opaque(dialect="messages", data=data):
                if _is(part, CITATIONS):
                    if content and content[-1].get("type") == "text" and data["citations"]:
                        content[-1]["citations"] = data["citations"]
                elif not _is(part, STOP):
                    content.append(data)
            case Opaque():
                # Another dialect's: no client of this one could read it.
                pass
            case unreachable:
                assert_never(unreachable)
    return content


def _thinking(part: Reasoning) -> list[dict[str, Any]]:
    """Without a signature too: a person may read it, and it is not sent back to be verified."""
    state = (part.state if part.dialect == "messages" else None) or {}
    signature = state.get("signature") or ""
    blocks = [thinking_block(part.text, signature)] if part.text or signature else []
    return blocks + ([redacted_block(state["data"])] if "data" in state else [])


# ---------------------------------------------------------------------- errors

_ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# Of our own dealings with the upstream, and nothing that the client could mend.
_OURS: Final = frozenset({401, 403, 409})


def error(error: CallerError) -> Whole:
    type = _ERROR_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    details = {"error_code": error.code} | ({"param": error.param} if error.param else {})
    return Whole(error.status, _json(_error_object(type, error.message, details)))


def error_body(outcome: endings.Unsuccessful) -> dict[str, Any]:
    return _error_object(_error_type(outcome), endings.words(outcome), {"error_code": endings.code(outcome)})


def _error_type(outcome: endings.Unsuccessful) -> str:
    match outcome:
        case Failed(reason="stalled"):
            return "timeout_error"
        case Failed(status=int(status)) if status not in _OURS:
            return _ERROR_TYPES.get(status, "api_error")
        case Failed() | Stopped() | Interrupted():
            return "api_error"
        case unreachable:
            assert_never(unreachable)


def _error_object(type: str, message: str, details: dict[str, str]) -> dict[str, Any]:
    # `details.error_code` is where this dialect's clients look for a code.
    return {"type": "error", "error": {"type": type, "message": message, "details": details}}
