"""Tells inline thinking (`<think>…</think>` in the text) from the answer.

Pure. A tag counts only where a model's own thinking can begin: at the start of
the message, or of the text after reasoning or a tool call. Anywhere else, and in
code, it is text that somebody may have asked for.
"""

from typing import Final, Literal

from headwater.events import Event, ReasoningDelta, TextDelta

TAGS: Final = ("think", "thinking", "thought", "reasoning")
_OPENING: Final = {f"<{tag}>": f"</{tag}>" for tag in TAGS}
# White space that has not become a tag by then is an answer that begins with white space.
_HOLD_CHARS: Final = 256


class ThinkSplitter:
    """`feed` each event of the turn in order; `end` gives what is still held back."""

    def __init__(self) -> None:
        self._state: Literal["opening", "inside", "text"] = "opening"
        self._held: list[str] = []
        """Chunks that may yet turn out to be a tag, as they came."""
        self._closing = ""
        self._after_tag = False

    def feed(self, event: Event, out: list[Event]) -> None:
        if type(event) is not TextDelta or event.refusal:
            self.end(out)
            self._state = "opening"
            self._after_tag = False
            out.append(event)
        elif self._state == "text":
            out.append(event)
        elif self._state == "inside":
            self._inside(event.text, out)
        else:
            self._opening(event.text, out)

    def end(self, out: list[Event]) -> None:
        delta = ReasoningDelta if self._state == "inside" else TextDelta
        out.extend(delta(chunk) for chunk in self._held)
        self._held.clear()

    def _opening(self, text: str, out: list[Event]) -> None:
        if self._after_tag:
            text = text.lstrip("\r\n")
            if not text:
                return
            self._after_tag = False
        self._held.append(text)
        whole = "".join(self._held)
        bare = whole.lstrip()
        for tag, closing in _OPENING.items():
            if bare.startswith(tag):
                self._state = "inside"
                self._closing = closing
                self._held.clear()
                self._inside(bare[len(tag) :], out)
                return
        if len(whole) > _HOLD_CHARS or not any(tag.startswith(bare) for tag in _OPENING):
            self.end(out)
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
