"""A server process from its start to its end, as signals want it.

SIGTERM and SIGINT: nothing new is begun, what runs may go on for `drain_s`, and then ends as interrupted. A second
one ends it at once, and whoever holds that up is not waited for. SIGHUP: the configuration is read again. uvicorn
keeps the connections; the signals are ours, since it would wait for open streams before it told anybody.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from headwater.config.settings import Settings
from headwater.server.app import build_app
from headwater.server.callers import Keyring
from headwater.server.cors import Cors
from headwater.server.descriptors import Shortage
from headwater.server.direct import DirectProtocol
from headwater.server.guard import Guard
from headwater.server.native.api import Native
from headwater.server.services import Services
from headwater.server.workers import Seat

_log = logging.getLogger("headwater.server")

_TICKS: Final = 10
"""Of uvicorn's clock, which has ten a second: between two looks at connections."""
_LAST_WORDS_S: Final = 1.0
"""For so long connections may go on when all runs have ended: what is not read by then is not waited for."""
_HURRY_S: Final = 5.0
"""After a second signal: more than last words take, and less than a store that can't be used is tried for."""
_REPORT_S: Final = 1.0
"""How often the parent is told that this process lives."""
WHAT_IS_MISSING: Final = (
    "runs that were going on are ended as interrupted by the next start, with what was kept of them; "
    "of the unrecorded ones that ended last, the list of runs may have none"
)
"""After an end at which the store could not be used."""


class Server(uvicorn.Server):
    """uvicorn's, without its signals, and without patience for those who don't read or never finish asking."""

    def __init__(self, config: uvicorn.Config, services: Services) -> None:
        super().__init__(config)
        self._services = services
        self._shortage = Shortage()

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS == 0:
            now_s, limit_s = asyncio.get_running_loop().time(), self._services.settings.server.request_timeout_s
            for connection in list(self.server_state.connections):
                if isinstance(connection, DirectProtocol):
                    connection.tick(now_s, limit_s)
            self._services.metrics.going_on(self._services.runs.running())
            self._shortage.look(now_s)
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        cutting = asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._cut)
        await super().shutdown(sockets)
        cutting.cancel()

    def _cut(self) -> None:
        for connection in list(self.server_state.connections):
            if (transport := connection.transport) is not None:
                transport.abort()


class Front:
    """What stands before the services: who may pass, and where to."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._keyring = Keyring(services.settings.server.keys, services.store, services.clock)
        self._guard = Guard(services.settings.server, self._keyring, services.clock)
        self._native = Native(services, self._guard)
        self.app: ASGIApp = Cors(build_app(services, self._guard, self._native.routes()), services)
        if services.tracing is not None:
            self.app = services.tracing.caused(self.app)

    def reload(self) -> None:
        server = self._services.settings.server
        self._keyring.reload(server.keys)
        self._guard.reload(server)

    def close(self) -> None:
        """Open streams end: they would keep the server from ending."""
        self._native.close()


def server_for(services: Services, front: Front | None = None) -> Server:
    config = uvicorn.Config(
        (front or Front(services)).app,
        # It goes by whether the application is a coroutine, and one that only passes requests on is none.
        interface="asgi3",
        http=DirectProtocol,
        ws="none",
        lifespan="off",
        # What is logged, and how, was set for the whole process.
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        # Whom to believe is the guard's to say: uvicorn would believe every process of this machine.
        proxy_headers=False,
        # Longer than clients keep theirs: whoever closes first does not lose a request that is on its way.
        timeout_keep_alive=75,
    )
    return Server(config, services)


class Process:
    """`reload` gives the settings anew, or None if they can't be used."""

    def __init__(self, services: Services, reload: Callable[[], Settings | None], seat: Seat | None = None) -> None:
        """`seat`: it is one of several that have a parent."""
        self._services = services
        self._seat = seat
        self._reload = reload
        self._front = Front(services)
        self._server = server_for(services, self._front)
        self._hurry = asyncio.Event()
        self._giving_up = threading.Timer(_HURRY_S, _give_up)
        self._giving_up.daemon = True
        self._ending: asyncio.Task[None] | None = None

    async def run(self, listener: socket.socket) -> bool:
        """Until a signal ends it. True: it was declared dead by another worker, and all is to be opened anew.

        Raises `StoreError` if not all could be kept in the end.
        """
        self._listen_to_signals()
        tasks = [asyncio.create_task(self._give_up_when_fenced(), name="process: fence")]
        if self._seat is not None:
            asyncio.get_running_loop().add_reader(self._seat.parent, self._on_parent_gone, self._seat.parent)
            tasks.append(asyncio.create_task(self._report(self._seat), name="process: report"))
        # The default looks through the youngest objects every 700 containers: with 256 open streams, every few tokens.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        try:
            try:
                await self._server.serve([listener])
            finally:
                await self._services.close()
        finally:
            self._giving_up.cancel()
            for task in tasks:
                task.cancel()
        return self._services.runs.fenced.is_set() and self._ending is None

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        # Windows has neither SIGHUP nor handlers of the loop: Ctrl-C raises there.
        with contextlib.suppress(NotImplementedError, AttributeError):
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._on_end)
            loop.add_signal_handler(signal.SIGHUP, self._on_reload)

    async def _report(self, seat: Seat) -> None:
        while True:
            seat.serves(self._services.store.worker_id)
            await asyncio.sleep(_REPORT_S)

    def _on_parent_gone(self, parent: int) -> None:
        asyncio.get_running_loop().remove_reader(parent)
        _log.error("the process that began this one is gone: it ends")
        self._on_end()

    async def _give_up_when_fenced(self) -> None:
        """Followers come back, and find in the store what others have made of the runs."""
        services = self._services
        await services.runs.fenced.wait()
        services.drain()
        await services.runs.close()
        self._front.close()
        self._server.should_exit = True

    def _on_end(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(), name="process: end")
        elif not self._hurry.is_set():
            self._hurry.set()
            self._giving_up.start()

    async def _end(self) -> None:
        services = self._services
        services.drain()
        running, drain_s = services.runs.running(), services.settings.server.drain_s
        _log.info("ending", extra={"runs": running, "up_to_s": drain_s if running else 0})
        waiting = {asyncio.create_task(services.runs.settle()), asyncio.create_task(self._hurry.wait())}
        await asyncio.wait(waiting, timeout=drain_s, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await services.runs.close()
        self._front.close()
        self._server.should_exit = True

    def _on_reload(self) -> None:
        settings = self._reload()
        if settings is None:
            return
        now = self._services.settings
        for what in ("host", "port", "workers", "traces"):
            if getattr(settings.server, what) != getattr(now.server, what):
                _log.warning("server.%s has changed: that takes a restart", what)
        if settings.store != now.store:
            _log.warning("[store] has changed: that takes a restart")
        self._services.reload(settings)
        self._front.reload()


def _give_up() -> None:
    """On a thread: the loop itself may be held up, by a file that another program has locked.

    All that was shown is kept, and the next start finds the rest, as if this process had been killed.
    """
    _log.error("ended before all was closed. If the store was not: %s", WHAT_IS_MISSING)
    os._exit(1)
