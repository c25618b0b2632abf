"""Reads what upstreams get wrong: the second reading, when the typed one has failed.

Whatever comes out of `mended` can be written as UTF-8; what comes out of `load` may not be.
"""

import json
from typing import Any

from msgspec import Struct

from headwater.errors import FrameUnreadable


def load(data: bytes) -> Any:
    """Any JSON, with bad UTF-8 and lone surrogates let through."""
    try:
        # NaN and the infinities are no JSON, and could not be written again.
        return json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise FrameUnreadable("no JSON", data) from None


def load_body(body: bytes) -> bytes:
    """An answer that came in one piece, where a stream was asked for: an object, if it is one."""
    if body[:1] == b"<":
        raise FrameUnreadable("HTML, where an API should answer (is the base URL right?)", body)
    if body[:1] == b"[":
        # Gemini puts an error into a list: tests/wire/chat/error_in_list.sse
        listed = objects(load(body))
        return json.dumps(listed[0]).encode() if listed else body
    return body


def load_object(data: bytes) -> dict[str, Any]:
    loaded = load(data)
    if not isinstance(loaded, dict):
        raise FrameUnreadable("JSON that is no object", data)
    return loaded


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def mended(text: str) -> str:
    """Surrogate pairs joined, lone ones replaced: what UTF-8 can carry."""
    if _writable(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def mended_all(value: Any) -> Any:
    """The same for every string in a JSON value."""
    match value:
        case str():
            return mended(value)
        case list():
            return [mended_all(item) for item in value]
        case dict():
            return {mended(key): mended_all(item) for key, item in value.items()}
        case _:
            return value


class Halves(Struct):
    """Joins what was cut in the middle of a character, as escapes can be."""

    half: str = ""

    def join(self, text: str) -> str:
        """What can be said by now."""
        if not self.half and _writable(text):
            return text
        text = self.half + text
        self.half = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return mended(text.removesuffix(self.half))

    def rest(self) -> str:
        """The half that is left over, as the character for what is lost."""
        return "\ufffd" if self.half else ""


def string(value: Any) -> str:
    """A string where one should be: integer ids and the like are taken as they read."""
    return "" if value is None else value if isinstance(value, str) else str(value)


def json_text(value: Any) -> str:
    """JSON in a string, where it should be; an object that was put in its place is written out."""
    return "" if value is None else mended(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def object_or_none(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(value: Any) -> int | None:
    """A number of tokens."""
    # By its exact type: a bool is no number here.
    return int(value) if type(value) in (int, float) and 0 <= value < 2**53 else None
