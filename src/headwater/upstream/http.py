"""Exchanges over HTTP: one pool of connections, on aiohttp.

No task wakes for a token: aiohttp's connection tells the exchange of each read, in the read's own callback
(docs/decisions/0002). Foreign exceptions become `UpstreamError` here and nowhere else.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from headwater.errors import UpstreamError
from headwater.events import Failed
from headwater.judge import Transport
from headwater.upstream.exchange import OnBytes, OnEnd


class Connection(ResponseHandler):
    """aiohttp's connection, which tells an exchange of each read, once, after the parser is done with it."""

    exchange: "HttpExchange | None" = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.exchange is not None:
            self.exchange.on_read()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self.exchange is not None:
            # aiohttp may set neither an end nor an exception (a malformed chunk): this is the last that is heard.
            self.exchange.on_lost()

    def resume_reading(self, resume_parser: bool = True) -> None:
        # aiohttp asks for it after every read, paused or not: 2 µs a token.
        if self._reading_paused:
            super().resume_reading(resume_parser)


_LAST_BYTES_S: Final = 1.0


def _ignore(data: bytes) -> None:
    """Of an answer that is whole already."""


class HttpExchange:
    def __init__(self, response: aiohttp.ClientResponse, on_over: Callable[[], None]) -> None:
        self._response = response
        self._on_over: Callable[[], None] | None = on_over
        self._content = response.content
        self._on_bytes: OnBytes | None = None
        self._on_end: OnEnd | None = None
        self._connection: Connection | None = None
        self._lost = False
        self._paused = False
        self._reading = False
        self._closing: asyncio.TimerHandle | None = None
        connection = response.connection
        # An answer that came whole with its head has given its connection back already.
        if connection is not None:
            assert isinstance(connection.protocol, Connection)
            self._connection = connection.protocol
            self._connection.exchange = self

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    def listen(self, on_bytes: OnBytes, on_end: OnEnd) -> None:
        self._on_bytes, self._on_end = on_bytes, on_end
        self.on_read()

    def pause(self) -> None:
        # What comes now stays in aiohttp's buffer, which holds the socket up once it is full.
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self.on_read()

    def finish(self) -> None:
        # The end of the body is often a packet of its own; without it the connection could not be used again.
        self._on_bytes, self._on_end = _ignore, self._forget
        self._closing = asyncio.get_running_loop().call_later(_LAST_BYTES_S, self.close)
        self.on_read()

    def close(self) -> None:
        self._let_go()
        self._response.close()

    def _forget(self, transport: Transport) -> None:
        if self._closing is not None:
            self._closing.cancel()

    def on_lost(self) -> None:
        self._lost = True
        self.on_read()

    def on_read(self) -> None:
        # Taking from the buffer may make aiohttp parse on, and call this again from within.
        if self._reading:
            return
        self._reading = True
        content = self._content
        while self._on_bytes is not None and not self._paused and (data := content._read_nowait(-1)):
            self._on_bytes(data)
        self._reading = False
        if self._paused or self._on_end is None:
            return
        if content.is_eof():
            self._end("clean")
        elif self._lost or content.exception() is not None:
            self._end("broken")

    def _end(self, transport: Transport) -> None:
        on_end = self._on_end
        assert on_end is not None
        self._let_go()
        if transport == "broken":
            self._response.close()
        on_end(transport)

    def _let_go(self) -> None:
        self._on_bytes = self._on_end = None
        if self._on_over is not None:
            on_over, self._on_over = self._on_over, None
            on_over()
        if self._connection is not None:
            self._connection.exchange = None
            self._connection = None


