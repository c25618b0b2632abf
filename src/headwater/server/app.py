"""The application: one table of all that is served."""

import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headwater.dialects import DIALECTS
from headwater.errors import StoreError
from headwater.events import DialectName
from headwater.server.dialect_routes import DialectRoute
from headwater.server.direct import Outlet
from headwater.server.http import Door, Identify, Open
from headwater.server.models_routes import ModelsRoute
from headwater.server.nowhere import Nowhere
from headwater.server.page_routes import page_routes
from headwater.server.responses_routes import ResponseRoute, ResponsesRoutes
from headwater.server.services import Services

_log = logging.getLogger("headwater.server")

_ASKED: Final[dict[str, DialectName]] = {
    "/v1/chat/completions": "chat",
    "/v1/messages": "messages",
    "/v1/responses": "responses",
}


class App:
    """For uvicorn with `DirectProtocol`, as "asgi3". A model that is asked does not pass the layers of all else."""

    def __init__(self, asked: Mapping[str, DialectRoute], every: Starlette) -> None:
        """`every` has those that are asked, too: for what is no POST."""
        self.routes = every.routes
        self._asked = asked
        self._every = every

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        asked = self._asked.get(scope["path"]) if scope["method"] == "POST" else None
        return (asked or self._every)(scope, receive, send)

    def at_once(self, scope: Scope, body: bytes, outlet: Outlet) -> ASGIApp | None:
        """An `AtOnce`."""
        asked = self._asked.get(scope["path"]) if scope["method"] == "POST" else None
        return self._every if asked is None else asked.at_once(scope, body, outlet)


def build_app(services: Services, door: Door | None = None, more: Sequence[BaseRoute] = ()) -> App:
    """`more` comes last."""
    door = door or Open()
    asked = {path: DialectRoute(services, door, DIALECTS[name]) for path, name in _ASKED.items()}
    routes = [*(Route(path, route, methods=["POST"]) for path, route in asked.items())]
    routes += _other_routes(services, door.caller)
    nowhere = Nowhere(door.caller, routes)
    every = Starlette(routes=[*routes, *_own_routes(services), *more], exception_handlers={404: nowhere, 405: nowhere})
    return App(asked, every)


def _other_routes(services: Services, identify: Identify) -> list[Route]:
    response = "/v1/responses/{response_id}"
    models = ModelsRoute(services, identify)
    return [
        Route(response, ResponseRoute(services, identify, ResponsesRoutes.retrieve), methods=["GET"]),
        Route(response, ResponseRoute(services, identify, ResponsesRoutes.delete), methods=["DELETE"]),
        Route(f"{response}/cancel", ResponseRoute(services, identify, ResponsesRoutes.cancel), methods=["POST"]),
        Route("/v1/models", models, methods=["GET"]),
        Route("/v1/models/{name:path}", models, methods=["GET"]),
    ]


def _own_routes(services: Services) -> list[BaseRoute]:
    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        if not services.accepting:
            return PlainTextResponse("shutting down\n", 503)
        try:
            await services.store.check()
        except StoreError as error:
            # Whoever asks may be anybody: where the store is, stays here.
            _log.error("not ready: the store: %s", error)
            return PlainTextResponse(f"the store: {error.trouble}\n", 503)
        return PlainTextResponse("ready\n")

    return [*page_routes(), Route("/healthz", healthz), Route("/readyz", readyz)]
