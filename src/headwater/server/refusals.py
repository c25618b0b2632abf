"""Errors that a client is answered with, with facts for its program and headers for its library."""

from collections.abc import Mapping
from typing import Any, Final

from headwater.errors import CallerError


class Refusal(CallerError):
    """A `CallerError` that has more to say. `facts` stand beside `code` and `message` in a native error."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        param: str | None = None,
        facts: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, status=status, code=code, param=param)
        self.facts = facts or {}
        self.headers = headers or {}


_BY_STATUS: Final = {503: {"retry-after": "1"}, 409: {"x-should-retry": "false"}}


def headers_of(error: CallerError) -> dict[str, str]:
    """For the answer. Whoever comes at a bad moment is told when to come again."""
    headers = dict(error.headers) if isinstance(error, Refusal) else {}
    # SDKs ask again by themselves after a 409, too: it would be none of it by then.
    return {**_BY_STATUS.get(error.status, {}), **headers}


def not_found(what: str) -> Refusal:
    """Another's is as if it were not there: nothing here tells the two apart."""
    return Refusal(f"There is no such {what}.", status=404, code="not_found")
