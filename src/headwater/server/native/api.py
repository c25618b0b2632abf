"""The native API as a whole: `routes()` to be mounted by whatever serves, `close()` for when it shuts down."""

from collections.abc import Sequence
from itertools import groupby

from starlette.routing import BaseRoute, Route

from headwater.server.guard import Guard
from headwater.server.native import blobs, groups, login, operations, queue, runs, sessions
from headwater.server.native.endpoint import Endpoint
from headwater.server.native.routing import NamedRoute, QuestionRoute
from headwater.server.native.serving import NoPath, PathApp
from headwater.server.native.streaming import OpenStreams
from headwater.server.openapi import described
from headwater.server.services import Services


class Native:
    def __init__(self, services: Services, guard: Guard) -> None:
        self._services = services
        self._guard = guard
        self.streams = OpenStreams()
        self.endpoints: Sequence[Endpoint] = table(self.streams)

    def routes(self) -> list[BaseRoute]:
        """In the order in which they are to be tried."""
        told = described(self.endpoints)
        # Plain paths first: a parameter would take them for a name.
        by_path = sorted((*self.endpoints, *told), key=lambda endpoint: ("{" in endpoint.path, endpoint.path))
        found = [
            _route(path, PathApp(self._services, self._guard, list(endpoints)))
            for path, endpoints in groupby(by_path, key=lambda endpoint: endpoint.path)
        ]
        return [*found, Route("/api/{rest:path}", NoPath(self._guard))]

    def close(self) -> None:
        """End all streams that are open: they would keep the server from ending."""
        self.streams.close()


def _route(path: str, app: PathApp) -> BaseRoute:
    if "{" in path:
        return NamedRoute(path, app)
    # Somebody may have called a session so.
    return QuestionRoute(path, app, "q") if path == sessions.SEARCH else Route(path, app)


def table(streams: OpenStreams) -> tuple[Endpoint, ...]:
    """All of the native API."""
    return (
        *runs.ENDPOINTS,
        *runs.following(streams),
        *sessions.ENDPOINTS,
        *queue.ENDPOINTS,
        *groups.ENDPOINTS,
        *blobs.ENDPOINTS,
        *login.ENDPOINTS,
        *operations.ENDPOINTS,
    )
