"""Who is asking, and what they may do: from a key to its owner.

Keys are kept as their SHA-256 only. They are long and random, so that a plain hash is as safe as a slow one, which
would cost more than the rest of a request.
"""

import hashlib
import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from headwater.clock import Clock
from headwater.config.settings import KeySettings
from headwater.records import Key, Scope
from headwater.store.base import KeyStore

KNOWN_S: Final = 5.0
"""For so long a key is believed without asking the store: how late a revocation may be felt."""
_REMEMBERED: Final = 4096


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


class Keyring:
    """The keys of the configuration, and those in the store."""

    def __init__(self, configured: Sequence[KeySettings], store: KeyStore, clock: Clock) -> None:
        self._configured = {
            hash_of(key.key.reveal()): _Known(_configured(n, key), math.inf) for n, key in enumerate(configured)
        }
        self._store = store
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._needed = bool(configured)
        self._open_until_s = float("-inf")

    async def is_needed(self) -> bool:
        """Somebody has made a key, be it revoked by now: taking away the last one must not let everybody in."""
        known = self.is_known_to_be_needed()
        if known is None:
            now_s = self._clock.now_s()
            self._needed = bool(await self._store.keys())
            self._open_until_s = now_s + KNOWN_S
            known = self._needed
        return known

    def is_known_to_be_needed(self) -> bool | None:
        """None: the store has to be asked."""
        return self._needed if self._needed or self._clock.now_s() < self._open_until_s else None

    async def caller(self, key: str) -> Caller | None:
        hash, now_s = hash_of(key), self._clock.now_s()
        known = self._by_hash(hash)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                # Whoever guesses must not fill the memory.
                self._known.clear()
            known = self._known[hash] = _Known(_kept(await self._store.key(hash)), now_s + KNOWN_S)
        return known.caller

    def known(self, key: str) -> Caller | None:
        """The same without the store, if it is not long since it was asked."""
        known = self._by_hash(hash_of(key))
        return None if known is None else known.caller

    def _by_hash(self, hash: str) -> _Known | None:
        known = self._configured.get(hash) or self._known.get(hash)
        return known if known is not None and self._clock.now_s() < known.until_s else None


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
