"""A run on a terminal: its answer as it comes, reasoning dim, tools as cards, and a footer that says what can be done.

Keys typed meanwhile make a line in the footer: a `/command`, an answer to a question, or the beginning of the next
message. Draws at most so often, however fast the events come.
"""

import asyncio
import signal
import time
from typing import Final

from rich.text import Text

from headwater.cli import words
from headwater.cli.cards import Cards
from headwater.cli.flow import Flow, markdown_flow, reasoning_flow
from headwater.cli.keyboard import Keyboard
from headwater.cli.live import Live
from headwater.cli.showing import Actions, Reasoning
from headwater.cli.table import cut
from headwater.events import (
    ApprovalAsked,
    AttemptStarted,
    Entry,
    Notice,
    Outcome,
    ReasoningDelta,
    RunStarted,
    TextDelta,
    ToolCallStarted,
)

_FRAME_S: Final = 0.04
_TICK_S: Final = 0.5
_STILL_S: Final = 0.3
"""After a resize nothing is drawn for so long: an edge that is dragged brings many, and some are told of late."""
_SPINNER: Final = "⠋⠙⠸⠴⠦⠇"
_HINT: Final = "Ctrl-C stops · /detach leaves it going"


class Screen:
    def __init__(self, reasoning: Reasoning) -> None:
        self.reasoning: Reasoning = reasoning
        self._live = Live()
        self._cards = Cards()
        self._flow: Flow | None = None
        self._flow_kind: type[TextDelta] | type[ReasoningDelta] | None = None
        self._tail: list[Text] = []
        self._final: list[Text] = []
        """Not yet printed."""
        self._said = False
        """Something was printed: a new block has a blank line before it."""
        self._actions: Actions | None = None
        self._remarks: list[str] = []
        """Not yet printed."""
        self._keyboard = Keyboard(self._on_key)
        self.typed = ""
        """What was typed and is no command: the next message's beginning."""
        self._reason_for: str | None = None
        """The call that was refused, while a reason is typed."""
        self._model = ""
        self._state = ""
        self._stopping = False
        self._began_s = time.monotonic()
        self._run_began_s = self._began_s
        self._frame: asyncio.TimerHandle | None = None
        self._cost_s = 0.0
        self._still_until_s = 0.0

    def begin(self, actions: Actions) -> None:
        """Inside the event loop."""
        self._actions = actions
        self._live.open()
        self._keyboard.open()
        asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, self._on_resize)
        self._schedule(0.0)

    def close(self) -> None:
        """The terminal is as it was; all that came is printed."""
        if self._actions is None:
            return
        self._actions = None
        if self._frame is not None:
            self._frame.cancel()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGWINCH)
        self._finish_flow()
        self._live.draw(self._take_final(), [], [])
        self._keyboard.close()
        self._live.close()

    # -------------------------------------------------------------- as `Showing`

    def entry(self, entry: Entry) -> None:
        event = entry.event
        if not (self._remarks or self._stopping):
            self._state = ""
        match event:
            case RunStarted(model=model):
                self._model = model
                self._run_began_s = time.monotonic() - entry.t / 1000
            case TextDelta(text=text) if self.reasoning != "only":
                self._feed(TextDelta, text)
            case ReasoningDelta(text=text) if self.reasoning != "hide":
                self._feed(ReasoningDelta, text)
            case AttemptStarted():
                self._finish_flow()
                self._meta(words.attempt(event))
            case ToolCallStarted():
                self._finish_flow()
            case Notice():
                self._finish_flow()
                self._meta(words.notice(event))
            case _:
                pass
        for card in self._cards.apply(entry):
            # One line each: all of it is in the log.
            self._meta(cut(card.line(), self._live.painter.width), gap=False)
        self._schedule()

    def waits(self, asked: ApprovalAsked) -> None:
        """It is asked in place, until the log tells of an answer."""

    def lost(self, why: str) -> None:
        self._state = f"reconnecting: {why}"
        self._schedule()

    def stopping(self) -> None:
        self._stopping = True
        self._state = "stopping…  Ctrl-C again leaves at once"
        self._schedule()

    def ended(self, outcome: Outcome, text: str) -> None:
        self._finish_flow()
        self._meta(words.ending(outcome, text), style="yellow" if outcome.__struct_config__.tag == "stopped" else "red")

    def remark(self, text: str) -> None:
        # Below what is just being said, not in its midst.
        self._state = text
        self._remarks.append(text)
        if self._flow is None:
            self._finish_flow()
        self._schedule()

    # ------------------------------------------------------------------ contents

    def _feed(self, kind: type[TextDelta] | type[ReasoningDelta], text: str) -> None:
        if self._flow_kind is not kind:
            self._finish_flow()
            self._flow = markdown_flow() if kind is TextDelta else reasoning_flow()
            self._flow_kind = kind
            self._gap()
        assert self._flow is not None
        self._flow.feed(words.safe(text))

    def _finish_flow(self) -> None:
        if self._flow is not None:
            self._stand_if_resized()
            self._final += self._flow.finish(self._live.painter)
            # At once: what is to be printed takes the place of the tail, and that may stand by the next frame.
            self._live.draw(self._take_final(), [], self._foot())
        self._flow = self._flow_kind = None
        self._tail = []
        for remark in self._remarks:
            self._meta(remark)
        self._remarks.clear()

    def _gap(self) -> None:
        if self._said:
            self._final.append(Text())
        self._said = True

    def _meta(self, text: str | None, style: str = "dim", *, gap: bool = True) -> None:
        """Beside the answer; wrapped, so that nothing of it is lost."""
        if text is None:
            return
        if gap:
            self._gap()
        self._said = True
        self._final += self._live.painter.prose(text, style)

    def _take_final(self) -> list[Text]:
        final, self._final = self._final, []
        return final

    # ------------------------------------------------------------------- drawing

    def _schedule(self, delay_s: float = _FRAME_S) -> None:
        if self._frame is not None and self._frame.when() <= asyncio.get_running_loop().time() + delay_s:
            return
        if self._frame is not None:
            self._frame.cancel()
        # A frame may take its time, but not all of it.
        self._frame = asyncio.get_running_loop().call_later(max(delay_s, 3 * self._cost_s), self._draw)

    def _draw(self) -> None:
        self._frame = None
        began_s = time.monotonic()
        # The signal may be on its way, and the lines may have moved already.
        self._stand_if_resized()
        if began_s < self._still_until_s:
            self._schedule(_STILL_S)
            return
        foot = self._foot()
        if self._flow is not None:
            final, self._tail = self._flow.frame(self._live.painter, lambda lines: self._live.fits(lines, len(foot)))
            self._final += final
        self._live.draw(self._take_final(), self._tail, foot)
        self._cost_s = time.monotonic() - began_s
        self._schedule(_TICK_S)

    def _on_resize(self) -> None:
        self._stand_if_resized()
        self._schedule()

    def _stand_if_resized(self) -> None:
        if self._live.resized() and self._flow is not None:
            self._flow.stand(self._tail)
            self._tail = []
            self._still_until_s = time.monotonic() + _STILL_S

    def _foot(self) -> list[str]:
        now_s = time.monotonic()
        lines = self._cards.open_lines((now_s - self._run_began_s) * 1000)
        if (asked := self._cards.asked) is not None:
            if self._reason_for == asked.call_id:
                return [*lines, f"Why not? (Enter: no reason)  › {self.typed}"]
            return [*lines, "Run it?  [y]es  [n]o  [a]lways here"]
        if self.typed:
            return [*lines, f"› {self.typed}"]
        elapsed_s = now_s - self._began_s
        turn = _SPINNER[int(elapsed_s / _TICK_S) % len(_SPINNER)]
        said = self._state or f"{self._model} · {elapsed_s:.0f} s · {_HINT}"
        return [*lines, f"{turn} {said}"]

    # ---------------------------------------------------------------------- keys

    def _on_key(self, char: str) -> None:
        asked = self._cards.asked
        if asked is not None and self._reason_for != asked.call_id and self._answer(char.lower()):
            pass
        elif char in "\r\n":
            self._on_line()
        elif char in "\x7f\b":
            self.typed = self.typed[:-1]
        elif char == "\x15":
            self.typed = ""
        elif char.isprintable():
            self.typed += char
        self._schedule(0.0)

    def _answer(self, char: str) -> bool:
        """Whether the key was one to a question."""
        asked, actions = self._cards.asked, self._actions
        assert asked is not None
        assert actions is not None
        if char in ("y", "a"):
            actions.approve(asked.call_id, asked.arguments_digest, "yes", remember=char == "a")
        elif char == "n":
            self._reason_for, self.typed = asked.call_id, ""
        else:
            return False
        return True

    def _on_line(self) -> None:
        asked, actions, line = self._cards.asked, self._actions, self.typed.strip()
        assert actions is not None
        if asked is not None and self._reason_for == asked.call_id:
            self._reason_for, self.typed = None, ""
            actions.approve(asked.call_id, asked.arguments_digest, "no", reason=line)
            return
        match line:
            case "/detach":
                self.typed = ""
                actions.detach()
            case "/stop":
                self.typed = ""
                actions.interrupt()
            case _ if line.startswith("/"):
                self.typed = ""
                self.remark(f"{line} has to wait: now there are /stop and /detach.")
            case _:
                # It is kept for the prompt that comes next.
                self.typed += " " if self.typed and not self.typed.endswith(" ") else ""
