"""Tool calls of a run as cards of one line each: which go on, and which are over. Pure: times come with the entries."""

from collections.abc import Iterator
from typing import Final, Literal

from headwater.cli.words import arguments, one_line, seconds
from headwater.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptStarted,
    Entry,
    RunEnded,
    ToolArgsDelta,
    ToolCallStarted,
    ToolProgress,
    ToolResult,
    ToolRunStarted,
)

State = Literal["asked", "waiting", "running", "done", "failed", "unknown", "refused"]
MARKS: Final[dict[State, str]] = {
    "asked": "·",
    "waiting": "?",
    "running": "▸",
    "done": "✓",
    "failed": "✗",
    "unknown": "?",
    "refused": "✗",
}


class Card:
    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self.arguments = ""
        self.state: State = "asked"
        self.began_ms: float | None = None
        self.took_ms: float | None = None
        self.note = ""

    def line(self, now_ms: float | None = None) -> str:
        parts = [f"{MARKS[self.state]} {self.name}({arguments(self.arguments)})"]
        took_ms = self.took_ms
        if took_ms is None and self.began_ms is not None and now_ms is not None:
            took_ms = max(0.0, now_ms - self.began_ms)
        if took_ms is not None:
            parts.append(seconds(took_ms / 1000))
        if self.state in ("unknown", "refused", "waiting"):
            parts.append({"unknown": "nobody knows if it ran", "refused": "refused", "waiting": "waits"}[self.state])
        said = f" → {self.note}" if self.note else ""
        return " · ".join(parts) + said


class Cards:
    def __init__(self) -> None:
        self._by_index: dict[int, Card] = {}
        """Of this turn."""
        self._open: dict[str, Card] = {}
        self.asked: ApprovalAsked | None = None
        """What somebody has to say yes or no to."""

    def apply(self, entry: Entry) -> list[Card]:
        """Those that are over by this event, to be shown for the last time."""
        event = entry.event
        match event:
            case AttemptStarted():
                return self._new_turn()
            case ToolCallStarted(index=index, id=id, name=name):
                self._by_index[index] = self._open[id] = Card(id, name)
            case ToolArgsDelta(index=index, text=text):
                if card := self._by_index.get(index):
                    card.arguments += text
            case ApprovalAsked():
                self._ask(event)
            case ApprovalGiven():
                self._answer(event)
            case ToolRunStarted(call_id=call_id):
                if card := self._open.get(call_id):
                    card.state, card.began_ms = "running", entry.t
            case ToolProgress():
                if card := self._open.get(event.call_id):
                    card.note = _progress(event)
            case ToolResult():
                return [*self._result(event, entry.t)]
            case RunEnded():
                self.asked = None
                return self._new_turn() + self._leave()
            case _:
                pass
        return []

    def open_lines(self, now_ms: float | None) -> list[str]:
        return [card.line(now_ms) for card in self._open.values()]

    @property
    def busy(self) -> bool:
        return bool(self._open)

    # ------------------------------------------------------------------- steps

    def _new_turn(self) -> list[Card]:
        """What was asked for and never begun is left to whoever asked the model: it is told once."""
        over = [card for card in self._by_index.values() if card.id in self._open and card.state == "asked"]
        for card in over:
            del self._open[card.id]
        self._by_index.clear()
        return over

    def _leave(self) -> list[Card]:
        over = list(self._open.values())
        self._open.clear()
        return over

    def _ask(self, event: ApprovalAsked) -> None:
        card = self._open.setdefault(event.call_id, Card(event.call_id, event.name))
        card.arguments, card.state = event.arguments, "waiting"
        self.asked = event

    def _answer(self, event: ApprovalGiven) -> None:
        if self.asked is not None and self.asked.call_id == event.call_id:
            self.asked = None
        if card := self._open.get(event.call_id):
            card.state = "asked" if event.decision == "yes" else "refused"
            card.note = one_line(event.reason or "")

    def _result(self, event: ToolResult, t: float) -> Iterator[Card]:
        card = self._open.pop(event.call_id, None)
        if card is None:
            return
        card.state = "refused" if card.state == "refused" else event.state
        card.took_ms = None if card.began_ms is None else t - card.began_ms
        card.note = one_line(event.text)
        yield card


def _progress(event: ToolProgress) -> str:
    share = ""
    if event.done is not None:
        share = f"{event.done:g}" + (f" of {event.total:g}" if event.total else "")
    return " ".join(part for part in (share, one_line(event.text)) if part)
