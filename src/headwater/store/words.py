"""What search sees of a message, and how a hit is shown."""

import re
from typing import Final

from headwater.conversation import Message, Text

_WORD: Final = re.compile(r"\w+")
SNIPPET_CHARS: Final = 160


def text_of(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def words_of(query: str) -> list[str]:
    """What is looked for: words alone, so that no query is a syntax error."""
    return _WORD.findall(query.casefold())


def has_words(text: str, query: str) -> bool:
    """All of them, the last one perhaps only begun."""
    words = words_of(query)
    if not words:
        return False
    found = words_of(text)
    return set(words[:-1]) <= set(found) and any(word.startswith(words[-1]) for word in found)


def snippet(text: str, query: str) -> str:
    """Some of the text around the first of the words."""
    words = words_of(query)
    at = min((place for word in words if (place := text.casefold().find(word)) >= 0), default=0)
    start = max(0, at - SNIPPET_CHARS // 4)
    piece = text[start : start + SNIPPET_CHARS].strip()
    return ("…" if start else "") + piece + ("…" if start + SNIPPET_CHARS < len(text) else "")
