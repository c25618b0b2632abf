"""A TCP connection to whichever of a host's addresses answers first.

"Happy eyeballs" (RFC 8305): the families take turns, and the next address is tried when the last one has failed or
has been silent for a moment. A host whose IPv6 leads nowhere costs that moment, and not the whole time limit.
"""

import asyncio
import errno
import socket
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from typing import Final

from headwater.upstream.resolve import Peer

STAGGER_S: Final = 0.25

_NO_ROUTE: Final = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


async def dial(peers: Sequence[Peer], stagger_s: float = STAGGER_S) -> socket.socket:
    """A connected socket. Raises `OSError`; whatever ends it, no other socket is left open."""
    if len(peers) == 1:
        result = await _try(peers[0])
        if isinstance(result, OSError):
            raise result
        return result
    left = in_turns(peers)
    tasks: set[asyncio.Task[socket.socket | OSError]] = set()
    errors: list[OSError] = []
    try:
        while left or tasks:
            if left:
                tasks.add(asyncio.create_task(_try(left.pop(0)), name="dial"))
            limit_s = stagger_s if left else None
            done, _ = await asyncio.wait(tasks, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                tasks.discard(task)
                result = task.result()
                if isinstance(result, socket.socket):
                    return result
                errors.append(result)
        # That a family has no route says less than what the other one met.
        raise min(errors, key=lambda error: error.errno in _NO_ROUTE)
    finally:
        await _give_up(tasks)


def in_turns(peers: Iterable[Peer]) -> list[Peer]:
    """One of each family after the other, each in its own order."""
    families: dict[int, list[Peer]] = {}
    for peer in peers:
        families.setdefault(peer.family, []).append(peer)
    return [peer for turn in zip_longest(*families.values()) for peer in turn if peer is not None]


async def _try(peer: Peer) -> socket.socket | OSError:
    with ExitStack() as stack:
        try:
            sock = stack.enter_context(socket.socket(peer.family, socket.SOCK_STREAM))
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, peer.sockaddr)
        except OSError as error:
            return error
        stack.pop_all()
        return sock


async def _give_up(tasks: set[asyncio.Task[socket.socket | OSError]]) -> None:
    for task in tasks:
        # One may have connected at the same moment as the winner, or as a cancel.
        task.add_done_callback(_close)
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _close(task: asyncio.Task[socket.socket | OSError]) -> None:
    if not task.cancelled() and isinstance(result := task.result(), socket.socket):
        result.close()
