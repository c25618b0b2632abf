"""What is said about a run, in one line each: its tools, its troubles, its ending. Pure: no colours, no widths."""

import json
import shlex
from typing import Any, Final, assert_never
from unicodedata import category

from headwater.events import (
    AttemptStarted,
    Completed,
    Failed,
    Incomplete,
    Interrupted,
    Notice,
    Outcome,
    Stopped,
)

_SHOWN_CHARS: Final = 400
_HARMLESS: Final = "\n\t\u200c\u200d"


def one_line(text: str, limit: int = _SHOWN_CHARS) -> str:
    """Without line breaks, and without what a terminal would take for orders."""
    plain = "".join(char if char.isprintable() else " " for char in text[: limit * 2])
    words = " ".join(plain.split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


def safe(text: str) -> str:
    """A model's words may not steer the terminal. Line breaks, tabs, blanks of all kinds and joiners are left."""
    if text.isprintable():
        return text
    return "".join(char for char in text if char.isprintable() or char in _HARMLESS or category(char) == "Zs")


def arguments(text: str) -> str:
    """A call's arguments, as one would write them in a program."""
    try:
        given = json.loads(text or "{}")
    except ValueError:
        return one_line(text)
    if not isinstance(given, dict):
        return one_line(text)
    return one_line(", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in given.items()))


def seconds(s: float) -> str:
    if s < 100:
        return f"{s:.1f} s"
    minutes, rest = divmod(int(s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def attempt(event: AttemptStarted) -> str | None:
    """None: there is nothing to tell of a first one."""
    why = f": {one_line(event.because)}" if event.because else ""
    match event.reason:
        case "first":
            return None
        case "retry":
            return f"Asking {event.upstream} again{why}"
        case "fallback":
            return f"Now asking {event.upstream}/{event.model}{why}"
        case "continue":
            return f"Going on with the answer{why}"
        case "not_streaming":
            return f"Asking {event.upstream} without a stream{why}"
        case unreachable:
            assert_never(unreachable)


def notice(event: Notice) -> str:
    return one_line(event.text)


def ending(outcome: Outcome, text: str) -> str | None:
    """What became of the run, and what of it was kept. None: it was completed, and there is nothing to add."""
    match outcome:
        case Completed():
            return None
        case Incomplete(reason="length"):
            return f"The answer was cut by its token limit. {_kept(text)}"
        case Incomplete(reason="content_filter"):
            return f"The answer was cut by a content filter. {_kept(text)}"
        case Incomplete():
            return f"The limit of turns was reached. {_kept(text)}"
        case Stopped(reason="disconnect"):
            return f"Stopped: nobody was following. {_kept(text)}"
        case Stopped(reason="replaced"):
            return f"Stopped by a newer message. {_kept(text)}"
        case Stopped():
            return f"Stopped. {_kept(text)}"
        case Failed(reason=reason, message=message):
            return f"Failed ({reason.replace('_', ' ')}): {one_line(message)} {_kept(text)}"
        case Interrupted(reason="shutdown"):
            return f"Interrupted: the server was shut down. {_kept(text)}"
        case Interrupted():
            return f"Interrupted: the server went away. {_kept(text)}"
        case unreachable:
            assert_never(unreachable)


def _kept(text: str) -> str:
    count = len(text.split())
    if not count:
        return "Nothing of an answer had come; your message is kept."
    return "The one word that had come is kept." if count == 1 else f"The {count} words that had come are kept."


def queue_waits(count: int, paused: bool, session_id: str) -> str:
    waits = "1 message waits" if count == 1 else f"{count} messages wait"
    if not paused:
        return f"{waits} for {'its' if count == 1 else 'their'} turn."
    return f"{waits}: the queue is paused. To let it go on: headwater sessions resume {shlex.quote(session_id)}"


def outcome_word(run: dict[str, Any]) -> str:
    """The status of a run that the API has told of, with its reason."""
    outcome = run.get("outcome") or {}
    reason = outcome.get("reason")
    status = str(run["status"])
    return status if status == "completed" or not reason else f"{status}: {str(reason).replace('_', ' ')}"
