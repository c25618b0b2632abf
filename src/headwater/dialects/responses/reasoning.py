"""A reasoning item, taken apart: its text is for people, the rest is its model's own.

The rest is kept as `state` and goes back unread. OpenAI seals the thoughts
themselves in `encrypted_content`, bound to the item's id.
"""

from typing import Any, Final

from headwater.dialects.lenient import objects, string

# Parts are paragraphs of their own, which their texts alone don't say.
BETWEEN_PARTS: Final = "\n\n"

_PART_TYPES: Final = {"summary": "summary_text", "content": "reasoning_text"}
# Ours, in a state: the field of the item that its text is all of.
_TEXT_IS: Final = "text_is"


def text_of(item: dict[str, Any]) -> str:
    """All that a person can read of it, parts of the summary first."""
    parts = objects(item.get("summary")) + objects(item.get("content"))
    return BETWEEN_PARTS.join(filter(None, (string(part.get("text")) for part in parts)))


def state_of(item: dict[str, Any], text: str) -> dict[str, Any]:
    """The item without its text, if that and `text` are enough to rebuild it; else all of it."""
    kept = {name: value for name, value in item.items() if name not in ("type", "status", _TEXT_IS)}
    for place in _PART_TYPES:
        lean = {name: value for name, value in kept.items() if name != place} | {_TEXT_IS: place}
        if rebuilt(text, lean) == {"type": "reasoning", **kept}:
            return lean
    return kept


def is_sealed(state: dict[str, Any]) -> bool:
    """Else it only tells that the reasoning has ended."""
    return bool(state.get("encrypted_content"))


def rebuilt(text: str, state: dict[str, Any]) -> dict[str, Any]:
    item = {"type": "reasoning", "summary": [], **state}
    place = item.pop(_TEXT_IS, None)
    if place is not None:
        item[place] = [{"type": _PART_TYPES[place], "text": text}]
    return item
