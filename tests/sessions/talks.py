"""Sessions for tests: logs as real turns make them, cut anywhere, and transcripts as the store keeps them."""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Message, Text, User
from headwater.events import (
    AttemptStarted,
    Completed,
    DialectName,
    Event,
    Failed,
    Incomplete,
    Interrupted,
    Outcome,
    ProviderState,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    ToolResult,
    ToolRunStarted,
    Usage,
    UsageReported,
)
from headwater.records import Run, Session, SessionMessage, SessionNotice, Transcript
from headwater.sessions.leavings import Left, left
from headwater.store.rules.runs import chain
from headwater.turn import dropped_calls

CUT: list[Outcome] = [
    Stopped("user"),
    Stopped("disconnect"),
    Stopped("replaced"),
    Failed("upstream_truncated", "The connection broke."),
    Interrupted("crash"),
    Interrupted("shutdown"),
    Interrupted("store"),
]
ORDERLY: list[Outcome] = [Incomplete("length"), Incomplete("content_filter"), Incomplete("turn_limit")]


def ids() -> Callable[[str], str]:
    numbers = count(1)
    return lambda prefix: f"{prefix}_{next(numbers):04d}"


def folded(events: Iterable[Event]) -> Accumulator:
    fold = Accumulator()
    for event in events:
        fold.apply(event)
    return fold


def call(index: int, id: str, name: str = "look", arguments: str = '{"at":1}') -> list[Event]:
    return [
        ToolCallStarted(index, id, name),
        ToolArgsDelta(index, arguments[:4]),
        ToolArgsDelta(index, arguments[4:]),
        ToolCallEnded(index),
    ]


def ran(id: str, text: str = "found") -> list[Event]:
    return [ToolRunStarted(id), ToolResult(id, text)]


class Talk:
    """A session that grows as the store would let it: what was said, then what a run leaves."""

    def __init__(self) -> None:
        self.make_id = ids()
        self.session = Session(id="ses_1", owner="ann", created_at=0.0, updated_at=0.0)
        self.messages: list[SessionMessage] = []
        self.notices: list[SessionNotice] = []

    def say(self, *said: str | Message, under: str | None = "head", **fields: Any) -> Run:
        """A run that is to answer it."""
        parent_id = self.session.head_id if under == "head" else under
        run = Run(id=self.make_id("run"), owner="ann", **{"model": "fast", "created_at": 0.0, **fields})
        messages = tuple(
            SessionMessage(
                id=self.make_id("msg"), message=User((Text(m),)) if isinstance(m, str) else m, created_at=0.0
            )
            for m in said
        )
        return replace(run, parent_id=self._add(messages, parent_id, run))

    def answer(self, run: Run, events: Iterable[Event], outcome: Outcome = Completed()) -> Left:
        return self.leave(run, left(run, folded(events), outcome, now=1.0, make_id=self.make_id))

    def leave(self, run: Run, leavings: Left) -> Left:
        tip = self._add(leavings.messages, run.parent_id, run)
        self.notices += [replace(notice, after_id=tip) for notice in leavings.notices]
        return leavings

    def _add(self, messages: tuple[SessionMessage, ...], parent_id: str | None, run: Run) -> str | None:
        placed = chain(messages, parent_id, run.id)
        self.messages += placed
        tip = placed[-1].id if placed else parent_id
        self.session = replace(self.session, head_id=tip)
        return tip

    def transcript(self, **session: Any) -> Transcript:
        return Transcript(replace(self.session, **session), tuple(self.messages), tuple(self.notices), (), None)


# ---------------------------------------------------------------- any log

