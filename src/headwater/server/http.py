"""A request's body in, an answer in one piece out: what all routes do alike."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol

from headwater.dialects.base import Whole
from headwater.errors import HeadwaterError
from headwater.server.callers import LOCAL, Caller
from headwater.server.direct import LENGTH_DIGITS, Headers, Send
from headwater.server.encoding import JSON
from headwater.server.refusals import Refusal

_BY_NAME = "headwater.headers"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


Identify = Callable[[Scope], Awaitable[Caller]]
"""Who is asking. Raises `CallerError` for whoever may not."""


class Door(Protocol):
    async def caller(self, scope: Scope, /) -> Caller:
        """An `Identify`."""

    def recognised(self, scope: Scope, /) -> Caller | None:
        """The same for whoever is known without looking anything up; not counted yet. None: `caller` will say."""

    def count(self, caller: Caller, /) -> None:
        """One more request of theirs. Raises `CallerError` if it is one too many."""


class Open:
    """A `Door`: whoever can reach it is at this machine."""

    async def caller(self, scope: Scope) -> Caller:
        return LOCAL

    def recognised(self, scope: Scope) -> Caller:
        return LOCAL

    def count(self, caller: Caller) -> None:
        pass


class ClientGone(HeadwaterError):
    """There is nobody to answer any more."""


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, limit_bytes: int) -> bytes:
    """Raises `Refusal` (413) as soon as it is known to be too large, `ClientGone`."""
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced[-LENGTH_DIGITS:]) > limit_bytes:
        raise _too_large(limit_bytes)
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        pieces.append(piece)
        size += len(piece)
        if size > limit_bytes:
            raise _too_large(limit_bytes)
        if not message.get("more_body"):
            return b"".join(pieces)


def _too_large(limit_bytes: int) -> Refusal:
    message = f"The body is larger than {limit_bytes} bytes, which is all that is taken here (server.max_body_bytes)."
    # Else all that is too large would have to be read before the connection is good for another request.
    return Refusal(message, status=413, code="body_too_large", headers={"connection": "close"})


def headers_in(scope: Scope) -> dict[bytes, bytes]:
    """By their names, which ASGI has in lower case. The first counts, if there are several."""
    headers: dict[bytes, bytes] | None = scope.get(_BY_NAME)
    if headers is None:
        headers = scope[_BY_NAME] = dict(reversed(scope["headers"]))
    return headers


def header(scope: Scope, name: bytes) -> str | None:
    """`name` in lower case."""
    value = headers_in(scope).get(name)
    return None if value is None else value.decode("latin-1")


async def send_whole(send: Send, whole: Whole, *headers: tuple[bytes, bytes]) -> None:
    about: Headers = [JSON, (b"content-length", b"%d" % len(whole.body)), *headers]
    await send({"type": "http.response.start", "status": whole.status, "headers": about})
    await send({"type": "http.response.body", "body": whole.body})
