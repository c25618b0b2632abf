"""The application: one table of all that is served."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from headwater.dialects import DIALECTS
from headwater.errors import StoreError
from headwater.events import DialectName
from headwater.server.dialect_routes import DialectRoute
from headwater.server.http import Identify, anybody
from headwater.server.models_routes import ModelsRoute
from headwater.server.page_routes import page_routes
from headwater.server.responses_routes import ResponseRoute, ResponsesRoutes
from headwater.server.services import Services


def build_app(services: Services, identify: Identify = anybody, more: Sequence[BaseRoute] = ()) -> Starlette:
    """For uvicorn with `DirectProtocol`. `more` comes last."""
    # What is asked most comes first: routes are tried in order.
    return Starlette(routes=[*_dialect_routes(services, identify), *_own_routes(services), *more])


def _dialect_routes(services: Services, identify: Identify) -> list[BaseRoute]:
    def asks(path: str, dialect: DialectName) -> Route:
        return Route(path, DialectRoute(services, identify, DIALECTS[dialect]), methods=["POST"])

    response = "/v1/responses/{response_id}"
    models = ModelsRoute(services, identify)
    return [
        asks("/v1/chat/completions", "chat"),
        asks("/v1/messages", "messages"),
        asks("/v1/responses", "responses"),
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
            return PlainTextResponse(f"the store: {error.message}\n", 503)
        return PlainTextResponse("ready\n")

    return [*page_routes(), Route("/healthz", healthz), Route("/readyz", readyz)]
