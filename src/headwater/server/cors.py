"""Pages of other origins: none may ask, but for those that the configuration names.

They come with a key in a header. A cookie is never theirs: nothing here allows credentials, and the guard refuses them.
"""

from collections.abc import Awaitable, MutableMapping
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.server.app import App
from headwater.server.direct import Outlet, outlet_of
from headwater.server.http import header
from headwater.server.services import Services

_EXPOSED: Final = b"location, retry-after, x-run-id, idempotency-replayed, x-should-retry"
_KNOWN_FOR_S: Final = b"600"


class Cors:
    """Around the whole application. A request that names no origin, and a server that allows none, pass as they are."""

    def __init__(self, app: App, services: Services) -> None:
        self._app = app
        self._services = services

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        origins = self._services.settings.server.cors_origins
        if not origins or (origin := header(scope, b"origin")) not in origins:
            return self._app(scope, receive, send)
        allowed = [(b"access-control-allow-origin", str(origin).encode("latin-1")), (b"vary", b"Origin")]
        if scope["method"] == "OPTIONS" and header(scope, b"access-control-request-method"):
            return _preflight(scope, send, allowed)

        marks = [*allowed, (b"access-control-expose-headers", _EXPOSED)]
        if (outlet := outlet_of(scope)) is not None:
            outlet.marks = marks

        async def send_marked(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *marks]}
            await send(message)

        return self._app(scope, receive, send_marked)

    def at_once(self, scope: Scope, body: bytes, outlet: Outlet) -> ASGIApp | None:
        """An `AtOnce`."""
        if self._services.settings.server.cors_origins and header(scope, b"origin") is not None:
            return self
        return self._app.at_once(scope, body, outlet)


async def _preflight(scope: Scope, send: Send, allowed: list[tuple[bytes, bytes]]) -> None:
    # Whatever it wants to send: SDKs in a browser have headers of their own, and none opens anything.
    wanted = (header(scope, b"access-control-request-headers") or "").encode("latin-1")
    about = [
        *allowed,
        (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
        (b"access-control-allow-headers", wanted),
        (b"access-control-max-age", _KNOWN_FOR_S),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": about})
    await send({"type": "http.response.body", "body": b""})
