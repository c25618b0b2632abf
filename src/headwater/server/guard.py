"""Whom to let in: asked once a request, before anything of it is looked at. A function to call, no middleware.

Without keys everybody who can reach the port is the owner of all. So then a request must come from this machine, call
it by a name that no stranger's DNS can point at it, come from no page of another origin, and through no proxy that
shows itself. With keys a page of another origin is refused only where a browser would send the key by itself: with a
cookie.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from starlette.types import Scope as AsgiScope

from headwater.clock import Clock
from headwater.config.settings import ServerSettings
from headwater.errors import StoreError
from headwater.records import Scope
from headwater.runs.service import Runs
from headwater.server.callers import KNOWN_S, LOCAL, Caller, Keyring
from headwater.server.http import header, headers_in
from headwater.server.refusals import Refusal

Headers = Mapping[bytes, bytes]

COOKIE: Final = "headwater_key"
HEADERS_BYTES: Final = 64 * 1024
_PROXIES: Final = frozenset(
    {
        b"via",
        b"x-real-ip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"x-remote-ip",
        b"x-originating-ip",
        b"x-original-host",
        b"x-original-url",
        b"x-rewrite-url",
        b"x-scheme",
        b"x-proxyuser-ip",
        b"x-arr-log-id",
        b"x-envoy-external-address",
        b"x-envoy-internal",
        b"x-azure-clientip",
        b"x-azure-socketip",
        b"x-appengine-user-ip",
        b"x-sucuri-clientip",
        b"true-client-ip",
        b"proxy-client-ip",
        b"wl-proxy-client-ip",
        b"incap-client-ip",
        b"fastly-client-ip",
        b"fly-client-ip",
        b"do-connecting-ip",
        b"cf-connecting-ip",
        b"cf-connecting-ipv6",
        b"cf-ray",
        b"cf-visitor",
        b"cdn-loop",
        b"akamai-origin-hop",
    }
)
"""Headers that none but a proxy sends. So is every other that has this in its name:"""
_FORWARDED: Final = b"forwarded"
_ANY: Final = frozenset({"*", "*."})
_HOW_TO_MAKE_A_KEY: Final = "Make a key (headwater keys create NAME), and send it with the request."


class Guard:
    def __init__(self, settings: ServerSettings, keyring: Keyring, clock: Clock) -> None:
        self._clock = clock
        self._keyring = keyring
        self._buckets: dict[str, _Bucket] = {}
        self.reload(settings)

    def reload(self, settings: ServerSettings) -> None:
        """From now on these."""
        self._origins = settings.cors_origins
        self._hosts = tuple(host.lower() for host in settings.allowed_hosts)
        # Any name may be one in a stranger's DNS, whose pages would be let in with it.
        self._hosts_without_keys = tuple(host for host in self._hosts if host not in _ANY) or ("localhost",)
        self._proxies = tuple(ipaddress.ip_network(proxy, strict=False) for proxy in settings.trusted_proxies)

    async def caller(self, scope: AsgiScope, needs: tuple[Scope, ...] = ("chat",)) -> Caller:
        """Any scope of `needs` is enough. Raises `Refusal`: 401, 403, 421, 429, 431."""
        caller = await self._who(scope)
        if not any(one in caller.scopes for one in needs):
            lacking = " or ".join(f"'{one}'" for one in needs)
            raise Refusal(f"This key may not do that: it has no scope {lacking}.", status=403, code="scope_needed")
        self.count(caller)
        return caller

    def recognised(self, scope: AsgiScope) -> Caller | None:
        """See `Door`."""
        try:
            headers = self._headers(scope)
            host = self._host(scope, headers)
            match self._keyring.is_known_to_be_needed():
                case True:
                    self._check_name(scope, host)
                    key = _key_in(headers)
                    caller = None if key is None else self._keyring.known(key)
                case False:
                    caller = self._local(scope, headers, host)
                case None:
                    caller = None
        except Refusal:
            # Whoever asks in full is told of it.
            return None
        return caller if caller is not None and "chat" in caller.scopes else None

    async def until_unwelcome(self, scope: AsgiScope, caller: Caller) -> Refusal:
        """Why they, who were let in, would not be any more: for what goes on long after it was asked for.

        It is looked at now and then, and counts as no request.
        """
        while True:
            await self._clock.sleep(KNOWN_S)
            try:
                now = await self._who(scope)
            except Refusal as refusal:
                return refusal
            except StoreError:
                # Nobody knows. Whoever has to use the store is told of it.
                continue
            if (now.owner, now.scopes) != (caller.owner, caller.scopes):
                return _unauthorized("This key is not what it was.", "key_changed")

    async def visitor(self, scope: AsgiScope) -> None:
        """For what needs no key: whoever is let through the door may see it. Raises `Refusal`."""
        headers = self._headers(scope)
        host = self._host(scope, headers)
        if await self._keyring.is_needed():
            self._check_name(scope, host)
        else:
            self._check_local(scope, headers, host)
        if scope["method"] != "GET":
            self._check_origin(headers, host)

    def is_secure(self, scope: AsgiScope) -> bool:
        """The browser came by https, be it only up to a proxy that we trust."""
        proto = header(scope, b"x-forwarded-proto")
        return scope["scheme"] == "https" or (proto == "https" and self._is_trusted(scope))

    async def caller_of(self, key: str) -> Caller | None:
        return await self._keyring.caller(key)

    async def _who(self, scope: AsgiScope) -> Caller:
        headers = self._headers(scope)
        host = self._host(scope, headers)
        if await self._keyring.is_needed():
            self._check_name(scope, host)
            return await self._by_key(headers, host)
        return self._local(scope, headers, host)

    def _local(self, scope: AsgiScope, headers: Headers, host: str) -> Caller:
        self._check_local(scope, headers, host)
        self._check_origin(headers, host, self._origins)
        return LOCAL

    async def _by_key(self, headers: Headers, host: str) -> Caller:
        key = _key_in(headers)
        if key is None:
            key = _cookie_in(headers)
            if key is not None:
                # A browser sends it by itself, whoever made it ask.
                self._check_origin(headers, host)
        if key is None:
            raise _unauthorized("A key is needed: Authorization: Bearer KEY.", "key_needed")
        caller = await self._keyring.caller(key)
        if caller is None:
            raise _unauthorized("This key is not known, or was revoked.", "key_unknown")
        return caller

    # ------------------------------------------------------------- where from

    def _headers(self, scope: AsgiScope) -> Headers:
        if sum(map(len, chain.from_iterable(scope["headers"]))) > HEADERS_BYTES:
            raise Refusal("The headers are too large.", status=431, code="headers_too_large")
        return headers_in(scope)

    def _check_local(self, scope: AsgiScope, headers: Headers, host: str) -> None:
        # Of a plain `proxy_pass` nginx's only mark is HTTP/1.0, which hardly a client speaks any more.
        if scope["http_version"] == "1.0" or _through_proxy(headers):
            message = "This server has no keys, and a proxy would open it to everybody."
            raise Refusal(f"{message} {_HOW_TO_MAKE_A_KEY}", status=403, code="proxy_without_keys")
        if not _is_here(scope):
            message = "This server has no keys, and answers only to its own machine."
            raise Refusal(f"{message} {_HOW_TO_MAKE_A_KEY}", status=403, code="not_local")
        if not _names_loopback(host):
            # A name in a stranger's DNS may be pointed at this machine; it would still be in `Host`.
            self._check_host(host, self._hosts_without_keys)

    def _check_name(self, scope: AsgiScope, host: str) -> None:
        """With keys. Who is here may always use the names of loopback: no stranger's DNS can give those."""
        if not (_names_loopback(host) and _is_here(scope)):
            self._check_host(host, self._hosts)

    def _host(self, scope: AsgiScope, headers: Headers) -> str:
        """What the client has called us. A proxy that we trust may call us by another name than it was called."""
        given = headers.get(b"host", b"")
        if self._proxies and self._is_trusted(scope):
            given = headers.get(b"x-forwarded-host", given)
        return given.decode("latin-1").lower()

    def _check_host(self, host: str, allowed: tuple[str, ...]) -> None:
        if allowed and not _matches(_name_of(host), allowed):
            message = "This server does not go by the name in `Host`. If it should, put that into server.allowed_hosts."
            if "*" in self._hosts:
                message = f"This server has no keys, and without them '*' is no name of it. {_HOW_TO_MAKE_A_KEY}"
            raise Refusal(message, status=421, code="host_not_allowed")

    def _check_origin(self, headers: Headers, host: str, allowed: tuple[str, ...] = ()) -> None:
        """`allowed`: origins that may ask all the same; never where a cookie speaks for whoever is asking."""
        strange = False
        if b"origin" in headers:
            origin = headers[b"origin"].decode("latin-1")
            if origin in allowed:
                return
            strange = _place_of(origin) != host
        if strange or headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            raise Refusal("A page of another origin may not ask this.", status=403, code="cross_origin")

    def _is_trusted(self, scope: AsgiScope) -> bool:
        client = scope.get("client")
        try:
            address = ipaddress.ip_address(client[0] if client else "")
        except ValueError:
            return False
        return any(address in network for network in self._proxies)

    # --------------------------------------------------------------- how often

    def count(self, caller: Caller) -> None:
        """See `Door`. Raises `Refusal`: 429."""
        key_id, limit = caller.key_id, caller.requests_per_minute
        if key_id is None or limit is None:
            return
        now_s = self._clock.now_s()
        bucket = self._buckets.get(key_id)
        if bucket is None:
            bucket = self._buckets[key_id] = _Bucket(limit, now_s)
        bucket.left = min(limit, bucket.left + (now_s - bucket.at_s) * limit / 60)
        bucket.at_s = now_s
        if bucket.left < 1:
            after_s = max(1, round((1 - bucket.left) * 60 / limit))
            message = f"More than {limit} requests a minute. Come back in {after_s} s."
            raise Refusal(message, status=429, code="too_many_requests", headers={"retry-after": str(after_s)})
        bucket.left -= 1


