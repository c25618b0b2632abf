"""What was asked, on which connection, how much was sent, and when and how each client went away."""

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

from headwater.clock import Clock

Closed = Literal["client_fin", "client_reset", "simulator_fin", "simulator_reset"]
Ending = Literal["answered", "client_fin", "client_reset", "simulator_fin", "simulator_reset"]
"""`answered`: the whole body was written, whatever was in it."""

_SECRET: Final = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})


class Exchange(Struct, kw_only=True):
    """One request and what became of it."""

    number: int
    """From 0, as in `Simulator.requests`."""
    connection: int
    came_unix_s: float
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case; of a key only a fingerprint, by which keys can be told apart."""
    body: Any
    """Its JSON; a text if it is none."""
    model: str = ""
    complaints: list[str] = field(default_factory=list)
    """What the real provider would refuse it for."""
    status: int = 0
    """0: nothing was answered, not even a head."""
    sent_bytes: int = 0
    sent_tokens: int = 0
    ending: Ending | None = None
    """None: it goes on."""
    ended_after_s: float | None = None


class Connected(Struct, kw_only=True):
    number: int
    opened_unix_s: float
    requests: int = 0
    closed: Closed | None = None
    closed_unix_s: float | None = None


class Journal:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.exchanges: list[Exchange] = []
        self.connections: dict[int, Connected] = {}
        self._connected = 0
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def opened(self) -> Connected:
        record = Connected(number=self._connected, opened_unix_s=self._clock.unix_s())
        self.connections[record.number] = record
        self._connected += 1
        self._changed()
        return record

    def closed(self, record: Connected, how: Closed) -> None:
        record.closed = how
        record.closed_unix_s = self._clock.unix_s()
        self._changed()

    def asked(self, connection: Connected, method: str, path: str, headers: dict[str, str], body: bytes) -> Exchange:
        exchange = Exchange(
            number=len(self.exchanges),
            connection=connection.number,
            came_unix_s=self._clock.unix_s(),
            method=method,
            path=path,
            headers={name: mask(value) if name in _SECRET else value for name, value in headers.items()},
            body=_readable(body),
        )
        connection.requests += 1
        self.exchanges.append(exchange)
        self._changed()
        return exchange

    def ended(self, exchange: Exchange, how: Ending) -> None:
        exchange.ending = how
        exchange.ended_after_s = round(self._clock.unix_s() - exchange.came_unix_s, 6)
        self._changed()

    def clear(self) -> None:
        """Forget what was asked. Connections that are open stay known."""
        self.exchanges.clear()
        self.connections = {n: record for n, record in self.connections.items() if record.closed is None}
        self._changed()

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Until `condition` holds; it is looked at whenever something was noted."""
        if condition():
            return
        waiting = asyncio.get_running_loop().create_future()
        entry = (condition, waiting)
        self._waiting.append(entry)
        try:
            await waiting
        finally:
            self._waiting.remove(entry)

    def _changed(self) -> None:
        for condition, waiting in self._waiting:
            if not waiting.done() and condition():
                waiting.set_result(None)


def mask(value: str) -> str:
    scheme, space, secret = value.rpartition(" ")
    return f"{scheme}{space}***{hashlib.sha256(secret.encode()).hexdigest()[:8]}"


def _readable(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body) if body else None
    except msgspec.DecodeError:
        return body.decode("utf-8", "replace")
