"""What went wrong with an answer, in words that a person can act on.

Pure: it looks at a head and the first bytes of a body. What kind of failure it is was decided before.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from headwater.events import DialectName, Failed
from headwater.judge import passing_status, read_error
from headwater.policy import refused

_PAGE: Final = re.compile(rb"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)
_TITLE: Final = re.compile(rb"<title[^>]*>\s*([^<]{1,80})", re.IGNORECASE)
# How an answer of each dialect begins, streamed or whole.
_SPOKEN: Final[dict[DialectName, re.Pattern[bytes]]] = {
    "messages": re.compile(rb'event:\s*message_start|"type":\s*"message(_start)?"'),
    "responses": re.compile(rb'event:\s*response\.created|"type":\s*"response\.|"object":\s*"response"'),
    "chat": re.compile(rb'"object":\s*"chat\.completion|"choices":\s*\['),
}
_LIMIT_HEADERS: Final = ("x-ratelimit-", "anthropic-ratelimit-", "ratelimit", "retry-after")
_REQUEST_ID_HEADERS: Final = ("x-request-id", "request-id", "x-generation-id", "x-amzn-requestid", "cf-ray")

_HINTS: Final = {
    401: "Check the api_key of [upstreams.{name}].",
    403: "Check the api_key of [upstreams.{name}].",
    404: "Check the model's name, and the base_url and dialect of [upstreams.{name}].",
    407: "The proxy wants a login: give it in the proxy's address.",
}


def refusal(name: str, status: int, headers: Mapping[str, str], body: bytes) -> Failed:
    """An answer whose status says no, from the upstream called `name`."""
    if 300 <= status < 400:
        target = headers.get("location", "nowhere")
        message = (
            f"The upstream {name!r} redirects to {target} ({status}). Redirects are not followed, since the key would "
            "go along. If the address is right, make it the base_url."
        )
        return Failed("refused", message, status)
    if is_page(body):
        return Failed("refused", f"{page(name, body)} (Status {status}.)", status, passing_status(status))
    message = _said(body) or f"The upstream {name!r} answered with status {status} and no message."
    hint = _HINTS.get(status)
    return refused(status, f"{message} {hint.format(name=name)}" if hint else message)


def _said(body: bytes) -> str:
    """The upstream's own words, from an error in whatever shape."""
    try:
        parsed = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return body[:500].decode("utf-8", "replace").strip()
    while isinstance(parsed, list) and parsed:
        parsed = parsed[0]
    return read_error(parsed).message if isinstance(parsed, dict | str) else ""


def is_page(body: bytes) -> bool:
    return _PAGE.match(body) is not None


def page(name: str, body: bytes) -> str:
    title = _TITLE.search(body)
    named = f" ({title[1].decode('utf-8', 'replace').strip()!r})" if title else ""
    return (
        f"The upstream {name!r} answered with a web page{named}, not with an API's answer. Check its base_url (it "
        "often ends in /v1), and whether a proxy or a network's login page stands in between."
    )


def compressed(name: str, encoding: str) -> Failed:
    message = (
        f"The upstream {name!r} sent a compressed answer ({encoding}), though it was asked not to: a compressed stream "
        "can't be read as it comes. Look for a proxy in between that compresses."
    )
    return Failed("upstream_error", message)


def explained(failed: Failed, name: str, dialect: DialectName, start: bytes) -> Failed:
    """The same failure, with the cause if the answer's first bytes give it away."""
    if is_page(start):
        return replace(failed, message=page(name, start), retryable=False)
    # Words of one dialect occur within another's answer, but not before its own.
    heard = [(match.start(), other) for other, begins in _SPOKEN.items() if (match := begins.search(start))]
    if not heard or (other := min(heard)[1]) == dialect:
        return failed
    message = (
        f"The upstream {name!r} answered in the {other} dialect, and is configured for {dialect}. "
        f'Set dialect = "{other}" in [upstreams.{name}], or another base_url.'
    )
    return replace(failed, reason="upstream_error", message=message, retryable=False)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """When the upstream wants to be asked again: milliseconds, seconds, or a date."""
    try:
        if millis := headers.get("retry-after-ms"):
            return max(0.0, float(millis) / 1000)
        value = headers.get("retry-after", "")
        if not value:
            return None
        if value.strip().replace(".", "", 1).isdecimal():
            return float(value)
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def limits(headers: Mapping[str, str]) -> dict[str, str] | None:
    return {name: value for name, value in headers.items() if name.startswith(_LIMIT_HEADERS)} or None


def request_id(headers: Mapping[str, str]) -> str | None:
    return next((headers[name] for name in _REQUEST_ID_HEADERS if name in headers), None)
