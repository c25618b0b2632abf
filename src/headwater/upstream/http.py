"""Exchanges over HTTP: a request on a connection of its endpoint's pool, and its answer as it comes.

No task wakes for a token: the connection's read callback goes straight to whoever listens (docs/decisions/0002).
Foreign exceptions become `UpstreamError` here and nowhere else.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from headwater.errors import UpstreamError
from headwater.events import Failed
from headwater.judge import Transport
from headwater.upstream.connection import HEAD_LIMIT_BYTES, Connection, Ending, Headers
from headwater.upstream.exchange import OnBytes, OnEnd
from headwater.upstream.pool import Address, Pool, ProxyRefused, proxy_of_environment, read_address
from headwater.upstream.resolve import Resolver

_LAST_BYTES_S: Final = 1.0

_NO_CONTENT: Final = 204
_CLOSED: Final = "{} closed the connection before it had answered."
_NO_ANSWER: Final[dict[Ending, str]] = {
    "clean": _CLOSED,
    "broken": _CLOSED,
    "reset": _CLOSED,
    "unanswered": _CLOSED,
    "malformed": "What {} answered is not HTTP. Check the base_url.",
    "oversized": f"The head of what {{}} answered is too large: over {HEAD_LIMIT_BYTES // 1024} kB.",
    "upgraded": "{} wants to speak another protocol than HTTP (status 101). Check the base_url.",
}


class HttpExchange:
    """The `Reader` of a connection: first for whoever waits for the head, then for whoever listens."""

    __slots__ = (
        "_connection",
        "_ending",
        "_head",
        "_held",
        "_on_bytes",
        "_on_end",
        "_on_over",
        "_paused",
        "headers",
        "on_body",
        "status",
        "was_reset",
    )

    def __init__(self, on_over: Callable[[], None]) -> None:
        self.status = 0
        self.was_reset = False
        self.headers: Mapping[str, str] = {}
        self._head: asyncio.Future[Ending | None] | None = None
        """While it is waited for. None: it has come. Else how the connection ended instead."""
        self._connection: Connection | None = None
        self._on_over: Callable[[], None] | None = on_over
        self._on_bytes: OnBytes | None = None
        self._on_end: OnEnd | None = None
        self._held: list[bytes] = []
        """What has come while nobody listened."""
        # A token goes straight from the connection to whoever listens, without a frame of ours.
        self.on_body: OnBytes = self._held.append
        self._ending: Ending | None = None
        self._paused = False

    async def ask(self, connection: Connection, request: bytes) -> Ending | None:
        """None: the head has come. Else how the connection ended instead; another one may be asked then."""
        self._connection = connection
        # The answer may be there already: then it is told within `ask`.
        head: asyncio.Future[Ending | None] = asyncio.get_running_loop().create_future()
        self._head = head
        connection.ask(request, self)
        return await head

    # --------------------------------------------------------- for the listener

    def listen(self, on_bytes: OnBytes, on_end: OnEnd) -> None:
        self._on_bytes, self._on_end = on_bytes, on_end
        self._hand_on()

    def pause(self) -> None:
        self._paused = True
        self.on_body = self._held.append
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        self._paused = False
        if self._connection is not None:
            self._connection.resume()
        self._hand_on()

    def finish(self) -> None:
        # The end of the body is often a packet of its own; without it the connection could not be used again.
        self.on_body = self._on_bytes = _ignore
        self._on_end = _ignore_end
        if self._connection is not None:
            asyncio.get_running_loop().call_later(_LAST_BYTES_S, self.close)

    def close(self) -> None:
        self._on_bytes = self._on_end = None
        self.on_body = self._held.append
        if self._connection is not None:
            self._connection.leave(self)
        self._let_go()

    # ------------------------------------------------------- for the connection

    def on_head(self, status: int, headers: Headers) -> None:
        self.status = status
        self.headers = headers
        self._told(None)

    def on_end(self, ending: Ending, rest: bytes) -> None:
        self._connection = None
        if self._told(ending):
            # Whoever opens it asks another one, or closes it.
            return
        self._let_go()
        self._ending = ending
        self.was_reset = ending == "reset"
        if rest:
            self._held.append(rest)
        self._hand_on()

    def _told(self, ending: Ending | None) -> bool:
        head, self._head = self._head, None
        if head is None or head.done():
            return False
        head.set_result(ending)
        return True

    def _hand_on(self) -> None:
        while self._held and self._on_bytes is not None and not self._paused:
            self._on_bytes(self._held.pop(0))
        if self._on_bytes is not None and not self._paused:
            self.on_body = self._on_bytes
        if self._ending is not None and self._on_end is not None and not self._paused and not self._held:
            on_end, self._on_bytes, self._on_end = self._on_end, None, None
            on_end(_transport(self._ending))

    def _let_go(self) -> None:
        self._connection = None
        if self._on_over is not None:
            on_over, self._on_over = self._on_over, None
            on_over()


def _ignore(data: bytes) -> None:
    """Of an answer that is whole already."""


def _ignore_end(transport: Transport) -> None:
    """The same."""


def _transport(ending: Ending) -> Transport:
    return "clean" if ending == "clean" else "broken"


class HttpOpener:
    """An `Opener`: requests to one address, so many at a time."""

    def __init__(
        self,
        url: str,
        headers: Callable[[str | None], Mapping[str, str]],
        *,
        connect_s: float,
        max_connections: int,
        resolver: Resolver | None = None,
    ) -> None:
        self._address = read_address(url)
        parts = urlsplit(url)
        self._path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        self._headers = headers
        self._heads: dict[str | None, bytes] = {}
        """By the key: made once, for many requests."""
        self._connect_s = connect_s
        self._max_connections = max_connections
        self._slots = asyncio.Semaphore(max_connections)
        self._proxy, self._trouble = _proxy(self._address)
        self._pool = Pool(self._address, proxy=self._proxy, resolver=resolver, connect_timeout_s=connect_s)

    async def open(self, body: bytes, key: str | None) -> HttpExchange:
        head = self._heads.get(key) or self._head(key)
        await self._take_slot()
        exchange = HttpExchange(self._slots.release)
        opened = False
        try:
            await self._ask(exchange, b"%b%d\r\n\r\n%b" % (head, len(body), body))
            opened = True
            return exchange
        finally:
            if not opened:
                exchange.close()

    async def get(self, limit_bytes: int, key: str | None) -> tuple[int, bytes]:
        """A small answer, whole. Raises `UpstreamError`."""
        request = self._request("GET", key) + b"\r\n"
        exchange = HttpExchange(lambda: None)
        try:
            await self._ask(exchange, request)
            return exchange.status, await whole_body(exchange, limit_bytes)
        finally:
            exchange.close()

    def close(self) -> None:
        self._pool.close()

    async def _ask(self, exchange: HttpExchange, request: bytes) -> None:
        # Also where a server closes a connection that it kept just as it is used again, the request may have been
        # taken: to send it once more is another attempt, and policy's to decide.
        ending = await exchange.ask(self._pool.take() or await self._connect(), request)
        if ending is not None:
            raise UpstreamError(self._no_answer(ending))
        if exchange.status == _NO_CONTENT:
            what = f"{self._address.authority} answered, but with nothing (status 204). Check the base_url."
            raise UpstreamError(Failed("upstream_error", what, _NO_CONTENT))

    async def _connect(self) -> Connection:
        try:
            return await self._pool.connect()
        except (OSError, ValueError) as error:
            raise UpstreamError(self._unreachable(error)) from error

    def _head(self, key: str | None) -> bytes:
        head = self._request("POST", key) + b"content-length: "
        self._heads[key] = head
        return head

    def _request(self, method: str, key: str | None) -> bytes:
        if self._trouble is not None:
            raise UpstreamError(self._trouble)
        try:
            return self._pool.head(self._path, self._headers(key), method)
        except ValueError as error:
            what = f"No request to {self._address.authority} can be made: {error}."
            raise UpstreamError(Failed("upstream_unreachable", what)) from None

    async def _take_slot(self) -> None:
        if not self._slots.locked():
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout(self._connect_s):
                await self._slots.acquire()
        except TimeoutError:
            what = (
                f"All {self._max_connections} connections to {self._address.host} were busy for {self._connect_s:g} s. "
                "Raise max_connections, or send less at a time."
            )
            raise UpstreamError(Failed("upstream_unreachable", what, retryable=True)) from None

    # -------------------------------------------------------------------- words

    def _no_answer(self, ending: Ending) -> Failed:
        return Failed("upstream_unreachable", _NO_ANSWER[ending].format(self._address.authority), retryable=True)

    def _unreachable(self, error: OSError | ValueError) -> Failed:
        """Why there is no connection, in words that name the address and what to change."""
        host, lasting = f"{self._address.host}:{self._address.port}", False
        proxy = self._proxy and f"{self._proxy.host}:{self._proxy.port}"
        match error:
            case ProxyRefused():
                what = f"The proxy {proxy} (from the environment) refused to connect to {host}: {error}."
                if error.wants_login:
                    what, lasting = f"{what} Give it a login in its address: http://user:password@{proxy}.", True
            case ssl.SSLCertVerificationError(verify_message=cause):
                what, lasting = f"The TLS certificate of {host} is not trusted: {cause}.", True
            case ssl.SSLError():
                what = f"No TLS with {host}: {error.reason or error}. If it has none, its base_url begins with http://."
                lasting = True
            case TimeoutError():
                what = f"No connection to {host} within {self._connect_s:g} s (connect_timeout_s)."
            case OSError() if proxy is not None:
                what = f"The proxy {proxy} (from the environment) can't be reached: {_words(error)}."
            case socket.gaierror():
                what = f"The name {self._address.host!r} can't be resolved. Check the base_url, and the network."
            case _:
                what = f"No connection to {host}: {_words(error)}. Check the base_url, and that the server runs."
        return Failed("upstream_unreachable", what, retryable=not lasting)


def _proxy(address: Address) -> tuple[Address | None, Failed | None]:
    try:
        return proxy_of_environment(address), None
    except ValueError as error:
        return None, Failed("upstream_unreachable", f"The proxy in {error}.")


async def whole_body(exchange: HttpExchange, limit_bytes: int) -> bytes:
    """Of a small answer, as far as it came."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    body = bytearray()

    def on_bytes(data: bytes) -> None:
        body.extend(data)
        if len(body) > limit_bytes:
            on_end("broken")

    def on_end(transport: Transport) -> None:
        if not over.done():
            over.set_result(None)

    exchange.listen(on_bytes, on_end)
    await over
    return bytes(body[:limit_bytes])


def _words(error: OSError | ValueError) -> str:
    # The loop's own words are about its call; the system's are about the network.
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
