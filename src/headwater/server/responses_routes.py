"""`/v1/responses/{id}`: an answer looked at, followed again from any frame, cancelled, deleted."""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qs

from headwater.dialects import responses
from headwater.dialects.base import Encoder, Whole
from headwater.errors import CallerError, StoreError
from headwater.server.callers import Caller
from headwater.server.dialect_routes import out_of_order, refuse
from headwater.server.direct import Send, outlet_of
from headwater.server.encoding import After, Streamed
from headwater.server.http import Identify, Receive, Scope, send_whole
from headwater.server.inner import OfAgent
from headwater.server.refusals import Refusal
from headwater.server.services import Services
from headwater.server.stored import Stored, deleted, find_response, frames_so_far, no_response, response_object
from headwater.server.streams import Answer, Followed
from headwater.store.results import Busy, Missing

_TRUE: Final = ("true", "1")
_LONGEST_NUMBER: Final = 18
"""Digits. Python takes no number of some thousands."""


class ResponsesRoutes:
    """What each does is a method; each is an ASGI application by `route`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def retrieve(self, scope: Scope, caller: Caller, stored: Stored, send: Send) -> None:
        query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
        if query.get("stream") in _TRUE:
            await self._follow(scope, send, stored, _starting_after(query.get("starting_after"), stored))
        else:
            await self._show(send, stored)

    async def cancel(self, scope: Scope, caller: Caller, stored: Stored, send: Send) -> None:
        if await self._services.runs.stop(caller.owner, stored.run.id) is None:
            raise no_response(scope["path_params"]["response_id"])
        await self._show(send, stored)

    async def delete(self, scope: Scope, caller: Caller, stored: Stored, send: Send) -> None:
        response_id = scope["path_params"]["response_id"]
        if stored.run.session_id is not None:
            message = (
                f"'{response_id}' is part of the session '{stored.run.session_id}', and goes when that is deleted."
            )
            raise Refusal(message, status=409, code="in_session")
        match await self._services.store.delete_run(caller.owner, stored.run.id):
            case Busy():
                message = "It is still going on: cancel it first."
                raise Refusal(message, status=409, code="run_active")
            case Missing():
                raise no_response(response_id)
            case None:
                await send_whole(send, Whole(200, deleted(response_id)))

    async def _show(self, send: Send, stored: Stored) -> None:
        body = await response_object(self._services.store, stored)
        await send_whole(send, Whole(200, body), (b"x-run-id", stored.run.id.encode()))

    async def _follow(self, scope: Scope, send: Send, stored: Stored, had: int) -> None:
        """From the beginning of the log: what the client has had already is made again, and not sent."""
        if stored.run.log_dropped:
            message = "Its stream is past its retention. Retrieve it without 'stream'."
            raise CallerError(message, status=410, code="log_dropped", param="stream")
        if had and had > await frames_so_far(self._services.store, stored):
            # Of a file that was restored, perhaps. An empty stream would look like an answer that was had whole.
            message = "Its stream does not go so far. Retrieve it without 'stream'."
            raise CallerError(message, status=410, code="log_gone", param="starting_after")
        outlet = outlet_of(scope)
        if outlet is None:
            return
        encoder: Encoder = stored.encoder()
        if had:
            encoder = After(encoder, had)
            self._services.metrics.resumed("responses")
        answer: Answer = Streamed(responses, stored.head, encoder, refusable=False)
        stream = Followed(
            outlet,
            self._services.runs.follower(stored.run.owner, stored.run.id),
            answer if stored.run.agent is None else OfAgent(answer),
            heartbeat_s=self._services.settings.server.heartbeat_s,
        )
        await stream.serve(self._services.sweep)


_Method = Callable[[ResponsesRoutes, Scope, Caller, Stored, Send], Awaitable[None]]


class ResponseRoute:
    """An ASGI application: one method, for the response that the path names."""

    def __init__(self, services: Services, identify: Identify, method: _Method) -> None:
        self._services = services
        self._identify = identify
        self._routes = ResponsesRoutes(services)
        self._method = method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response_id = scope["path_params"]["response_id"]
        try:
            caller = await self._identify(scope)
            stored = await find_response(self._services, caller, response_id)
            if stored is None:
                raise no_response(response_id)
            await self._method(self._routes, scope, caller, stored, send)
        except CallerError as error:
            await refuse(send, responses, error)
        except StoreError as error:
            await refuse(send, responses, out_of_order(error))


def _starting_after(given: str | None, stored: Stored) -> int:
    """How many frames the client has had."""
    if given is None:
        return 0
    if not stored.in_background:
        message = "Only a response that was made with 'background' can be followed from a frame on."
        raise CallerError(message, param="starting_after")
    if not (given.isascii() and given.isdigit() and len(given) <= _LONGEST_NUMBER):
        raise CallerError("'starting_after' is the 'sequence_number' of the last frame.", param="starting_after")
    return int(given) + 1
