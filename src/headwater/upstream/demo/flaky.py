"""`demo/flaky`: fails in the way that the prompt asks for, so that everything that follows a failure can be tried."""

import re
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from headwater.upstream.demo.asked import Asked
from headwater.upstream.demo.script import (
    HUMAN_PACE,
    Babble,
    Beat,
    Call,
    Done,
    Ending,
    Finish,
    Leave,
    Report,
    Say,
    Script,
    count_tokens,
)
from headwater.upstream.demo.steps import Cut, End, Hang


class Fault(Struct, frozen=True, kw_only=True):
    """A way to fail, by the words that ask for it."""

    words: str
    what: str
    ending: Ending
    after: int | None = None
    """Tokens; a number in the prompt, as in "cut after 7", goes before it. None is after all of them."""
    says: Literal["much", "little", "nothing", "torn call"] = "much"
    first_s: float = 0.4
    tokens_per_s: float = HUMAN_PACE

    def asked_in(self, prompt: str) -> re.Match[str] | None:
        return re.search(rf"\b{self.words}\b(?:\s+after\s+(\d{{1,4}}))?", prompt, re.IGNORECASE)


# Those of several words first: "torn tool call" is not about a tool that was cut.
FAULTS: Final = (
    Fault(
        words="torn tool call",
        what="the connection breaks inside a tool call's arguments",
        ending=Leave(Cut()),
        says="torn call",
    ),
    Fault(
        words="unknown finish",
        what="I end with a finish reason that means nothing",
        ending=Finish("network_error"),
    ),
    Fault(words="no finish", what="I end with `[DONE]`, and no finish reason", ending=Finish(None)),
    Fault(words="cut", what="the connection breaks", ending=Leave(Cut()), after=20),
    Fault(
        words="close",
        what="the connection is closed in good order, in the middle of the answer",
        ending=Leave(End()),
        after=20,
    ),
    Fault(words="stall", what="I fall silent, and the connection stays open", ending=Leave(Hang()), after=20),
    Fault(
        words="error",
        what="I report that I am overloaded; before the first token, that is tried again",
        ending=Report("The demo model is overloaded, as it was told to be.", "server_error", "overloaded"),
        after=0,
    ),
    Fault(
        words="refuse",
        what="I report an error that trying again can't mend",
        ending=Report("The demo model was told to refuse this.", "invalid_request_error", "invalid_value"),
        after=0,
    ),
    Fault(words="garbage", what="I send something that is no JSON", ending=Babble(), after=20),
    Fault(
        words="length",
        what="I stop as if my limit of tokens were used up",
        ending=Finish("length"),
        after=40,
    ),
    Fault(
        words="filter",
        what="I stop as if a content filter had stepped in",
        ending=Finish("content_filter"),
        after=20,
    ),
    Fault(words="empty", what="I finish without having said anything", ending=Finish("stop"), says="nothing"),
    Fault(
        words="slow",
        what="I take my time: five seconds to the first word, then two words a second",
        ending=Done(),
        says="little",
        first_s=5.0,
        tokens_per_s=2.0,
    ),
)

_FILLER: Final = (
    "Until then I keep talking, so that there is something to lose: the river goes round the hill, under the bridge "
    "and past the mill; it carries leaves, and ducks, and one paper boat; it has been going like this since before "
    "there was anyone to watch, and it will be going like this when you have closed this page. What you have read so "
    "far is kept, whatever happens next. You can ask for the rest, and it will go on from the very word where it broke "
    "off."
)


def script(asked: Asked) -> Script:
    for fault in FAULTS:
        if found := fault.asked_in(asked.prompt):
            failing = _failing(fault, int(found[1]) if found[1] else fault.after, asked)
            break
    else:
        said = Say(_EXPLAINED + _REST)
        failing = Script(beats=(said,), ending=Leave(Cut()), ends_after=count_tokens(_EXPLAINED))
    # It breaks once: an answer that is gone on with comes to its end.
    return replace(failing, ending=Done(), ends_after=None) if asked.begun else failing


def _failing(fault: Fault, after: int | None, asked: Asked) -> Script:
    when = "at the end" if after is None else "at once" if after == 0 else f"after {after} tokens"
    announced = f"You asked for it: {when}, {fault.what}."
    beats: dict[str, tuple[Beat, ...]] = {
        "much": (Say(f"{announced} {_FILLER}"),),
        "little": (Say(f"You asked for it: {fault.what}. Here I am."),),
        "nothing": (),
        "torn call": _torn(asked),
    }
    return Script(
        beats=beats[fault.says],
        first_s=fault.first_s,
        tokens_per_s=fault.tokens_per_s,
        ending=fault.ending,
        ends_after=after,
    )


def _torn(asked: Asked) -> tuple[Beat, ...]:
    name = asked.tools[0].name if asked.tools else "look_up"
    call = Call(f"call_{asked.seed[:24]}", name, '{"place": "the source of the ri')
    return (Say(f"I am about to call `{name}`, and won't get to the end of it."), call)


def _listed(fault: Fault) -> str:
    number = "" if fault.after is None else " after 20"
    return f"- **{fault.words}{number}**: {fault.what}"


_EXPLAINED: Final = "\n\n".join(
    [
        "I fail on purpose, so that you can see what happens then. Say one of these, and it will:",
        "\n".join(map(_listed, FAULTS)),
        "The number is a count of tokens, and yours to choose. You did not ask for any of it, so you get the plainest "
        "one: this answer breaks off in the middle of a",
    ]
)
_REST: Final = " sentence. Here is the rest of it, from the very word where it broke off."
