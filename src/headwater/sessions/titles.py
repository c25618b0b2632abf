"""A title for a session, from the first thing that was said in it. Pure: no model is asked."""

import re
from collections.abc import Iterator
from typing import Final

from headwater.conversation import Image, Text, User

TITLE_CHARS: Final = 60
UNTITLED: Final = "New conversation"
# "Hi. Can you …": a greeting is no title.
_LEAST_CHARS: Final = 10
# More of what was pasted makes no better title, and the patterns below look back.
_TEXT_CHARS: Final = 10_000
_LINE_CHARS: Final = 400

_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_LINE_MARK: Final = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+|\d{1,3}[.)]\s+)+")
_RULE: Final = re.compile(r"^[\s\-=_*|:]*$")
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS: Final = re.compile(r"(\*\*|__|~~|\*|`+)(?=\S)(.+?)(?<=\S)\1")
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_SCHEME: Final = re.compile(r"\bhttps?://(?:www\.)?")
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]+")
_SENTENCE: Final = re.compile(r".+?(?:[.!?…]+(?=\s)|[。！？]+|$)")
# Too short to be a sentence's last word: "e.g.", "Dr.", "v1."
_ABBREVIATED: Final = re.compile(r"(?:^|[\s(])(?:\w{1,2}\.)+$")


def title_of(message: User) -> str:
    text = "\n".join(part.text for part in message.parts if isinstance(part, Text))[:_TEXT_CHARS]
    line = next(_prose(text), "") or next(_lines(text), "")
    return _short(_first_sentences(line)) or _pictures(message) or UNTITLED


def _lines(text: str) -> Iterator[str]:
    """Those that say something, without their marks."""
    for line in text.splitlines():
        if not _FENCE.match(line) and not _RULE.match(line) and (plain := _plain(line)):
            yield plain


def _prose(text: str) -> Iterator[str]:
    """Lines that are not in a block of code."""
    code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            code = not code
        elif not code:
            yield from _lines(line)


def _plain(line: str) -> str:
    line = _LINE_MARK.sub("", line[:_LINE_CHARS])
    line = _LINK.sub(r"\1", line)
    line = _TAG.sub(" ", line)
    line = _EMPHASIS.sub(r"\2", line)
    return _BLANK.sub(" ", _SCHEME.sub("", line)).strip()


def _first_sentences(line: str) -> str:
    """As many as it takes to say something."""
    taken = ""
    for sentence in _SENTENCE.findall(line):
        taken += sentence
        if len(taken.strip()) >= _LEAST_CHARS and not _ABBREVIATED.search(taken):
            break
    return taken.strip()


def _short(title: str) -> str:
    if len(title) <= TITLE_CHARS:
        return title.rstrip(".,:;。 ")
    cut = title[:TITLE_CHARS]
    # Between words, unless that leaves next to nothing, as in a URL or in Chinese.
    words = cut.rpartition(" ")[0]
    return (words if len(words) > TITLE_CHARS // 2 else cut[:-1]).rstrip(".,:;–- ") + "…"


def _pictures(message: User) -> str:
    count = sum(isinstance(part, Image) for part in message.parts)
    return "" if not count else "An image" if count == 1 else f"{count} images"