class _Bucket(Struct):
    left: float
    at_s: float


def check_runs(caller: Caller, runs: Runs, more: int = 1) -> None:
    """Raises `Refusal` if they have as many runs as they may."""
    limit = caller.concurrent_runs
    if limit is not None and (running := runs.running(caller.owner)) + more > limit:
        message = f"{running} runs are going on, and this key may have {limit} at a time."
        raise Refusal(message, status=429, code="too_many_runs", headers={"retry-after": "5"})


# ----------------------------------------------------------------- in a header


def _key_in(headers: Headers) -> str | None:
    kind, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if kind.lower() == "bearer" and key.strip():
        return key.strip()
    named = headers.get(b"x-api-key")
    return None if named is None else named.decode("latin-1")


def _cookie_in(headers: Headers) -> str | None:
    """By hand: one cookie of another program on this machine that is not quite legal must not hide ours."""
    for pair in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE and value:
            return unquote(value)
    return None


def _through_proxy(headers: Headers) -> bool:
    # Joined: to look at each by itself takes twice as long (0.8 µs for the 17 headers of an SDK, against 1.6).
    return not _PROXIES.isdisjoint(headers) or _FORWARDED in b"\n".join(headers)


def _unauthorized(message: str, code: str) -> Refusal:
    return Refusal(message, status=401, code=code, headers={"www-authenticate": "Bearer"})


def _name_of(host: str) -> str:
    """Without the port, and without the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _place_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def _is_here(scope: AsgiScope) -> bool:
    """At this machine. A Unix socket has no address."""
    client = scope.get("client")
    return client is None or _is_loopback(client[0])


@lru_cache(maxsize=256)
def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


@lru_cache(maxsize=256)
def _names_loopback(host: str) -> bool:
    return _is_loopback(_name_of(host))


def _matches(name: str, allowed: Iterable[str]) -> bool:
    """`*` alone is any name; `*.example.com` is what ends so."""
    for pattern in allowed:
        if pattern in ("*", name, f"[{name}]") or (pattern.startswith("*.") and name.endswith(pattern[1:])):
            return True
    return False
