"""A reasoning item, taken apart: its text is for people, the rest is its model's own.

The rest is kept as `state` and goes back unread. OpenAI seals the thoughts
themselves in `encrypted_content`, bound to the item's id.
"""

from typing import Any, Final

from headwater.dialects.lenient import objects, string

# Parts are paragraphs of their own, which their texts alone don't say.
BETWEEN_PARTS: Final = "\n\n"


def text_of(item: dict[str, Any]) -> str:
    """All that a person can read of it, parts of the summary first."""
    parts = objects(item.get("summary")) + objects(item.get("content"))
    return BETWEEN_PARTS.join(filter(None, (string(part.get("text")) for part in parts)))


def state_of(item: dict[str, Any], text: str) -> dict[str, Any]:
    """The item without its text, if that and `text` are enough to rebuild it; else all of it."""
    kept = {name: value for name, value in item.items() if name not in ("type", "status")}
    for field in ("summary", "content"):
        lean = {name: value for name, value in kept.items() if name != field}
        if rebuilt(text, lean) == {"type": "reasoning", **kept}:
            return lean
    # Text that the item itself does not have is not to be put into it.
    return kept if "content" in kept or kept.get("summary") else {**kept, "content": None}


def rebuilt(text: str, state: dict[str, Any]) -> dict[str, Any]:
    item = {"type": "reasoning", **state}
    if item.get("content", ...) is None:
        del item["content"]
        return item
    if "summary" not in item:
        item["summary"] = [{"type": "summary_text", "text": text}] if text else []
    elif text and not item["summary"] and "content" not in item:
        item["content"] = [{"type": "reasoning_text", "text": text}]
    return item
