"""All servers of tools of a configuration: which of them a run shares with whom, and when one is no longer needed."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from headwater.agent.tools import Offer, Progress, Returned, Tool
from headwater.clock import Clock
from headwater.config.settings import McpSettings
from headwater.records import Run

if TYPE_CHECKING:
    from headwater.agent.mcp.connection import Connection

LISTED_S: Final = 300.0
"""For so long a list of tools is believed, if its server does not say that it has changed."""
RUN_IDLE_S: Final = 15.0
"""A server that was started for a single run is kept for so long."""
_SWEEP_S: Final = 5.0

Key = tuple[str, ...]


class Servers:
    """Made inside the event loop that it will run on; `close` it there."""

    def __init__(self, settings: dict[str, McpSettings], clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._connections: dict[Key, Connection] = {}
        self._listed: dict[str, tuple[float, Offer]] = {}
        self._sweeping: asyncio.Task[None] | None = None

    def toolbox(self, name: str, run: Run) -> "Box":
        if self._settings[name].scope == "shared":
            return Box(self, name, (name,))
        whose = ("run", run.id) if run.session_id is None else ("session", run.owner, run.session_id)
        return Box(self, name, (name, *whose))

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))
        self._connections.clear()

    # ---------------------------------------------------------------- for the boxes

    def listed(self, name: str) -> Offer | None:
        until_s, offer = self._listed.get(name, (float("-inf"), Offer()))
        return offer if self._clock.now_s() < until_s else None

    def note(self, name: str, offer: Offer) -> None:
        if not offer.missing:
            self._listed[name] = self._clock.now_s() + LISTED_S, offer

    async def connection(self, name: str, key: Key) -> "Connection":
        if key not in self._connections:
            # A second of imports, which nobody else is to wait for.
            module = await asyncio.to_thread(import_module, "headwater.agent.mcp.connection")
            if key not in self._connections:
                self._connections[key] = module.Connection(
                    name, self._settings[name], self._clock, on_change=lambda: self._listed.pop(name, None)
                )
            if self._sweeping is None:
                self._sweeping = asyncio.create_task(self._sweep(), name="mcp: sweep")
        return self._connections[key]

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(_SWEEP_S)
            now_s = self._clock.now_s()
            idle = [key for key, one in self._connections.items() if one.idle_s(now_s) > self._limit_s(key)]
            await asyncio.gather(*(self._connections.pop(key).close() for key in idle))

    def _limit_s(self, key: Key) -> float:
        return RUN_IDLE_S if key[1:2] == ("run",) else self._settings[key[0]].idle_s


class Box:
    """A `Toolbox`: the tools of one server, for one run."""

    def __init__(self, servers: Servers, name: str, key: Key) -> None:
        self._servers = servers
        self._name = name
        self._key = key

    async def offer(self) -> Offer:
        known = self._servers.listed(self._name)
        if known is not None:
            return known
        offer = await (await self._servers.connection(self._name, self._key)).offer()
        self._servers.note(self._name, offer)
        return offer

    async def call(self, tool: Tool, arguments: dict[str, Any], progress: Progress) -> Returned:
        return await (await self._servers.connection(self._name, self._key)).call(tool, arguments, progress)
