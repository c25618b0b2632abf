"""Takes out of an upstream's words what it was told in confidence.

Some repeat the key that they refuse, and some all headers of the request. Pure: it knows what is configured, and
changes text and bytes.
"""

import json
from typing import Final

from headwater.config.settings import UpstreamSettings

LEAST_CHARS: Final = 8
"""A shorter value guards nothing, and would be found everywhere."""
CUT: Final = b"[cut]"
"""For the beginning of a secret whose rest did not come."""
_SCHEMES: Final = frozenset({"bearer", "basic", "token", "apikey", "api-key", "key"})
_PUBLIC: Final = frozenset(
    {
        "accept",
        "accept-language",
        "anthropic-beta",
        "anthropic-version",
        "content-type",
        "http-referer",
        "openai-beta",
        "referer",
        "user-agent",
        "x-title",
    }
)
"""Headers that say who is asking for what. Their words stand in many an answer."""


class Mask:
    """One for each upstream: its keys, and what is in its headers, by whose names they are replaced."""

    def __init__(self, settings: UpstreamSettings) -> None:
        hidden: dict[str, str] = {}
        for name, value in settings.headers.items():
            if name.lower() not in _PUBLIC:
                hidden |= {form: f"[{name.lower()}]" for form in _forms(value.reveal()) if len(form) >= LEAST_CHARS}
        hidden |= {key.reveal(): "[key]" for key in settings.api_key if key.reveal()}
        # One may be a part of another: the longest first.
        self._hidden = sorted(hidden.items(), key=lambda pair: -len(pair[0]))
        self._long = [(one.encode(), by.encode()) for one, by in self._hidden if len(one) >= LEAST_CHARS]

    def text(self, said: str) -> str:
        for hidden, by in self._hidden:
            if hidden in said:
                said = said.replace(hidden, by)
        return said

    def piece(self, data: bytes) -> tuple[bytes, bytes]:
        """Of what comes in pieces. And its end, if that may be the beginning of something: it belongs to the next."""
        for hidden, by in self._long:
            data = data.replace(hidden, by)
        cut = len(data) - max((_overlap(data, hidden) for hidden, _ in self._long), default=0)
        return data[:cut], data[cut:]

    def body(self, data: bytes) -> bytes:
        """Of what came as one, be it not to its end."""
        data, rest = self.piece(data)
        return data + ended(rest)


def ended(rest: bytes) -> bytes:
    """Of the end of a piece, with nothing behind it."""
    return CUT if len(rest) >= LEAST_CHARS else rest


def _forms(value: str) -> set[str]:
    """How it may be repeated: whole, without the word before it (`Bearer …`), and as JSON has it."""
    scheme, _, rest = value.partition(" ")
    plain = {value, rest.strip()} if scheme.lower() in _SCHEMES else {value}
    return plain | {json.dumps(form, ensure_ascii=False)[1:-1] for form in plain}


def _overlap(data: bytes, hidden: bytes) -> int:
    """How much of the end of `data` may be the beginning of `hidden`."""
    return next((n for n in range(min(len(data), len(hidden) - 1), 0, -1) if data.endswith(hidden[:n])), 0)
