"""How a run's events are shown where there is no terminal: plain text, or an event a line.

The answer goes to stdout, all else to stderr. What a terminal shows is in `screen`.
"""

import sys
from typing import Literal, Protocol

from headwater.cli import words
from headwater.cli.cards import Cards
from headwater.events import (
    ApprovalAsked,
    AttemptStarted,
    Entry,
    Notice,
    Outcome,
    ReasoningDelta,
    TextDelta,
    encode_entry,
)

Reasoning = Literal["show", "hide", "only"]


class Actions(Protocol):
    """What a person can do to a run that is followed."""

    def interrupt(self) -> None:
        """Stop it; again: leave at once."""

    def detach(self) -> None: ...

    def approve(self, call_id: str, digest: str, decision: str, remember: bool = False, reason: str = "") -> None: ...


class Showing(Protocol):
    """Somebody who is told all that happens to a run that is followed."""

    def begin(self, actions: Actions) -> None:
        """Before the first event, inside the event loop."""

    def close(self) -> None:
        """After the last word, however it came to that. A second time does nothing."""

    def entry(self, entry: Entry) -> None: ...

    def waits(self, asked: ApprovalAsked) -> None:
        """For an answer, also now: a log that is followed from its beginning tells of what was answered long ago."""

    def lost(self, why: str) -> None:
        """The connection is; another one is about to be tried."""

    def stopping(self) -> None: ...

    def ended(self, outcome: Outcome, text: str) -> None:
        """`text` is all that came of the answer."""

    def remark(self, text: str) -> None: ...


def say(text: str) -> None:
    """To a person, beside what is printed."""
    print(f"headwater: {text}", file=sys.stderr, flush=True)


class Plain:
    def __init__(self, reasoning: Reasoning, run_id: str = "") -> None:
        self._reasoning = reasoning
        self._cards = Cards()
        self._turn = 0
        self._said = ""
        """What was printed last: whether a line is begun."""
        self._thought = ""
        self._run_id = run_id
        self._on_terminal = sys.stdout.isatty()

    def begin(self, actions: Actions) -> None:
        """There are no keys to be read here."""

    def close(self) -> None:
        """Nothing is held."""

    def entry(self, entry: Entry) -> None:
        event = entry.event
        match event:
            case TextDelta(text=text) if self._reasoning != "only":
                self._print(text)
            case ReasoningDelta(text=text):
                self._think(words.safe(text))
            case AttemptStarted():
                self._new_attempt(event)
            case Notice():
                say(words.notice(event))
            case _:
                pass
        for card in self._cards.apply(entry):
            say(card.line())

    def waits(self, asked: ApprovalAsked) -> None:
        called = f"{asked.name}({words.arguments(asked.arguments)})"
        say(f"{called} waits for your answer: headwater attach {self._run_id}")

    def lost(self, why: str) -> None:
        say(f"reconnecting: {why}")

    def stopping(self) -> None:
        say("stopping… (Ctrl-C again leaves at once)")

    def ended(self, outcome: Outcome, text: str) -> None:
        self._finish_line()
        if (said := words.ending(outcome, text)) is not None:
            say(said)

    def remark(self, text: str) -> None:
        say(text)

    def _print(self, text: str) -> None:
        if not text:
            return
        self._finish_thought()
        # A file gets what was said to the letter.
        sys.stdout.write(words.safe(text) if self._on_terminal else text)
        sys.stdout.flush()
        self._said = text

    def _think(self, text: str) -> None:
        if self._reasoning == "only":
            self._print(text)
        elif self._reasoning == "show":
            sys.stderr.write(text)
            sys.stderr.flush()
            self._thought = text

    def _finish_thought(self) -> None:
        if self._thought and not self._thought.endswith("\n"):
            sys.stderr.write("\n")
            sys.stderr.flush()
        self._thought = ""

    def _new_attempt(self, event: AttemptStarted) -> None:
        if (said := words.attempt(event)) is not None:
            say(said)
        if event.turn > self._turn and self._said:
            sys.stdout.write("\n" if self._said.endswith("\n") else "\n\n")
            self._said = "\n"
        self._turn = event.turn

    def _finish_line(self) -> None:
        self._finish_thought()
        if self._said and not self._said.endswith("\n"):
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._said = ""


class JsonLines:
    """Every event as it is in the log, a line each."""

    def begin(self, actions: Actions) -> None:
        """There are no keys to be read here."""

    def close(self) -> None:
        """Nothing is held."""

    def entry(self, entry: Entry) -> None:
        sys.stdout.buffer.write(encode_entry(entry) + b"\n")
        sys.stdout.buffer.flush()

    def waits(self, asked: ApprovalAsked) -> None:
        """It is an event, too."""

    def lost(self, why: str) -> None:
        say(f"reconnecting: {why}")

    def stopping(self) -> None:
        say("stopping…")

    def ended(self, outcome: Outcome, text: str) -> None:
        """It is an event, too."""

    def remark(self, text: str) -> None:
        say(text)
