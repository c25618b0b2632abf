"""Which of an upstream's keys is next. Pure: the time comes in."""

from collections.abc import Sequence


class Keys:
    """Takes turns. A key that was refused is left out for a while, as long as there is another."""

    def __init__(self, keys: Sequence[str], rest_s: float) -> None:
        self._keys = list(keys)
        self._rest_s = rest_s
        self._next = 0
        self._resting_until_s: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def take(self, now_s: float) -> str | None:
        if len(self._keys) < 2:
            return self._keys[0] if self._keys else None
        for step in range(len(self._keys)):
            key = self._keys[(self._next + step) % len(self._keys)]
            if self._resting_until_s.get(key, now_s) <= now_s:
                self._next += step + 1
                return key
        self._next += 1
        return self._keys[self._next % len(self._keys)]

    def refused(self, key: str | None, now_s: float) -> bool:
        """This one is no good. True: there is another that may be."""
        if key is not None:
            self._resting_until_s[key] = now_s + self._rest_s
        return any(self._resting_until_s.get(other, now_s) <= now_s for other in self._keys)
