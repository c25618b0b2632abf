"""What is under `/v1` and is nothing, or has not the method that it was asked by: told as a client of it reads errors.

Only to those who would be let in: to all others there is nothing to see, be it there or not.
"""

from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match, Route

from headwater.errors import CallerError, StoreError
from headwater.server.dialect_routes import dialect_of, out_of_order
from headwater.server.http import Identify, Scope
from headwater.server.refusals import Refusal, headers_of


class Nowhere:
    """An `ExceptionHandler`: no path comes here that could be led to one of the `routes`, say by a slash less."""

    def __init__(self, identify: Identify, routes: Sequence[Route]) -> None:
        self._identify = identify
        self._routes = routes

    async def __call__(self, request: Request, error: Exception) -> Response:
        scope = request.scope
        if f"{scope['path']}/".startswith("/v1/"):
            return _response(scope, await self._refusal(scope))
        assert isinstance(error, HTTPException)
        return PlainTextResponse(error.detail, error.status_code, error.headers)

    async def _refusal(self, scope: Scope) -> CallerError:
        try:
            await self._identify(scope)
        except CallerError as error:
            return error
        except StoreError as error:
            return out_of_order(error)
        path = scope["path"]
        # More than one route may have it, each for other methods.
        here = [route for route in self._routes if route.matches(scope)[0] is not Match.NONE]
        if not here:
            return Refusal(f"There is no {path} here. There is: {self._near(path)}.", status=404, code="not_found")
        allowed = ", ".join(sorted(method for route in here for method in route.methods or ()))
        message = f"There is no {scope['method']} {path} here. There is: {allowed}."
        return Refusal(message, status=405, code="method_not_allowed", headers={"allow": allowed})

    def _near(self, path: str) -> str:
        """What there is of the same kind; of a kind that there is not, all."""
        near = [route for route in self._routes if _kind(route.path) == _kind(path)] or self._routes
        return ", ".join(f"{method} {_shown(route)}" for route in near for method in _methods(route))


def _kind(path: str) -> str:
    return f"{path}//".split("/")[2]


def _shown(route: Route) -> str:
    """Without what a parameter of its path takes."""
    return route.path.replace(":path}", "}")


def _methods(route: Route) -> list[str]:
    return sorted((route.methods or set()) - {"HEAD"})


def _response(scope: Scope, error: CallerError) -> Response:
    whole = dialect_of(scope).error(error)
    return Response(whole.body, whole.status, headers_of(error), "application/json")
