"""`POST /v1/chat/completions`, `/v1/messages` and `/v1/responses`: a model asked in the words of a dialect."""

import logging
from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace
from starlette.types import ASGIApp

from headwater.conversation import Ask
from headwater.dialects import chat, messages
from headwater.dialects.base import Dialect, Whole
from headwater.errors import CallerError, StoreError
from headwater.events import Stopped
from headwater.server.asking import Begun, at_hand, begin, begin_at_hand
from headwater.server.direct import Outlet, Send, outlet_of
from headwater.server.encoding import Gathered, Streamed
from headwater.server.http import ClientGone, Door, Receive, Scope, headers_in, read_body, send_whole
from headwater.server.inner import OfAgent
from headwater.server.refusals import headers_of
from headwater.server.services import Services
from headwater.server.stored import just_begun
from headwater.server.streams import Answer, Followed, Poured, Stream

_log = logging.getLogger("headwater.server")

_LONGEST_SESSION_ID = 128


class DialectRoute:
    """An ASGI application, and an `AtOnce`."""

    def __init__(self, services: Services, door: Door, dialect: Dialect) -> None:
        self._services = services
        self._door = door
        self._dialect = dialect

    async def __call__(self, scope: Scope, receive: Receive, send: Send, ask: Ask | None = None) -> None:
        """`ask`: if it was read already."""
        # Before anything is waited for: whoever leaves from now on is heard of (C41).
        outlet = outlet_of(scope)
        if outlet is None:
            return
        try:
            caller = await self._door.caller(scope)
            if ask is None:
                headers, limit_bytes = headers_in(scope), self._services.settings.server.max_body_bytes
                ask = self._read(headers, await read_body(headers, receive, limit_bytes))
            begun = await begin(self._services, caller, self._dialect.name, ask)
        except CallerError as error:
            await refuse(send, self._dialect, error)
        except StoreError as error:
            await refuse(send, self._dialect, out_of_order(error))
        except ClientGone:
            pass
        else:
            if ask.background and not ask.stream:
                await send_whole(send, Whole(200, just_begun(begun.head)), (b"x-run-id", begun.run.id.encode()))
            else:
                await self._stream(outlet, ask, begun).serve(self._services.sweep)

    def at_once(self, scope: Scope, body: bytes, outlet: Outlet) -> ASGIApp | None:
        """A run that no store has, if nothing else has to be waited for, either. All that is odd goes the long way."""
        caller = self._door.recognised(scope)
        if caller is None or len(body) > self._services.settings.server.max_body_bytes:
            return self
        try:
            ask = self._read(headers_in(scope), body)
            model = at_hand(self._services, caller, ask)
            if model is None:
                return partial(self.__call__, ask=ask)
            self._door.count(caller)
        except CallerError:
            return self
        begun = begin_at_hand(self._services, caller, self._dialect.name, ask, model)
        self._stream(outlet, ask, begun).begin(self._services.sweep)
        return None

    def _read(self, headers: Mapping[bytes, bytes], body: bytes) -> Ask:
        ask = self._dialect.parse(body)
        named = headers.get(b"x-session-id")
        return _in_session(ask, named.decode("latin-1")) if named else ask

    def _stream(self, outlet: Outlet, ask: Ask, begun: Begun) -> Stream:
        server = self._services.settings.server
        if ask.stream:
            encoder = self._dialect.encoder(begun.head, include_usage=ask.include_usage, style=server.failure_style)
            answer: Answer = Streamed(self._dialect, begun.head, encoder)
        else:
            answer = Gathered(self._dialect, begun.head)
        if begun.run.agent is not None:
            answer = OfAgent(answer)
        heartbeat_s, on_gone = server.heartbeat_s, partial(self._on_gone, begun)
        if begun.live is not None:
            limit = server.behind_limit_bytes
            return Poured(outlet, begun.live, answer, heartbeat_s=heartbeat_s, on_gone=on_gone, limit_bytes=limit)
        follower = self._services.runs.follower(begun.run.owner, begun.run.id)
        return Followed(outlet, follower, answer, heartbeat_s=heartbeat_s, on_gone=on_gone)

    def _on_gone(self, begun: Begun) -> None:
        """At once, and here: nobody waits for a store to stop paying (C41)."""
        if begun.run.on_disconnect != "cancel":
            return
        live = self._services.runs.live(begun.run.id)
        if live is not None:
            live.stop(Stopped("disconnect"))
        elif begun.run.agent is not None:
            # It waits for somebody, or has gone on at another worker since.
            self._services.runs.stop_soon(begun.run.owner, begun.run.id, "disconnect")


def dialect_of(scope: Scope) -> Dialect:
    """Whose errors are understood where a path is of no dialect, or of nothing: Anthropic's clients show themselves."""
    is_anthropics = scope["path"].startswith("/v1/messages") or b"anthropic-version" in headers_in(scope)
    return messages if is_anthropics else chat


async def refuse(send: Send, dialect: Dialect, error: CallerError) -> None:
    headers = headers_of(error).items()
    await send_whole(send, dialect.error(error), *((name.encode(), value.encode()) for name, value in headers))


def out_of_order(error: StoreError) -> CallerError:
    """Nothing was begun: whoever asked may ask again. Where the store is, is nobody's business but the server's."""
    _log.error("the store: %s", error)
    return CallerError(f"The store: {error.trouble}.", status=503, code="store_unavailable")


def _in_session(ask: Ask, named: str) -> Ask:
    """The session that a header names, for clients that can't put it into the body (C63)."""
    if len(named) > _LONGEST_SESSION_ID:
        raise CallerError(
            f"X-Session-Id has {len(named)} characters; there may be {_LONGEST_SESSION_ID}.", param="X-Session-Id"
        )
    if ask.session_id not in (None, named):
        raise CallerError("'session_id' and X-Session-Id name two sessions: give one of them.", param="session_id")
    if ask.previous_response_id is not None:
        raise CallerError(
            "'previous_response_id' and X-Session-Id each bring a history: give one of them.",
            param="previous_response_id",
        )
    return replace(ask, session_id=named)
