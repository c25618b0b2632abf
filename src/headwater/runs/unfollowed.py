"""Runs that nobody follows: since when, and for which that is too long.

Whoever follows from another worker counts as well. The owner learns of them from the store, once a second.
"""

from collections.abc import Mapping

from msgspec import Struct

from headwater.records import KEYS_S
from headwater.runs.live import LiveRun
from headwater.store.base import Store


class Patience(Struct, frozen=True, kw_only=True):
    """How long runs go on with nobody there."""

    max_unfollowed_s: float = 3600.0
    linger_s: float = 15.0
    """With `on_disconnect: cancel`."""
    keep_logs_s: float = 7 * 86_400.0
    keep_keys_s: float = KEYS_S


class Unfollowed:
    def __init__(self, store: Store, patience: Patience) -> None:
        self._store = store
        self._patience = patience
        self._since_s: dict[str, float] = {}

    def begin(self, run_id: str, now_s: float) -> None:
        self._since_s[run_id] = now_s

    def over(self, run_id: str) -> None:
        self._since_s.pop(run_id, None)

    def note(self, live: Mapping[str, LiveRun], now_s: float) -> None:
        """Those that are followed here, now."""
        for run_id, run in live.items():
            if run.followers:
                self._since_s[run_id] = now_s

    async def too_long(self, live: Mapping[str, LiveRun], now_s: float) -> list[LiveRun]:
        await self._store.tell_following()
        alone = [run for run in live.values() if not run.followers]
        if any(run.run.recorded for run in alone):
            for run_id in await self._store.followed_elsewhere():
                self._since_s[run_id] = now_s
        return [run for run in alone if now_s - self._since_s.get(run.run.id, now_s) > self._limit_s(run)]

    def _limit_s(self, run: LiveRun) -> float:
        cancels = run.run.on_disconnect == "cancel" and run.run.recorded
        return self._patience.linger_s if cancels else self._patience.max_unfollowed_s
