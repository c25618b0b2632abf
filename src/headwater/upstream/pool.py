"""Connections to one upstream: opened, directly or through a proxy, and kept for the next request.

Owns addresses, TLS and the idle connections. Refuses headers that would break out of their line, and proxies
that speak anything but plain HTTP. Does not retry: what a failure means is the caller's to say.
"""

import asyncio
import re
import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

from msgspec import Struct

from headwater.upstream.connection import HEAD_LIMIT_BYTES, Connection

_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORTS: Final = {"http": 80, "https": 443}


class ProxyRefused(ConnectionRefusedError):
    """What the proxy said instead of letting us through."""


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
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"{url!r} is no http or https address")
    credentials = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = b64encode(pair.encode()).decode()
    return Address(parts.scheme == "https", parts.hostname, parts.port or _PORTS[parts.scheme], credentials)


def proxy_of_environment(address: Address) -> Address | None:
    """What `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say of it."""
    proxies = getproxies_environment()
    url = proxies.get("https" if address.tls else "http", proxies.get("all"))
    if not url or proxy_bypass_environment(f"{address.host}:{address.port}", proxies):
        return None
    proxy = read_address(url if "://" in url else f"http://{url}")
    if proxy.tls:
        raise ValueError("a proxy has to be spoken to in plain HTTP; what goes through it may be TLS")
    return proxy


class Pool:
    def __init__(
        self,
        address: Address,
        *,
        proxy: Address | None = None,
        tls: ssl.SSLContext | None = None,
        connect_timeout_s: float = 10,
        keep_idle_s: float = 60,
    ) -> None:
        self._address = address
        self._proxy = proxy
        self._tls = tls or (ssl.create_default_context() if address.tls else None)
        self._connect_timeout_s = connect_timeout_s
        self._keep_idle_s = keep_idle_s
        self._idle: dict[Connection, float] = {}
        """Since when each is; the last one is taken first, so that the others may age and go."""

    def head(self, path: str, headers: Mapping[str, str], method: str = "POST") -> bytes:
        """A request up to the length of its body. Made once, for many."""
        named = {"host": self._address.authority, **headers}
        target = path
        if self._proxy is not None and not self._address.tls:
            target = f"http://{self._address.authority}{path}"
            if self._proxy.credentials:
                named["proxy-authorization"] = f"Basic {self._proxy.credentials}"
        for text in (target, *named, *named.values()):
            if _FORBIDDEN.search(text):
                raise ValueError(f"no control character may be in {text!r}")
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items()), ""]
        return "\r\n".join(lines).encode("latin-1", "replace")

    def take(self) -> Connection | None:
        """A connection that is at once there, if there is one."""
        while self._idle:
            connection, since_s = self._idle.popitem()
            if asyncio.get_running_loop().time() - since_s < self._keep_idle_s and connection.open:
                return connection
            connection.close()
        return None

    async def connect(self) -> Connection:
        """A new connection. Raises `OSError`; a `TimeoutError` is one, and so is what TLS may find."""
        async with asyncio.timeout(self._connect_timeout_s):
            if self._proxy is not None and self._tls is not None:
                return await self._connect_through(self._proxy, self._tls)
            nearest = self._proxy or self._address
            host = self._address.host if self._tls else None
            _, connection = await asyncio.get_running_loop().create_connection(
                self._connection, nearest.host, nearest.port, ssl=self._tls, server_hostname=host
            )
            return connection

    def close(self) -> None:
        while self._idle:
            self._idle.popitem()[0].close()

    def _connection(self) -> Connection:
        return Connection(self._keep, self._forget)

    def _keep(self, connection: Connection) -> None:
        self._idle[connection] = asyncio.get_running_loop().time()

    def _forget(self, connection: Connection) -> None:
        self._idle.pop(connection, None)

    async def _connect_through(self, proxy: Address, tls: ssl.SSLContext) -> Connection:
        loop = asyncio.get_running_loop()
        transport, tunnel = await loop.create_connection(_Tunnel, proxy.host, proxy.port)
        try:
            host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
            await tunnel.ask(f"{host}:{self._address.port}", proxy.credentials)
            connection = self._connection()
            secured = await loop.start_tls(transport, connection, tls, server_hostname=self._address.host)
        except BaseException:
            transport.abort()
            raise
        if secured is None:
            raise ConnectionResetError("the proxy closed the connection")
        connection.connection_made(secured)
        return connection


class _Tunnel(asyncio.Protocol):
    """Asks a proxy for a way through."""

    def __init__(self) -> None:
        self._answer = bytearray()
        self._open: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ask(self, authority: str, credentials: str) -> None:
        lines = [f"CONNECT {authority} HTTP/1.1", f"host: {authority}"]
        if credentials:
            lines.append(f"proxy-authorization: Basic {credentials}")
        self._transport.write("\r\n".join([*lines, "", ""]).encode())
        await self._open

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        status, *_ = self._answer.split(b"\r\n", 1)
        if self._open.done():
            return
        if re.match(rb"HTTP/1\.[01] 2\d\d\b", status) and self._answer.endswith(b"\r\n\r\n"):
            self._open.set_result(None)
        elif b"\r\n\r\n" in self._answer or len(self._answer) > HEAD_LIMIT_BYTES:
            self._open.set_exception(ProxyRefused(status[:100].decode("latin-1")))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._open.done():
            self._open.set_exception(ConnectionResetError("the proxy closed the connection"))
