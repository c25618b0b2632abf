"""Who is asking, and what they may do: from a key to its owner.

Keys are kept as their SHA-256 only. They are long and random, so that a plain hash is as safe as a slow one, which
would cost more than the rest of a request.

A store that can't be asked closes no door that it was known to have open, and opens none: what it said last stands,
for so long as a revocation may be felt late.
"""

import asyncio
import hashlib
import logging
import math
from collections.abc import Callable, Coroutine, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from headwater.clock import Clock
from headwater.config.settings import KeySettings
from headwater.errors import StoreError
from headwater.records import Key, Scope
from headwater.store.base import KeyStore

KNOWN_S: Final = 5.0
"""For so long a key is believed without asking the store: how late a revocation may be felt."""
TRUSTED_S: Final = 300.0
"""And for so long if it can't be asked, since it last was: a revocation may be felt so late in an outage."""
_PATIENCE_S: Final = 1.0
"""For so long the store is waited for where what it last said will do. A Postgres that is away takes three or more."""
_REMEMBERED: Final = 4096

T = TypeVar("T")

_log = logging.getLogger("headwater.server")


class Caller(Struct, frozen=True, kw_only=True):
    owner: str
    scopes: tuple[Scope, ...] = ("chat",)
    models: tuple[str, ...] = ("*",)
    """Patterns of the names that they may ask for."""
    key_id: str | None = None
    requests_per_minute: int | None = None
    """None: as many as they like."""
    concurrent_runs: int | None = None
    """Of their owner, on this worker."""

    def may_ask(self, model: str) -> bool:
        return "*" in self.models or any(fnmatchcase(model, pattern) for pattern in self.models)

    @property
    def is_admin(self) -> bool:
        return "admin" in self.scopes


LOCAL: Final = Caller(owner="local", scopes=("chat", "approve", "admin"))
"""Whoever is at this machine, when no keys are set."""


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class _Known(Struct, frozen=True):
    caller: Caller | None
    until_s: float
    trusted_until_s: float
    """While the store can't be asked."""


class Keyring:
    """The keys of the configuration, and those in the store."""

    def __init__(self, configured: Sequence[KeySettings], store: KeyStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._asking: dict[str | None, asyncio.Task[Any]] = {}
        """By the hash of the key; None: whether there are any."""
        self._any: bool | None = None
        """In the store, when it was last asked; None: it never was."""
        self._none_until_s = -math.inf
        self._told_s = -math.inf
        self.reload(configured)

    def reload(self, configured: Sequence[KeySettings]) -> None:
        """From now on these. What is known of the store's stays known: it may be away."""
        self._configured = {
            hash_of(key.key.reveal()): _Known(_configured(n, key), math.inf, math.inf)
            for n, key in enumerate(configured)
        }

    async def is_needed(self) -> bool:
        """Somebody has made a key, be it revoked by now: taking away the last one must not let everybody in.

        Raises `StoreError` if that is not known. That there were none stands for as long as the store is away: then
        nobody but this machine is let in.
        """
        known = self.is_known_to_be_needed()
        if known is None:
            now_s, there_were_none = self._clock.now_s(), self._any is False
            try:
                known = await self._heard(None, self._look_for_any, in_a_hurry=there_were_none)
            except StoreError as error:
                if not there_were_none:
                    raise
                self._tell(error)
                known = False
            self._none_until_s = now_s + KNOWN_S
        return known

    def is_known_to_be_needed(self) -> bool | None:
        """None: the store has to be asked."""
        if self._configured or self._any:
            return True
        return False if self._clock.now_s() < self._none_until_s else None

    async def caller(self, key: str) -> Caller | None:
        """Raises `StoreError` if it is not known, and was not lately."""
        hash = hash_of(key)
        known = self._by_hash(hash)
        if known is None:
            trusted = self._trusted(hash)
            try:
                known = await self._heard(hash, lambda: self._look_up(hash), in_a_hurry=trusted is not None)
            except StoreError as error:
                if trusted is None:
                    raise
                self._tell(error)
                until_s = min(self._clock.now_s() + KNOWN_S, trusted.trusted_until_s)
                known = self._known[hash] = replace(trusted, until_s=until_s)
        return known.caller

    def known(self, key: str) -> Caller | None:
        """The same without the store, if it is not long since it was asked."""
        known = self._by_hash(hash_of(key))
        return None if known is None else known.caller

    def _by_hash(self, hash: str) -> _Known | None:
        known = self._configured.get(hash) or self._known.get(hash)
        return known if known is not None and self._clock.now_s() < known.until_s else None

    def _trusted(self, hash: str) -> _Known | None:
        """One that the store has let in. Whom it has not, it may by now: who knows."""
        known = self._known.get(hash)
        trusts = known is not None and known.caller is not None and self._clock.now_s() < known.trusted_until_s
        return known if trusts else None

    # --------------------------------------------------------- asking the store

    async def _look_for_any(self) -> bool:
        self._any = there_are = bool(await self._store.keys())
        return there_are

    async def _look_up(self, hash: str) -> _Known:
        now_s = self._clock.now_s()
        known = _Known(_kept(await self._store.key(hash)), now_s + KNOWN_S, now_s + TRUSTED_S)
        if len(self._known) >= _REMEMBERED:
            # Whoever guesses must not fill the memory.
            self._known.clear()
        self._known[hash] = known
        return known

    async def _heard(self, hash: str | None, ask: Callable[[], Coroutine[Any, Any, T]], *, in_a_hurry: bool) -> T:
        """It is asked once for all who want to know, and to the end: what comes late is known to the next."""
        asking: asyncio.Task[T] | None = self._asking.get(hash)
        if asking is None:
            asking = self._asking[hash] = asyncio.create_task(ask(), name="keyring: ask")
            asking.add_done_callback(lambda over: self._asked(hash, over))
        done, _ = await asyncio.wait({asking}, timeout=_PATIENCE_S if in_a_hurry else None)
        if not done:
            raise StoreError(f"it did not answer for {_PATIENCE_S:.0f} s", trouble="unreachable")
        return asking.result()

    def _asked(self, hash: str | None, over: asyncio.Task[Any]) -> None:
        del self._asking[hash]
        if not over.cancelled():
            # Whoever had no patience was told of something else.
            over.exception()

    def _tell(self, error: StoreError) -> None:
        """Not for every key."""
        now_s = self._clock.now_s()
        if now_s >= self._told_s + KNOWN_S:
            self._told_s = now_s
            _log.warning("callers are known from before, since the store can't be asked: %s", error)


def _configured(number: int, key: KeySettings) -> Caller:
    return Caller(
        owner=key.owner,
        scopes=key.scopes,
        models=key.models,
        key_id=f"server.keys[{number}]",
        requests_per_minute=key.requests_per_minute,
        concurrent_runs=key.concurrent_runs,
    )


def _kept(key: Key | None) -> Caller | None:
    if key is None or key.revoked_at is not None:
        return None
    return Caller(
        owner=key.owner,
        scopes=key.scopes,
        models=key.models,
        key_id=key.id,
        requests_per_minute=key.requests_per_minute,
        concurrent_runs=key.concurrent_runs,
    )
