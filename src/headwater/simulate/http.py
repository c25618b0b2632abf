"""Heads and error bodies, with the fields and words that each provider uses. Pure."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from headwater.events import DialectName

# By status; the first column is OpenAI's word, the second Anthropic's.
_TYPES: Final[dict[int, tuple[str, str]]] = {
    400: ("invalid_request_error", "invalid_request_error"),
    401: ("invalid_request_error", "authentication_error"),
    403: ("invalid_request_error", "permission_error"),
    404: ("invalid_request_error", "not_found_error"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_error"),
    529: ("server_error", "overloaded_error"),
}
_UNKNOWN: Final = ("server_error", "api_error")
_CODES: Final = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [f"HTTP/1.1 {status} {phrase(status)}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def usual_headers(dialect: DialectName, number: int) -> dict[str, str]:
    """What a provider tells with every answer."""
    if dialect == "messages":
        return {
            "request-id": f"req_sim{number:08d}",
            "anthropic-ratelimit-requests-limit": "4000",
            "anthropic-ratelimit-requests-remaining": "3999",
            "anthropic-ratelimit-requests-reset": "2030-01-01T00:00:00Z",
        }
    return {
        "x-request-id": f"req_sim{number:08d}",
        "openai-processing-ms": "12",
        "openai-version": "2020-10-01",
        "x-ratelimit-limit-requests": "10000",
        "x-ratelimit-remaining-requests": "9999",
        "x-ratelimit-reset-requests": "6ms",
    }


def error_body(
    dialect: DialectName, status: int, message: str, *, code: str | None = None, param: str | None = None
) -> bytes:
    openai, anthropic = _TYPES.get(status, _UNKNOWN)
    body: dict[str, Any]
    if dialect == "messages":
        body = {"type": "error", "error": {"type": anthropic, "message": message}}
    else:
        error = {"message": message, "type": openai, "param": param, "code": code or _CODES.get(status)}
        body = {"error": error}
    return msgspec.json.encode(body)
