"""What a message's text refers to: places in the text, which move when its parts become one."""

from typing import Any, Final

from headwater.dialects.lenient import objects, string

_PLACES: Final = ("start_index", "end_index")


def joined_annotations(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of all parts of a message, as those of one text."""
    joined: list[dict[str, Any]] = []
    before_chars = 0
    for part in parts:
        joined += [_moved(one, before_chars) for one in objects(part.get("annotations"))]
        before_chars += len(string(part.get("text")))
    return joined


def _moved(annotation: dict[str, Any], by_chars: int) -> dict[str, Any]:
    moved = {name: place + by_chars for name in _PLACES if isinstance(place := annotation.get(name), int)}
    return {**annotation, **moved} if by_chars else annotation
