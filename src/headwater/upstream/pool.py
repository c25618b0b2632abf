"""Connections to one upstream: opened, directly or through a proxy, and kept for the next request.

Owns addresses, TLS and the idle connections. Refuses headers that would break out of their line, and proxies
that speak anything but plain HTTP. Does not retry: what a failure means is the caller's to say.
"""

import asyncio
import os
import re
import ssl
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Final, cast
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from headwater.upstream.connection import HEAD_LIMIT_BYTES, Connection
from headwater.upstream.dial import dial
from headwater.upstream.resolve import Resolver

_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORTS: Final = {"http": 80, "https": 443}


class ProxyRefused(ConnectionRefusedError):
    """What the proxy said instead of letting us through."""

    @property
    def wants_login(self) -> bool:
        return re.match(r"HTTP/1\.[01] 407\b", str(self)) is not None


class Address(Struct, frozen=True):
    tls: bool
    host: str
    port: int
    credentials: str = ""
    """As HTTP's basic authentication has them."""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.tls else "http"] else f"{host}:{self.port}"


def read_address(url: str) -> Address:
    """Raises `ValueError`, which never repeats the address: it may hold a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.scheme not in _PORTS:
        raise ValueError("it is no http or https address")
    credentials = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = b64encode(pair.encode()).decode()
    return Address(parts.scheme == "https", host, port or _PORTS[parts.scheme], credentials)


def proxy_of_environment(address: Address) -> Address | None:
    """What `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say of it. Raises `ValueError`, with the name."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # It takes a fifth of what a command of the terminal needs to start, so only where it is needed.
    from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

    proxies = getproxies_environment()
    scheme = "https" if address.tls else "http"
    name = scheme if scheme in proxies else "all"
    url = proxies.get(name)
    if not url or proxy_bypass_environment(f"{address.host}:{address.port}", proxies):
        return None
    # The one in lower case counts, if there are both.
    variable = max(one for one, value in os.environ.items() if one.lower() == f"{name}_proxy" and value)
    try:
        proxy = read_address(url if "://" in url else f"http://{url}")
    except ValueError as error:
        raise ValueError(f"{variable} can't be used: {error}") from None
    if proxy.tls:
        raise ValueError(f"{variable} can't be used: a proxy has to be spoken to in plain HTTP, also for TLS to pass")
    return proxy


@cache
def shared_tls() -> ssl.SSLContext:
    """With the system's certificates. Reading them takes 70 ms and more, in which nothing else would move."""
    return ssl.create_default_context()


class Pool:
    def __init__(
        self,
        address: Address,
        *,
        proxy: Address | None = None,
        tls: ssl.SSLContext | None = None,
        resolver: Resolver | None = None,
        connect_timeout_s: float = 10,
        keep_idle_s: float = 15,
    ) -> None:
        self._address = address
        self._proxy = proxy
        self._tls = tls or (shared_tls() if address.tls else None)
        self._resolver = resolver or Resolver()
        self._connect_timeout_s = connect_timeout_s
        self._keep_idle_s = keep_idle_s
        self._idle: dict[Connection, float] = {}
        """Until when each is kept; the last one is taken first, so that the others may age and go."""
        self._aging: asyncio.TimerHandle | None = None
        self._closed = False

    def head(self, path: str, headers: Mapping[str, str], method: str = "POST") -> bytes:
        """A request up to the length of its body. Made once, for many."""
        named = {"host": self._address.authority, **headers}
        target = path
        if self._proxy is not None and not self._address.tls:
            target = f"http://{self._address.authority}{path}"
            if self._proxy.credentials:
                named["proxy-authorization"] = f"Basic {self._proxy.credentials}"
        if _FORBIDDEN.search(target):
            raise ValueError("no control character may be in the address")
        for name, value in named.items():
            # The value may be a key.
            if _FORBIDDEN.search(name + value):
                raise ValueError(f"no control character may be in the header {name!r}")
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items()), ""]
        return "\r\n".join(lines).encode("latin-1", "replace")

    def take(self) -> Connection | None:
        """A connection that is at once there, if there is one."""
        while self._idle:
            connection, until_s = self._idle.popitem()
            if asyncio.get_running_loop().time() < until_s and connection.open:
                return connection
            connection.close()
        return None

    async def connect(self) -> Connection:
        """A new connection. Raises `OSError`; a `TimeoutError` is one, and so is what TLS may find."""
        nearest = self._proxy or self._address
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._connect_timeout_s):
            sock = await dial(await self._resolver.peers(nearest.host, nearest.port))
            if self._tls is None:
                _, connection = await loop.create_connection(self._connection, sock=sock)
                return connection
            transport, tunnel = await loop.create_connection(_Tunnel, sock=sock)
            try:
                if self._proxy is not None:
                    await tunnel.ask(self._address, self._proxy.credentials)
                elif tunnel.heard:
                    raise ssl.SSLError("it speaks first")
                return await self._secure(transport, self._tls)
            except BaseException:
                transport.abort()
                raise

    def close(self) -> None:
        self._closed = True
        if self._aging is not None:
            self._aging.cancel()
        while self._idle:
            self._idle.popitem()[0].close()

    def _connection(self) -> Connection:
        return Connection(self._keep, self._forget)

    def _keep(self, connection: Connection) -> None:
        # A second less than the peer says: it counts from earlier on, and the request takes its time.
        keep_s = min(self._keep_idle_s, connection.keep_s - 1)
        if self._closed or keep_s <= 0:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._idle[connection] = loop.time() + keep_s
        if self._aging is None:
            self._aging = loop.call_later(keep_s, self._age)

    def _age(self) -> None:
        """One timer for all of them: it looks again when the next one is due."""
        self._aging = None
        loop = asyncio.get_running_loop()
        for connection in [one for one, until_s in self._idle.items() if until_s <= loop.time()]:
            del self._idle[connection]
            connection.close()
        if self._idle:
            self._aging = loop.call_at(min(self._idle.values()), self._age)

    def _forget(self, connection: Connection) -> None:
        self._idle.pop(connection, None)

    async def _secure(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> Connection:
        connection = self._connection()
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(transport, connection, tls, server_hostname=self._address.host)
        if secured is None:  # pragma: no cover - as the loop's types say
            raise ConnectionResetError("the connection was closed")
        connection.secured(secured, transport)
        return connection


class _Tunnel(asyncio.Protocol):
    """What a connection is before it has TLS: it may first have to ask a proxy for a way through."""

    def __init__(self) -> None:
        self._answer = bytearray()
        self._told: asyncio.Future[OSError | None] | None = None
        """While an answer is waited for. The refusal is a value: an exception that nobody fetches is complained of."""

    @property
    def heard(self) -> bool:
        return bool(self._answer)

    async def ask(self, address: Address, credentials: str) -> None:
        host = f"[{address.host}]" if ":" in address.host else address.host
        authority = f"{host}:{address.port}"
        lines = [f"CONNECT {authority} HTTP/1.1", f"host: {authority}"]
        if credentials:
            lines.append(f"proxy-authorization: Basic {credentials}")
        self._told = asyncio.get_running_loop().create_future()
        if self._transport.is_closing():  # pragma: no cover - it closed in the one turn of the loop before
            self._tell(ConnectionResetError("the proxy closed the connection"))
        self._transport.write("\r\n".join([*lines, "", ""]).encode())
        refusal = await self._told
        if refusal is not None:
            raise refusal

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        status, *_ = self._answer.split(b"\r\n", 1)
        if re.match(rb"HTTP/1\.[01] 2\d\d\b", status) and self._answer.endswith(b"\r\n\r\n"):
            self._tell(None)
        elif b"\r\n\r\n" in self._answer or len(self._answer) > HEAD_LIMIT_BYTES:
            self._tell(ProxyRefused(status[:100].decode("latin-1")))

    def connection_lost(self, exc: Exception | None) -> None:
        self._tell(ConnectionResetError("the proxy closed the connection"))

    def _tell(self, refusal: OSError | None) -> None:
        if self._told is not None and not self._told.done():
            self._told.set_result(refusal)
