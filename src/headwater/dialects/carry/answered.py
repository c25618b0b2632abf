"""The features of an answer, and their fate in the dialect of a client."""

from collections.abc import Callable
from typing import Any, Final, get_args

from headwater.conversation import is_remark
from headwater.dialects.base import CONTINUED, STOP
from headwater.dialects.carry.fate import CARRIED, Row, changed, dropped
from headwater.dialects.messages.block import CITATIONS
from headwater.events import (
    DialectName,
    Event,
    Incomplete,
    Notice,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    UsageReported,
)

# Of a detail of the usage: what it is when there is nothing to tell.
_TELLS_NOTHING: Final = (None, 0, "", "standard", "default", "not_available")


class Answered(Row, frozen=True):
    what: str
    found: Callable[[Event, DialectName], str | None]
    """How the event has it, for a client of this dialect; None if it has not."""


def _of(kind: type[Event]) -> Callable[[Event, DialectName], str | None]:
    return lambda event, _: "it" if isinstance(event, kind) else None


def _when(what: str, has: Callable[[Event], bool]) -> Callable[[Event, DialectName], str | None]:
    return lambda event, _: what if has(event) else None


def _state(what: str, has: Callable[[ProviderState], bool]) -> Callable[[Event, DialectName], str | None]:
    """Another dialect's."""

    def found(event: Event, client: DialectName) -> str | None:
        return what if isinstance(event, ProviderState) and event.dialect != client and has(event) else None

    return found


def _is_seam(state: ProviderState) -> bool:
    """It says no more than that something of the same kind comes next."""
    return state.data == {"type": "message"} or (state.of == "reasoning" and not any(state.data.values()))


def _seam(event: Event, client: DialectName) -> str | None:
    """Another dialect's; or where an answer that was cut goes on in a new message."""
    if isinstance(event, Notice):
        begins = event.code == CONTINUED
    else:
        begins = isinstance(event, ProviderState) and event.dialect != client and _is_seam(event)
    return "that a new message, or thought, begins" if begins else None


def _item(event: Event, client: DialectName) -> str | None:
    if (
        not isinstance(event, ProviderState)
        or event.of != "message"
        or event.dialect == client
        or is_remark(event.data)
    ):
        return None
    return f"an item of type '{event.data.get('type')}'"


def _tells(detail: Any) -> bool:
    return any(map(_tells, detail.values())) if isinstance(detail, dict) else detail not in _TELLS_NOTHING


_OWN: Final = dropped("Only a client of the upstream's own dialect can be told.")

ANSWERED: Final[tuple[Answered, ...]] = (
    Answered(what="text, as it comes", found=_of(TextDelta)),
    Answered(
        what="several messages, or thoughts, in one answer",
        found=_seam,
        chat=changed("A blank line stands between them."),
    ),
    Answered(
        what="that a text is a refusal",
        found=_when("that the text is a refusal", lambda event: isinstance(event, TextDelta) and event.refusal),
        messages=changed("Its words come as any others."),
    ),
    Answered(what="reasoning, as it comes", found=_of(ReasoningDelta)),
    Answered(
        what="seals of reasoning, for the next turn",
        found=_state("a seal of the reasoning", lambda state: state.of == "reasoning" and any(state.data.values())),
        chat=_OWN,
        responses=_OWN,
        messages=_OWN,
    ),
    Answered(what="tool calls, parallel ones too", found=_of(ToolCallStarted)),
    Answered(what="a call's arguments, as the model wrote them (none are `{}` for messages)", found=_of(ToolArgsDelta)),
    Answered(
        what="a call's arguments that are no JSON object, in an answer in one piece",
        # Nobody knows before they are whole: the answer itself notes it.
        found=lambda event, dialect: None,
        messages=changed("They stand in an object, as INVALID_JSON."),
    ),
    Answered(
        what="a provider's own fields on a call",
        found=_when("…", lambda event: isinstance(event, ToolCallStarted) and bool(event.extra)),
    ),
    Answered(
        what="a provider's own fields on a call that come after it has begun",
        found=_when(
            "fields that the provider added to a call after it had begun",
            lambda event: isinstance(event, ToolCallEnded) and bool(event.extra),
        ),
        messages=dropped("A call's block can't be added to in a stream; an answer in one piece has them."),
    ),
    Answered(what="stop reasons", found=_of(RunEnded)),
    Answered(
        what="that the turns are used up",
        found=_when(
            "that the turns are used up",
            lambda event: isinstance(event, RunEnded) and event.outcome == Incomplete("turn_limit"),
        ),
        chat=changed("Told as 'length'."),
        messages=changed("Told as 'max_tokens'."),
    ),
    Answered(
        what="which stop sequence it was, and details of the stop",
        found=_state(
            "which stop sequence it was, or a detail of the stop",
            lambda state: (
                state.data.get("type") == STOP
                and bool(state.data.get("stop_sequence") or state.data.get("stop_details"))
            ),
        ),
        chat=_OWN,
        responses=_OWN,
    ),
    Answered(what="tokens: input, output, cached, reasoning", found=_of(UsageReported)),
    Answered(
        what="tokens written to the cache",
        found=_when(
            "tokens written to the cache",
            lambda event: isinstance(event, UsageReported) and bool(event.usage.cache_write_tokens),
        ),
    ),
    Answered(
        what="details of the usage: the tier, the use of hosted tools",
        found=_state(
            "details of the usage",
            lambda state: (
                state.data.get("type") == STOP
                and any(_tells(state.data.get(name)) for name in ("usage", "service_tier"))
            ),
        ),
        chat=_OWN,
        responses=_OWN,
        messages=_OWN,
    ),
    Answered(
        what="what a text cites, and other remarks on it",
        found=_state(
            "a remark on the text, such as what it cites",
            lambda state: (
                state.data.get("type") in ("message", CITATIONS)
                and any(value for name, value in state.data.items() if name != "type")
            ),
        ),
        chat=_OWN,
        responses=_OWN,
        messages=_OWN,
    ),
    Answered(
        what="items of hosted tools, and others that we don't know",
        found=_item,
        chat=_OWN,
        responses=_OWN,
        messages=_OWN,
    ),
)


# Looked up once.
_NOT_CARRIED: Final = {
    dialect: [(row.found, fate) for row in ANSWERED if (fate := row.fate(dialect)) != CARRIED]
    for dialect in get_args(DialectName)
}
MAY_BE_UNSAID: Final = frozenset({TextDelta, ToolCallEnded, ProviderState, Notice, RunEnded})
"""No row that is not carried is about any other event."""


def unsaid(event: Event, dialect: DialectName) -> str | None:
    """What a client of this dialect will not see of an event, or not as it is: for a notice, which goes before it."""
    if type(event) is ProviderState:
        plain = event.dialect == dialect
    elif type(event) is RunEnded:
        plain = type(event.outcome) is not Incomplete
    elif type(event) is TextDelta:
        plain = not event.refusal
    else:
        plain = type(event) is not ToolCallEnded and type(event) is not Notice
    if plain:
        # No row is about these, of which an answer has more.
        return None
    said = [
        f"{'Told otherwise' if fate.kind == 'changed' else 'Not told'}: {what}. {fate.why}"
        for found, fate in _NOT_CARRIED[dialect]
        if (what := found(event, dialect)) is not None
    ]
    return " ".join(said) or None
