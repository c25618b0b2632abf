"""Names to addresses, by the system's resolver, on threads that nobody waits for.

Owns one lookup for each name that is asked for at a time, and what was found for some seconds. The event loop's own
`getaddrinfo` is not used: a name server that is silent takes all threads of the loop's executor, other hosts' lookups
queue up behind it, and closing the loop waits for every one.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

KEEP_S: Final = 5.0
"""Long enough for a burst of connections, short enough for a service that moves."""


class Peer(Struct, frozen=True):
    """Where to connect to, as a socket takes it."""

    family: int
    sockaddr: tuple[Any, ...]


LookUp = Callable[[str, int], Sequence[Peer]]
"""Blocks. Raises `OSError`, or `ValueError` for what can't be a name."""


def look_up(host: str, port: int, flags: int = 0) -> tuple[Peer, ...]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return tuple(Peer(family, sockaddr) for family, _, _, _, sockaddr in found)


class Resolver:
    """For one event loop."""

    def __init__(self, look_up: LookUp = look_up, *, keep_s: float = KEEP_S) -> None:
        self._look_up = look_up
        self._keep_s = keep_s
        self._found: dict[tuple[str, int], tuple[float, Sequence[Peer]]] = {}
        """When, and what."""
        self._waiting: dict[tuple[str, int], set[asyncio.Future[Sequence[Peer]]]] = {}

    async def peers(self, host: str, port: int) -> Sequence[Peer]:
        """Raises `OSError` or `ValueError`. A cancel ends the waiting, for this caller only, and not the lookup."""
        if ":" in host or host.replace(".", "").isdigit():
            return look_up(host, port, socket.AI_NUMERICHOST)
        loop = asyncio.get_running_loop()
        name = host, port
        found_s, peers = self._found.get(name, (0.0, ()))
        if peers and loop.time() - found_s < self._keep_s:
            return peers
        # A future for each: one that were shared would be cancelled for all.
        waiter: asyncio.Future[Sequence[Peer]] = loop.create_future()
        if name in self._waiting:
            self._waiting[name].add(waiter)
        else:
            self._waiting[name] = {waiter}
            thread = threading.Thread(target=self._work, args=(loop, name), name=f"resolve {host}", daemon=True)
            thread.start()
        return await waiter

    def _work(self, loop: asyncio.AbstractEventLoop, name: tuple[str, int]) -> None:
        found: Sequence[Peer] | OSError | ValueError
        try:
            found = self._look_up(*name)
        except (OSError, ValueError) as error:
            found = error
        # The loop may be closed: then nobody waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._tell, name, found, loop.time())

    def _tell(self, name: tuple[str, int], found: Sequence[Peer] | OSError | ValueError, now_s: float) -> None:
        if not isinstance(found, Exception):
            self._found[name] = now_s, found
        for waiter in self._waiting.pop(name):
            if waiter.done():
                continue
            if isinstance(found, Exception):
                waiter.set_exception(found)
            else:
                waiter.set_result(found)
