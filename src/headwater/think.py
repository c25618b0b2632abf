"""Tells inline thinking (`<think>…</think>` in the text) from the answer.

Pure. A tag counts only where a model's own thinking can begin: at the start of
the message, or of the text after reasoning or a tool call. Anywhere else, and in
code, it is text that somebody may have asked for.
"""

from typing import Final, Literal

from headwater.events import Event, ReasoningDelta, TextDelta

TAGS: Final = ("think", "thinking", "thought", "reasoning")
_OPENING: Final = {f"<{tag}>": f"</{tag}>" for tag in TAGS}
# What a tag may begin with, and be all that has come.
_BEGUN: Final = frozenset(tag[:n] for tag in _OPENING for n in range(len(tag)))
# More white space than that is an answer which begins with white space, and is not held back.
_BLANK_CHARS: Final = 256


class ThinkSplitter:
    """`split` the events of the turn as they come; `end` gives what is still held back."""

    __slots__ = ("_after_tag", "_closing", "_held", "_state")

    def __init__(self) -> None:
        self._state: Literal["opening", "inside", "text"] = "opening"
        self._held: list[str] = []
        """Chunks that may yet turn out to be a tag, as they came."""
        self._closing = ""
        self._after_tag = False

    @property
    def settled(self) -> bool:
        """Text is the answer by now, until something else comes."""
        return self._state == "text"

    def split(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if type(event) is not TextDelta or event.refusal:
                if self._held:
                    out += self.end()
                self._state = "opening"
                self._after_tag = False
                out.append(event)
            elif self._state == "text":
                out.append(event)
            elif self._state == "inside":
                self._inside(event.text, out)
            else:
                self._opening(event.text, out)
        return out

    def end(self) -> list[Event]:
        """What was held back, now that no tag will come of it."""
        if not self._held:
            return []
        held, self._held = self._held, []
        if self._state == "inside":
            return [ReasoningDelta(chunk) for chunk in held]
        return [TextDelta(chunk) for chunk in held]

    def _opening(self, text: str, out: list[Event]) -> None:
        if self._after_tag:
            text = text.lstrip("\r\n")
            if not text:
                return
            self._after_tag = False
        if not self._held and text.lstrip()[:1] not in ("", "<"):
            # Nearly every answer begins so.
            self._state = "text"
            out.append(TextDelta(text))
            return
        self._held.append(text)
        whole = "".join(self._held)
        bare = whole.lstrip()
        endless = len(whole) - len(bare) > _BLANK_CHARS
        for tag, closing in _OPENING.items():
            if bare.startswith(tag) and not endless:
                self._state = "inside"
                self._closing = closing
                self._held.clear()
                self._inside(bare[len(tag) :], out)
                return
        if endless or bare not in _BEGUN:
            out += self.end()
            self._state = "text"

    def _inside(self, text: str, out: list[Event]) -> None:
        text = "".join(self._held) + text
        self._held.clear()
        thought, tag, rest = text.partition(self._closing)
        if tag:
            if thought:
                out.append(ReasoningDelta(thought))
            self._state = "opening"
            self._after_tag = True
            if rest:
                self._opening(rest, out)
            return
        cut = len(text) - _overlap(text, self._closing)
        if cut:
            out.append(ReasoningDelta(text[:cut]))
        if cut < len(text):
            self._held.append(text[cut:])


def _overlap(text: str, tag: str) -> int:
    """How much of the end of `text` may be the beginning of `tag`."""
    return next((n for n in range(min(len(text), len(tag) - 1), 0, -1) if text.endswith(tag[:n])), 0)
