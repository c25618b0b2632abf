"""All upstreams of a configuration, ready to be asked: built in one place."""

import asyncio
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from headwater.clock import Clock
from headwater.config.settings import Settings, UpstreamSettings
from headwater.errors import UpstreamError
from headwater.events import Failed
from headwater.upstream import demo, faults
from headwater.upstream.catalog import Catalog, May, Resolved, anything
from headwater.upstream.endpoint import Endpoint
from headwater.upstream.exchange import Opener
from headwater.upstream.http import HttpOpener
from headwater.upstream.mask import Mask
from headwater.upstream.model import Model
from headwater.upstream.played import PlayedOpener
from headwater.upstream.providers import PATHS
from headwater.upstream.record import Recorder
from headwater.upstream.resolve import Resolver
from headwater.upstream.sweep import Sweep
from headwater.upstream.targets import address, headers, needs_finish_reason, route

_LIST_S: Final = 10.0
_LIST_BYTES: Final = 8 * 1024 * 1024
_MOST_NAMES: Final = 1000
_HEADERS: Final = {
    "content-type": "application/json",
    "accept": "text/event-stream, application/json",
    # A stream that was compressed comes late, in blocks.
    "accept-encoding": "identity",
    "user-agent": "headwater",
}


class Upstreams:
    """Made inside the event loop that it will run on; `close` it there."""

    def __init__(
        self, settings: Settings, clock: Clock, recordings: Path, jitter: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._jitter = jitter
        self._recordings = recordings
        self.list_s = _LIST_S
        """How long a list of models is waited for."""
        self._openers: list[HttpOpener] = []
        self._resolver = Resolver()
        self.sweep = Sweep(clock)
        self._settings = settings.upstreams
        self._endpoints = {name: self._endpoint(name, one) for name, one in settings.upstreams.items()}
        self._endpoints[demo.NAME] = Endpoint(
            demo.NAME, demo.SETTINGS, PlayedOpener(demo.answer, clock), needs_finish_reason=True
        )
        self._known: dict[str, Callable[[], Model]] = {}
        """Names that were asked for, and whom they lead to by the lists of models that were read last."""
        self.catalog = Catalog(settings, self._fetch, self._known.clear)

    async def model(self, name: str | None, may: May = anything) -> Model:
        """Whoever answers for this name. Raises `CallerError`, which names only what they `may` ask for."""
        chosen = name or await self.catalog.choose(name, self._clock.now_s(), may)
        at_hand = self.at_hand(chosen)
        return at_hand or self.of(await self.catalog.resolve(chosen, self._clock.now_s(), may))

    def at_hand(self, name: str) -> Model | None:
        """The same, by the lists of models that were read by now; None: that takes another one, or is an error."""
        known = self._known.get(name) or self._learn(name)
        return None if known is None else known()

    def of(self, resolved: Resolved) -> Model:
        return self._making(resolved)()

    def _learn(self, name: str) -> Callable[[], Model] | None:
        """Nothing is waited for in between: what is noted here is what the lists say now."""
        resolved = self.catalog.at_hand(name)
        if resolved is None:
            return None
        if len(self._known) >= _MOST_NAMES:
            # Whoever asks for ever other names must not fill the memory.
            self._known.clear()
        known = self._known[name] = self._making(resolved)
        return known

    def _making(self, resolved: Resolved) -> Callable[[], Model]:
        """A model is each run's own, its routes need not be: to find one takes 100 µs."""
        routes = [route(self._endpoints[one.upstream], one) for one in (resolved, *resolved.fallbacks)]
        window = resolved.model_settings.context_tokens if resolved.model_settings else None
        return partial(Model, routes, self._clock, self.sweep, self._jitter, window)

    async def close(self) -> None:
        await self.sweep.close()
        for opener in self._openers:
            opener.close()

    def _endpoint(self, name: str, settings: UpstreamSettings) -> Endpoint:
        sockets = self._opener(settings, PATHS[settings.dialect])
        self._openers.append(sockets)
        opener: Opener = sockets
        if settings.record:
            folder = Path(settings.record_dir).expanduser() if settings.record_dir else self._recordings
            opener = Recorder(opener, folder, name, settings.dialect, Mask(settings), self._clock)
        return Endpoint(name, settings, opener, needs_finish_reason=needs_finish_reason(settings))

    async def _fetch(self, upstream: str, path: str) -> bytes:
        """A list of models. Raises `UpstreamError`."""
        settings = self._settings[upstream]
        opener = self._opener(settings, path)
        key = self._endpoints[upstream].keys.take(self._clock.now_s())
        try:
            async with asyncio.timeout(self.list_s):
                status, body = await opener.get(_LIST_BYTES, key)
        except TimeoutError:
            failed = Failed("stalled", f"No list of models within {self.list_s:g} s.", retryable=True)
            raise UpstreamError(failed) from None
        finally:
            opener.close()
        if status != 200:
            mask = self._endpoints[upstream].mask
            failed = faults.refusal(upstream, status, {}, mask.body(body))
            raise UpstreamError(replace(failed, message=mask.text(failed.message)))
        return body

    def _opener(self, settings: UpstreamSettings, path: str) -> HttpOpener:
        return HttpOpener(
            address(settings, path),
            lambda key: _HEADERS | headers(settings, key),
            connect_s=settings.connect_timeout_s,
            max_connections=settings.max_connections,
            resolver=self._resolver,
        )
