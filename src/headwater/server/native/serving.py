"""From a request to its endpoint, and from what that says to an answer. Plain ASGI: nothing stands before a stream."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import Headers
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from headwater.dialects.parsing import convert, parse
from headwater.errors import CallerError, StoreError
from headwater.server.callers import LOCAL, Caller
from headwater.server.guard import Guard
from headwater.server.http import ClientGone, headers_in, read_body
from headwater.server.native.endpoint import Call, Endpoint, Reply, Stream
from headwater.server.native.shapes import Taken
from headwater.server.refusals import Refusal, headers_of, not_found
from headwater.server.services import Services

_log = logging.getLogger("headwater.server")

_HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_QUERY_FIELDS: Final = 100


class PathApp:
    """All endpoints of one path, as an ASGI application."""

    def __init__(self, services: Services, guard: Guard, endpoints: Sequence[Endpoint]) -> None:
        self._services = services
        self._guard = guard
        self._by_method = {str(endpoint.method): endpoint for endpoint in endpoints}
        self._decoders = {endpoint.takes: msgspec.json.Decoder(endpoint.takes) for endpoint in endpoints}

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(scope, receive)
        except CallerError as error:
            answer = error_reply(error)
        except StoreError as error:
            _log.error("the store: %s", error)
            answer = error_reply(Refusal("The store can't be used right now.", status=503, code="store_unavailable"))
        except ClientGone:
            return
        if isinstance(answer, Reply):
            await send_reply(answer, send)
        else:
            await answer.send_to(receive, send)

    async def _answer(self, scope: AsgiScope, receive: Receive) -> Reply | Stream:
        endpoint = self._by_method.get(scope["method"])
        if endpoint is None:
            allowed = ", ".join(self._by_method)
            message = f"There is no {scope['method']} here. There is: {allowed}."
            raise Refusal(message, status=405, code="method_not_allowed", headers={"allow": allowed})
        caller = await self._caller(endpoint, scope)
        headers = Headers(scope=scope)
        body = b"" if endpoint.from_query else await self._body(endpoint, scope, headers, receive)
        call = Call(services=self._services, guard=self._guard, caller=caller, scope=scope, headers=headers, body=body)
        return await endpoint.handler(call, self._taken(endpoint, scope, body))

    async def _caller(self, endpoint: Endpoint, scope: AsgiScope) -> Caller:
        if endpoint.needs is not None:
            return await self._guard.caller(scope, endpoint.needs)
        await self._guard.visitor(scope)
        return LOCAL

    async def _body(self, endpoint: Endpoint, scope: AsgiScope, headers: Headers, receive: Receive) -> bytes:
        allowed = endpoint.media_types or ("application/json",)
        media_type = headers.get("content-type", allowed[0]).partition(";")[0].strip().lower()
        if media_type not in allowed:
            message = f"The body must be {' or '.join(allowed)}, not {media_type or 'nothing'}."
            raise Refusal(message, status=415, code="unsupported_media_type")
        return await read_body(headers_in(scope), receive, self._services.settings.server.max_body_bytes)

    def _taken(self, endpoint: Endpoint, scope: AsgiScope, body: bytes) -> Taken:
        if endpoint.from_query:
            return query(scope, endpoint.takes)
        if endpoint.media_types:
            return endpoint.takes()
        return parse(self._decoders[endpoint.takes], body or b"{}")


class NoPath:
    """What is under `/api` and is nothing."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        try:
            await self._guard.visitor(scope)
            answer = error_reply(not_found("path"))
        except CallerError as error:
            answer = error_reply(error)
        except StoreError:
            answer = error_reply(not_found("path"))
        await send_reply(answer, send)


# ---------------------------------------------------------------------- reading


def query(scope: AsgiScope, wanted: type[Taken]) -> Taken:
    try:
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=_QUERY_FIELDS)
    except ValueError:
        raise Refusal("The query has too many fields.", status=400, code="invalid_value") from None
    given = dict(pairs)
    if len(given) < len(pairs):
        raise Refusal("A field of the query is there twice.", status=400, code="invalid_value")
    return convert(given, wanted, "", strict=False)


# -------------------------------------------------------------------- answering


def error_reply(error: CallerError) -> Reply:
    said: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.param is not None:
        said["param"] = error.param
    facts = dict(error.facts) if isinstance(error, Refusal) else {}
    return Reply({"error": said | facts}, error.status, headers_of(error))


async def send_reply(reply: Reply, send: Send) -> None:
    body = reply.value if isinstance(reply.value, bytes) else b""
    if reply.value is not None and not isinstance(reply.value, bytes):
        body = msgspec.json.encode(reply.value)
    headers: Mapping[str, str] = _HEADERS | dict(reply.headers)
    if reply.value is not None:
        headers = {"content-type": reply.media_type, **headers, "content-length": str(len(body))}
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