class HttpClient:
    """The pool. Limits are the endpoints' own."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        connector._factory = lambda: Connection(loop)  # type: ignore[assignment]
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
        )

    async def close(self) -> None:
        await self._session.close()

    async def post(self, to: "Address", headers: Mapping[str, str], body: bytes) -> HttpExchange:
        """Raises `UpstreamError`. How long to wait for the head is for the caller to say, by a cancel."""
        await to.take_slot()
        opened = False
        try:
            response = await self._session.post(
                to.url, headers=headers, data=body, timeout=to.timeout, proxy=to.proxy, allow_redirects=False
            )
            opened = True
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamError(_failed(error, to)) from error
        finally:
            if not opened:
                to.slots.release()
        return HttpExchange(response, to.slots.release)

    async def get(self, to: "Address", headers: Mapping[str, str], limit_bytes: int) -> tuple[int, bytes]:
        """A small answer, whole. Raises `UpstreamError`."""
        try:
            async with self._session.get(
                to.url, headers=headers, timeout=to.timeout, proxy=to.proxy, allow_redirects=False
            ) as response:
                return response.status, await response.content.read(limit_bytes)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamError(_failed(error, to)) from error


class Address:
    """Where requests go, and how many at a time."""

    def __init__(self, url: str, *, connect_s: float, max_connections: int) -> None:
        self.url = URL(url)
        self.proxy = proxy_for(url)
        self.connect_s = connect_s
        self.max_connections = max_connections
        self.timeout = aiohttp.ClientTimeout(total=None, connect=connect_s)
        self.slots = asyncio.Semaphore(max_connections)

    async def take_slot(self) -> None:
        if not self.slots.locked():
            await self.slots.acquire()
            return
        try:
            async with asyncio.timeout(self.connect_s):
                await self.slots.acquire()
        except TimeoutError:
            message = (
                f"All {self.max_connections} connections to {self.url.host} were busy for {self.connect_s:g} s. "
                "Raise max_connections, or send less at a time."
            )
            raise UpstreamError(Failed("upstream_unreachable", message, retryable=True)) from None


class HttpOpener:
    """An `Opener`: requests to one address."""

    def __init__(self, client: HttpClient, to: Address, headers: Callable[[str | None], Mapping[str, str]]) -> None:
        self._client = client
        self._to = to
        self._headers = headers

    async def open(self, body: bytes, key: str | None) -> HttpExchange:
        return await self._client.post(self._to, self._headers(key), body)


def proxy_for(url: str) -> str | None:
    """What the environment says (`HTTPS_PROXY`, `NO_PROXY`, …). Asked once an endpoint, not once a request."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)


def _failed(error: Exception, to: Address) -> Failed:
    """What aiohttp says, in words that name the address and what to change."""
    host, lasting = f"{to.url.host}:{to.url.port}", False
    match error:
        case aiohttp.ClientConnectorDNSError():
            what = f"The name {to.url.host!r} can't be resolved. Check the base_url, and the network."
        case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
            what, lasting = f"The TLS certificate of {host} is not trusted: {_words(cause)}.", True
        case aiohttp.ClientConnectorSSLError(os_error=cause):
            what, lasting = (
                f"No TLS with {host}: {_words(cause)}. If it has none, the base_url begins with http://.",
                True,
            )
        case aiohttp.ClientHttpProxyError(status=status):
            what = f"The proxy {_without_login(to.proxy)} refused to connect to {host} (status {status})."
        case aiohttp.ClientProxyConnectionError(os_error=cause):
            what = (
                f"The proxy {_without_login(to.proxy)} can't be reached: {_words(cause)}. It is from the environment."
            )
        case aiohttp.ServerTimeoutError():
            what = f"No connection to {host} within {to.connect_s:g} s (connect_timeout_s)."
        case aiohttp.ClientConnectorError(os_error=cause):
            what = f"No connection to {host}: {_words(cause)}. Check the base_url, and that the server runs."
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            what = f"{host} closed the connection before it had answered."
        case aiohttp.ClientResponseError(message=message):
            what = f"What {host} answered is not HTTP: {message.partition(':')[0] or 'unreadable'}."
        case _:
            what, lasting = f"The request to {host} failed: {_words(error)}.", isinstance(error, ValueError)
    return Failed("upstream_unreachable", what, retryable=not lasting)


def _words(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _without_login(proxy: str | None) -> str:
    return str(URL(proxy or "").with_user(None))
