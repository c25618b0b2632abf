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
from headwater.upstream.dial import dial
from headwater.upstream.resolve import Resolver

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
        resolver: Resolver | None = None,
        connect_timeout_s: float = 10,
        keep_idle_s: float = 60,
    ) -> None:
        self._address = address
        self._proxy = proxy
        self._tls = tls or (ssl.create_default_context() if address.tls else None)
        self._resolver = resolver or Resolver()
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
        while self._idle:
            self._idle.popitem()[0].close()

    def _connection(self) -> Connection:
        return Connection(self._keep, self._forget)

    def _keep(self, connection: Connection) -> None:
        self._idle[connection] = asyncio.get_running_loop().time()

    def _forget(self, connection: Connection) -> None:
        self._idle.pop(connection, None)

    async def _secure(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> Connection:
        connection = self._connection()
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(transport, connection, tls, server_hostname=self._address.host)
        if secured is None:
            raise ConnectionResetError("the connection was closed")
        connection.connection_made(secured)
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
        if self._transport.is_closing():
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
