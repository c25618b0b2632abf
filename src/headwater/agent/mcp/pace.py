"""How much a server of tools may say in a moment: one that floods waits, and nobody else does. Pure."""

from typing import Final

PER_S: Final = 2000.0
"""Messages, or pieces of 4 kB of larger ones: some 5 % of a core to read."""
AT_ONCE: Final = 10_000.0
_PIECE_BYTES: Final = 4096


class Pace:
    def __init__(self, now_s: float) -> None:
        self._left = AT_ONCE
        self._at_s = now_s

    def wait_s(self, size_bytes: int, now_s: float) -> float:
        """A message of this size has come: for so long no other is to be read."""
        self._left = min(AT_ONCE, self._left + (now_s - self._at_s) * PER_S) - 1 - size_bytes / _PIECE_BYTES
        self._at_s = now_s
        return max(0.0, -self._left / PER_S)