UPSTREAMS: dict[str, DialectName] = {"c": "chat", "r": "responses", "m": "messages"}
_STATES: dict[DialectName, dict[str, Any]] = {
    "chat": {"reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "index": 0}]},
    "responses": {"type": "reasoning", "id": "rs_1", "encrypted_content": "ZW5j", "summary": []},
    "messages": {"signature": "c2ln"},
}
_words = st.sampled_from(["a", "Hi ", " ", "\n", "Grüße 🌍", "t0 t1 ", "```"])
_IDS = ["call_a", "call_b", "toolu_01"]
# Such as only their own provider takes back.
_ODD_IDS: dict[DialectName, list[str]] = {"chat": [], "responses": ["call_" + "x" * 50], "messages": ["fc:1|rs/2"]}
_names = st.sampled_from(["look", "files.read", "write-2"])
_arguments = st.sampled_from(["{}", '{"x":1}', '{"path": "a b", "n": [1, {"y": null}]}', "", "not json"])


class Log(Struct, frozen=True):
    events: list[Event]
    whole: bool
    ends_with_calls: bool

    @property
    def text(self) -> str:
        """What was said, by the log alone: what an attempt takes back was not."""
        turns, turn = [""], 0
        for event in self.events:
            if isinstance(event, AttemptStarted) and event.turn > turn:
                turns.append("")
                turn = event.turn
            elif isinstance(event, AttemptStarted) and event.stands == "nothing":
                turns[-1] = ""
            elif isinstance(event, TextDelta):
                turns[-1] += event.text
        return "".join(turns)


@st.composite
def _said(draw: st.DrawFn, dialect: DialectName) -> list[Event]:
    match draw(st.sampled_from(["text", "text", "reasoning", "refusal", "state", "usage"])):
        case "text":
            return [TextDelta(word) for word in draw(st.lists(_words, min_size=1, max_size=4))]
        case "reasoning":
            thoughts: list[Event] = [ReasoningDelta(word) for word in draw(st.lists(_words, max_size=2))]
            sealed = draw(st.booleans())
            return [*thoughts, ProviderState(dialect, _STATES[dialect], "reasoning")] if sealed else thoughts
        case "refusal":
            return [TextDelta("No.", refusal=True)]
        case "usage":
            return [UsageReported(Usage(7, 2, source="provider"))]
        case _:
            items: dict[DialectName, dict[str, Any]] = {
                "chat": {"type": "headwater.x"},
                "responses": {"type": "web_search_call", "id": "ws_1", "status": "completed"},
                "messages": {"type": "headwater.citations", "citations": [{"type": "char_location"}]},
            }
            return [ProviderState(dialect, items[dialect])]


@st.composite
def _calls(draw: st.DrawFn, dialect: DialectName, min_size: int) -> list[list[Event]]:
    ids = st.sampled_from([*_IDS, *_ODD_IDS[dialect]])
    used = draw(st.lists(ids, min_size=min_size, max_size=3, unique=True))
    return [call(n, id, draw(_names), draw(_arguments)) for n, id in enumerate(used)]


@st.composite
def _turn(draw: st.DrawFn, number: int, last: bool) -> tuple[list[Event], list[Event]]:
    """A model's message, and the tools that are run for it."""
    upstream = draw(st.sampled_from(sorted(UPSTREAMS)))
    dialect = UPSTREAMS[upstream]
    events: list[Event] = []
    if draw(st.integers(0, 4)) == 0:
        # Given up: nothing of it stands.
        events += [AttemptStarted("r", "m", number), *draw(_said("responses"))]
    events.append(AttemptStarted(upstream, "m", number, "retry" if events else "first"))
    for piece in draw(st.lists(_said(dialect), max_size=3)):
        events += piece
    if draw(st.integers(0, 4)) == 0:
        events += [AttemptStarted(upstream, "m", number, "continue", stands="everything"), TextDelta("on. ")]
    calls = draw(_calls(dialect, 0 if last else 1))
    for one in calls:
        events += one
    tools: list[Event] = []
    if calls and not last:
        started = draw(st.permutations([one[0].id for one in calls if isinstance(one[0], ToolCallStarted)]))
        tools += [ToolRunStarted(id) for id in started]
        results = [ToolResult(id, draw(_words), state=draw(st.sampled_from(["done", "failed"]))) for id in started]
        tools += draw(st.permutations(results))
    return events, tools


@st.composite
def logs(draw: st.DrawFn) -> Log:
    turns = draw(st.integers(1, 3))
    events: list[Event] = []
    for number in range(turns):
        said, tools = draw(_turn(number, number == turns - 1))
        events += [*said, *tools]
    cut = draw(st.integers(0, len(events)) | st.just(len(events)))
    fold = folded(events[:cut])
    return Log(events[:cut], cut == len(events), bool(fold.turn_calls))


@st.composite
def endings(draw: st.DrawFn, log: Log) -> tuple[Accumulator, Outcome]:
    """How it might have ended, whether there was time to tell of the calls or not."""
    outcomes = [
        *CUT,
        *ORDERLY,
        *([Completed("tool_calls" if log.ends_with_calls else "stop")] * 8 if log.whole else []),
    ]
    outcome = draw(st.sampled_from(outcomes))
    fold = folded(log.events)
    if draw(st.booleans()):
        for notice in dropped_calls(outcome, fold):
            fold.apply(notice)
    return fold, outcome


def texts(messages: Sequence[Message]) -> str:
    return "".join(message.text for message in messages if isinstance(message, Assistant))
