"""All parts of a server, built from its settings in one place, and taken down in the right order."""

import asyncio
import io
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from headwater.agent.agents import Agents
from headwater.clock import Clock, SystemClock
from headwater.config.settings import Settings
from headwater.events import make_id
from headwater.runs.answers import Answers
from headwater.runs.habits import Habits, MakeSource
from headwater.runs.observing import Later
from headwater.runs.service import Runs
from headwater.runs.unfollowed import Patience
from headwater.server.logs import RunLog
from headwater.server.metrics import Metrics
from headwater.sessions.sessions import Sessions
from headwater.store.base import Store
from headwater.store.opening import open_store
from headwater.upstream.sweep import Sweep
from headwater.upstream.upstreams import Upstreams

if TYPE_CHECKING:
    from headwater.server.tracing import Tracing

_HOUR_S = 3_600.0
_DAY_S = 86_400.0


class Services:
    """`open` it inside the event loop that serves."""

    def __init__(
        self, settings: Settings, clock: Clock, store: Store, upstreams: Upstreams, tracing: "Tracing | None" = None
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.store = store
        self.upstreams = upstreams
        self._entropy = io.BytesIO()
        self.accepting = True
        """False once it is to end: nothing new is begun."""
        self.sweep = Sweep(clock)
        """For heartbeats."""
        self.sessions = Sessions(store, clock, self.make_id)
        self.agents = Agents(settings, upstreams, store, clock)
        self.answers = Answers(store, self.sessions, upstreams, self.agents)
        self.tracing = tracing
        self.traced: Callable[[MakeSource], MakeSource] = _as_it_is if tracing is None else tracing.around
        """Around whatever a run is begun with."""
        self._retiring: set[asyncio.Task[None]] = set()
        self.metrics = Metrics()
        self._observer = Later(self.metrics, RunLog(), then=self.metrics.hand_on)
        store.watch_commits(self.metrics.committed)
        kept = settings.store
        self.keep_keys_s = kept.keep_idempotency_hours * _HOUR_S
        """Of clients, to be able to ask again."""
        self.runs = Runs(
            Habits(
                store=store,
                clock=clock,
                make_id=self.make_id,
                tail_bytes=kept.tail_bytes,
                observer=self._observer,
            ),
            self.traced(self.answers),
            Patience(
                max_unfollowed_s=kept.max_unfollowed_s,
                linger_s=settings.server.linger_s,
                keep_logs_s=kept.keep_logs_days * _DAY_S,
                keep_keys_s=self.keep_keys_s,
            ),
        )

    @classmethod
    async def open(
        cls, settings: Settings, address: str, clock: Clock | None = None, dead: Collection[str] = ()
    ) -> Self:
        """`address` is where this worker listens; `dead` are workers that were killed.

        Raises `StoreError`; `ImportError` for traces without their extra.
        """
        clock = clock or SystemClock()
        url = settings.store.url.reveal()
        store = await open_store(
            url,
            address=address,
            clock=clock,
            entropy=os.urandom,
            durability=settings.store.durability,
            lease_s=settings.store.lease_s,
        )
        tracing = _tracing() if settings.server.traces else None
        services = cls(settings, clock, store, Upstreams(settings, clock, recordings(url)), tracing)
        if dead:
            await store.fence_dead(dead)
        await services.runs.open()
        return services

    def drain(self) -> None:
        self.accepting = False
        self.runs.drain()

    async def close(self, drain_s: float = 0.0) -> None:
        """Raises `StoreError` if not all could be kept; the rest is closed all the same."""
        self.accepting = False
        await self.runs.close(drain_s)
        self._observer.tell()
        await self.sweep.close()
        await asyncio.gather(*self._retiring)
        await self.agents.close()
        await self.upstreams.close()
        try:
            await self.store.close()
        finally:
            if self.tracing is not None:
                await self.tracing.close()

    def reload(self, settings: Settings) -> None:
        """From now on these. What is under way goes on as it was begun; the store stays the one that was opened."""
        old, old_agents = self.upstreams, self.agents
        self.settings = replace(settings, store=self.settings.store)
        self.upstreams = Upstreams(self.settings, self.clock, recordings(self.settings.store.url.reveal()))
        self.agents = Agents(self.settings, self.upstreams, self.store, self.clock)
        self.answers.upstreams, self.answers.agents = self.upstreams, self.agents
        retiring = asyncio.create_task(self._retire(old, old_agents), name="services: retire")
        self._retiring.add(retiring)
        retiring.add_done_callback(self._retiring.discard)

    async def _retire(self, old: Upstreams, old_agents: Agents) -> None:
        await self.runs.settle()
        await old_agents.close()
        await old.close()

    def metrics_text(self) -> bytes:
        """All that is to be told up to now."""
        self._observer.tell()
        return self.metrics.text()

    def make_id(self, prefix: str) -> str:
        entropy = self._entropy.read(16)
        if not entropy:
            # For many: to ask the system for it takes longer than all the rest of an id.
            self._entropy = io.BytesIO(os.urandom(256 * 16))
            entropy = self._entropy.read(16)
        return make_id(prefix, int(self.clock.unix_s() * 1000), entropy)


def _tracing() -> "Tracing":
    # Imported only here: it is an extra.
    from headwater.server.tracing import Tracing

    return Tracing()


def _as_it_is(make_source: MakeSource) -> MakeSource:
    return make_source


def recordings(store_url: str) -> Path:
    """Beside the database, if that is a file."""
    scheme, _, path = store_url.partition(":")
    folder = Path(path).expanduser().parent if scheme == "sqlite" else Path.cwd()
    return folder / "recordings"
