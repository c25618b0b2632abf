"""Which upstreams are left alone for now, and which models can't stream. Pure: the time comes in."""


class Health:
    """An upstream that keeps failing is left alone while there is another (C29)."""

    def __init__(self, after: int, rest_s: float) -> None:
        self._after = after
        self._rest_s = rest_s
        self._failures = 0
        self._until_s: float | None = None

    def succeeded(self) -> None:
        self._failures = 0
        self._until_s = None

    def failed(self, now_s: float) -> None:
        self._failures += 1
        if self._failures >= self._after:
            self._until_s = now_s + self._rest_s

    def resting(self, now_s: float) -> bool:
        """After the rest turns are let through; the first that fails begins the next rest."""
        return self._until_s is not None and now_s < self._until_s


class CannotStream:
    """Models that refused to stream, remembered for a while and not for ever (C23)."""

    def __init__(self, for_s: float) -> None:
        self._for_s = for_s
        self._until_s: dict[str, float] = {}

    def learn(self, model: str, now_s: float) -> None:
        self._until_s[model] = now_s + self._for_s

    def knows(self, model: str, now_s: float) -> bool:
        until_s = self._until_s.get(model)
        if until_s is None:
            return False
        if until_s <= now_s:
            del self._until_s[model]
        return until_s > now_s
