"""What is answered, over nine pairings: the table says what is lost, and nothing else is."""

import itertools
import json
from collections.abc import Callable, Iterator

import pytest
from msgspec import Struct

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Opaque, Reasoning, Text
from headwater.dialects import DIALECTS, carry
from headwater.dialects.base import NOT_CARRIED, Head
from headwater.dialects.carry import ANSWERED, CARRIED, Answered
from headwater.events import (
    Completed,
    DialectName,
    Event,
    Incomplete,
    Notice,
    Outcome,
    ProviderState,
    ReasoningDelta,
    RunEnded,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from headwater.turn import TurnReader
from tests.fixtures import FIXTURES, Fixture

NAMES: list[DialectName] = ["chat", "responses", "messages"]
# What the responses dialect says when there is nothing to say.
NO_TIER = {"type": "headwater.stop", "service_tier": "default"}
HEAD = Head("run_1", 1760000000, "m")
each_dialect = pytest.mark.parametrize("dialect", NAMES)


class Answer(Struct):
    """What a client has read."""

    folded: Accumulator
    outcome: Outcome
    notes: list[str]

    @property
    def message(self) -> Assistant:
        return self.folded.message()


def fold(events: list[Event]) -> Accumulator:
    accumulator = Accumulator()
    for event in events:
        accumulator.apply(event)
    return accumulator


def read(body: bytes, client: DialectName) -> Answer:
    again = Accumulator()
    reader = TurnReader(DIALECTS[client].decoder("call_x"), again, think_tags=False)
    reader.feed(body)
    start = body.find(b'"headwater":')
    ours = json.JSONDecoder().raw_decode(body[start + 12 :].decode())[0] if start >= 0 else {}
    return Answer(again, reader.end("clean").outcome, ours.get("notes", []))


def streamed(events: list[Event], client: DialectName) -> Answer:
    """As the server does it: what can't be said is noted before it."""
    encoder = DIALECTS[client].encoder(HEAD, include_usage=True, style="error")
    data = b""
    for event in events:
        if why := carry.unsaid(event, client):
            data += encoder.encode(Notice(NOT_CARRIED, why))
        data += encoder.encode(event)
    return read(data, client)


def whole(events: list[Event], client: DialectName) -> Answer:
    folded = fold(events)
    assert folded.outcome is not None
    notes = [why for event in events if (why := carry.unsaid(event, client))]
    return read(
        DIALECTS[client].whole(HEAD, folded.message(), folded.usage, folded.outcome, notes).body,
        client,
    )


# ------------------------------------------------------------------ the table


class Example(Struct):
    """An answer that has the feature, and how to tell that what was read still has it."""

    events: Callable[[DialectName], list[Event]]
    kept: Callable[[Answer], bool]
    outcome: Outcome = Completed()


def other(dialect: DialectName) -> DialectName:
    return NAMES[NAMES.index(dialect) - 1]


def call(
    *, arguments: str = "{}", extra: dict[str, int] | None = None, late: dict[str, int] | None = None
) -> list[Event]:
    return [ToolCallStarted(0, "call_a", "a", extra), ToolArgsDelta(0, arguments), ToolCallEnded(0, late)]


def interleaved() -> list[Event]:
    return [
        ToolCallStarted(0, "call_a", "a"),
        ToolCallStarted(1, "call_b", "b"),
        ToolArgsDelta(0, '{"x":'),
        ToolArgsDelta(1, '{"y":'),
        ToolArgsDelta(0, "1}"),
        ToolArgsDelta(1, "2}"),
        ToolCallEnded(0),
        ToolCallEnded(1),
    ]


def said(answer: Answer) -> list[str]:
    return [part.text for part in answer.message.parts if isinstance(part, Text)]


def remarks(answer: Answer) -> list[object]:
    """What of other dialects, or on the end, was read."""
    return [part.data for part in answer.message.parts if isinstance(part, Opaque) and part.data != NO_TIER]


def stop(**told: object) -> list[Event]:
    return [TextDelta("Hi"), ProviderState("messages", {"type": "headwater.stop", **told})]


WRITTEN = '{"x":  1.50, "x":2}'
USAGE = Usage(9, 4, 2, 1, "provider", 0)
TIER: dict[DialectName, dict[str, object]] = {
    "chat": {"type": "headwater.stop", "service_tier": "flex", "usage": {"cost": 0.5}},
    "responses": {"type": "headwater.stop", "service_tier": "flex"},
    "messages": {"type": "headwater.stop", "usage": {"service_tier": "priority"}},
}
TWO: list[Event] = [TextDelta("A"), ProviderState("responses", {"type": "message"}), TextDelta("B")]

EXAMPLES: dict[str, Example] = {
    "text, as it comes": Example(lambda _: [TextDelta("H"), TextDelta("i")], lambda got: said(got) == ["Hi"]),
    "several messages, or thoughts, in one answer": Example(lambda _: TWO, lambda got: said(got) == ["A", "B"]),
    "that a text is a refusal": Example(
        lambda _: [TextDelta("No.", refusal=True)],
        lambda got: [part.refusal for part in got.message.parts if isinstance(part, Text)] == [True],
    ),
    "reasoning, as it comes": Example(
        lambda _: [ReasoningDelta("H"), ReasoningDelta("m"), TextDelta("Hi")],
        lambda got: got.folded.reasoning() == "Hm",
    ),
    "seals of reasoning, for the next turn": Example(
        lambda client: [
            ReasoningDelta("Hm"),
            ProviderState(other(client), {"signature": "s", "encrypted_content": "s"}, of="reasoning"),
            TextDelta("Hi"),
        ],
        lambda got: any(part.state for part in got.message.parts if isinstance(part, Reasoning)),
    ),
    "tool calls, parallel ones too": Example(
        lambda _: interleaved(),
        lambda got: (
            [(made.id, made.name, json.loads(made.arguments)) for made in got.folded.calls]
            == [("call_a", "a", {"x": 1}), ("call_b", "b", {"y": 2})]
        ),
        Completed("tool_calls"),
    ),
    "a call's arguments, as the model wrote them (none are `{}` for messages)": Example(
        lambda _: call(arguments=WRITTEN),
        lambda got: json.loads(got.folded.calls[0].arguments) == json.loads(WRITTEN),
        Completed("tool_calls"),
    ),
    "a call's arguments that are no JSON object, in an answer in one piece": Example(
        lambda _: call(arguments="[1]"),
        lambda got: got.folded.calls[0].arguments == "[1]",
        Completed("tool_calls"),
    ),
    "a provider's own fields on a call": Example(
        lambda _: call(extra={"x": 1}), lambda got: got.folded.calls[0].extra == {"x": 1}, Completed("tool_calls")
    ),
    "a provider's own fields on a call that come after it has begun": Example(
        lambda _: call(late={"x": 1}), lambda got: got.folded.calls[0].extra == {"x": 1}, Completed("tool_calls")
    ),
    "stop reasons": Example(
        lambda _: [TextDelta("Hi")], lambda got: got.outcome == Incomplete("length"), Incomplete("length")
    ),
    "that the turns are used up": Example(
        lambda _: [TextDelta("Hi")], lambda got: got.outcome == Incomplete("turn_limit"), Incomplete("turn_limit")
    ),
    "which stop sequence it was, and details of the stop": Example(
        lambda _: stop(stop_sequence="X"), lambda got: {"type": "headwater.stop", "stop_sequence": "X"} in remarks(got)
    ),
    "tokens: input, output, cached, reasoning": Example(
        lambda _: [TextDelta("Hi"), UsageReported(USAGE)], lambda got: got.folded.usage == USAGE
    ),
    "tokens written to the cache": Example(
        lambda _: [TextDelta("Hi"), UsageReported(Usage(9, 4, 2, 1, "provider", 3))],
        lambda got: got.folded.usage.cache_write_tokens == 3,
    ),
    "details of the usage: the tier, the use of hosted tools": Example(
        lambda client: [TextDelta("Hi"), ProviderState(other(client), TIER[other(client)])],
        lambda got: bool(remarks(got)),
    ),
    "what a text cites, and other remarks on it": Example(
        lambda client: [TextDelta("Hi"), ProviderState(other(client), {"type": "message", "annotations": [{"a": 1}]})],
        lambda got: bool(remarks(got)),
    ),
    "items of hosted tools, and others that we don't know": Example(
        lambda client: [TextDelta("Hi"), ProviderState(other(client), {"type": "web_search_call", "id": "ws_1"})],
        lambda got: bool(remarks(got)),
    ),
}


def test_every_row_has_an_example() -> None:
    assert set(EXAMPLES) == {row.what for row in ANSWERED}


@each_dialect
@pytest.mark.parametrize("row", ANSWERED, ids=lambda row: row.what)
def test_what_the_table_says_of_an_answer_is_what_happens(row: Answered, dialect: DialectName) -> None:
    example = EXAMPLES[row.what]
    events = [*example.events(dialect), RunEnded(example.outcome)]
    fate = row.fate(dialect)
    for way in (streamed, whole):
        answer = way(events, dialect)
        noted = [note for note in answer.notes if note.endswith(fate.why)]
        if fate == CARRIED:
            assert example.kept(answer)
            assert answer.notes == []
        elif "in one piece" in row.what:
            # Of a stream it is not true.
            assert example.kept(answer) == (way is streamed)
            assert any("INVALID_JSON" in note for note in answer.notes) == (way is whole)
        else:
            assert len(noted) == 1
            # A block that is not streamed can have them.
            assert not example.kept(answer) or ("after it has begun" in row.what and way is whole)


@each_dialect
def test_what_an_upstream_of_the_same_dialect_says_is_told_and_not_noted(dialect: DialectName) -> None:
    seal: dict[DialectName, dict[str, object]] = {
        "chat": {"reasoning_details": [{"type": "reasoning.text", "text": "Hm", "signature": "s"}]},
        "responses": {"encrypted_content": "s"},
        "messages": {"signature": "s"},
    }
    remark: dict[DialectName, dict[str, object]] = {
        "chat": {"type": "message", "annotations": [{"type": "url_citation"}]},
        "responses": {"type": "message", "phase": "final_answer", "annotations": [{"type": "url_citation"}]},
        "messages": {"type": "headwater.citations", "citations": [{"type": "char_location"}]},
    }
    item: dict[DialectName, dict[str, object]] = {
        "chat": {"type": "images", "images": [{"type": "image_url"}]},
        "responses": {"type": "web_search_call", "id": "ws_1"},
        "messages": {"type": "web_search_tool_result", "tool_use_id": "srv_1"},
    }
    events: list[Event] = [
        ReasoningDelta("Hm"),
        ProviderState(dialect, seal[dialect], of="reasoning"),
        TextDelta("Hi"),
        ProviderState(dialect, remark[dialect]),
        ProviderState(dialect, item[dialect]),
        ProviderState(dialect, TIER[dialect]),
        UsageReported(USAGE),
        RunEnded(Completed()),
    ]
    for way in (streamed, whole):
        answer = way(events, dialect)
        assert answer.notes == []
        assert remarks(answer) == [remark[dialect], item[dialect], TIER[dialect]]
        (thought,) = [part for part in answer.message.parts if isinstance(part, Reasoning)]
        assert thought.dialect == dialect
        assert (thought.state or {}).items() >= seal[dialect].items()


def test_what_tells_nothing_is_not_noted() -> None:
    usage = {"service_tier": "standard", "server_tool_use": {"web_search_requests": 0}, "inference_geo": None}
    for event in (
        ProviderState("messages", {"type": "headwater.stop", "usage": usage}),
        ProviderState("messages", {"type": "headwater.citations", "citations": []}),
        UsageReported(Usage(9, 4, 2, 1, "provider", 0)),
        TextDelta("Yes."),
    ):
        assert carry.unsaid(event, "chat") is None


@each_dialect
def test_notes_are_in_the_answer_and_only_if_there_are_any(dialect: DialectName) -> None:
    def streamed(*notices: Notice) -> bytes:
        encoder = DIALECTS[dialect].encoder(Head("run_1", 1760000000, "m"), include_usage=False, style="error")
        events: list[Event] = [TextDelta("Hi"), *notices, RunEnded(Completed())]
        return b"".join(map(encoder.encode, events))

    note = Notice(NOT_CARRIED, "No seed there.")
    assert b'"headwater":{"notes":["No seed there."]}' in streamed(note)
    assert b"headwater" not in streamed()
    assert b"headwater" not in streamed(Notice("other", "…"))
    whole = DIALECTS[dialect].whole
    head, message = Head("run_1", 1760000000, "m"), Assistant((Text("Hi"),))
    assert json.loads(whole(head, message, Usage(), Completed(), ["x"]).body)["headwater"] == {"notes": ["x"]}
    assert "headwater" not in json.loads(whole(head, message, Usage(), Completed()).body)


# ------------------------------------------------------------- recorded answers


def pairings() -> Iterator[tuple[Fixture, DialectName]]:
    for fixture, client in itertools.product(FIXTURES, NAMES):
        if isinstance(fixture.outcome, Completed | Incomplete):
            yield fixture, client


def lossy(fixture: Fixture, client: DialectName) -> set[str]:
    """The rows of the table by which something of it is lost."""
    return {
        row.what
        for row in ANSWERED
        for event in [*fixture.events, RunEnded(fixture.outcome)]
        if row.fate(client) != CARRIED and row.found(event, client)
    }


def plain(text: str, *, broken: bool) -> str:
    """Without the blank lines that stand between what is one to this client, if there may be any."""
    return text.replace("\n\n", "") if broken else text


def seals(message: Assistant) -> list[str]:
    """As far as they are sealed; the parts of a reasoning may have been put together."""
    states = [part.state or {} for part in message.parts if isinstance(part, Reasoning)]
    return [
        repr(state.get(name))
        for state in states
        for name in ("signature", "data", "encrypted_content", "reasoning_details")
        if state.get(name)
    ]


def opaque(message: Assistant, outcome: Outcome) -> list[object]:
    """Items and remarks that say something: a stop sequence does only where it was the stop."""
    moot = {"type"} if outcome == Completed() else {"type", "stop_sequence"}
    return [
        part.data
        for part in message.parts
        if isinstance(part, Opaque)
        and part.data != NO_TIER
        and any(value for name, value in part.data.items() if name not in moot)
    ]


@pytest.mark.parametrize(
    ("fixture", "client"), list(pairings()), ids=lambda value: value.name if isinstance(value, Fixture) else value
)
def test_an_answer_reaches_every_client_whole(fixture: Fixture, client: DialectName) -> None:
    """All recorded successes of all three upstream dialects, through all three client dialects, and read again."""
    answer = streamed([*fixture.events, RunEnded(fixture.outcome)], client)
    first = fold(fixture.events)
    lost = lossy(fixture, client)
    seen = any(part.text.strip() for part in first.message().parts if isinstance(part, Text)) or first.calls
    if seen or fixture.dialect == client:
        empty = isinstance(fixture.outcome, Completed) and not first.delivered().text and not first.calls
        assert type(answer.outcome) is type(fixture.outcome) or empty
    broken = client == "chat" and fixture.dialect == "responses"
    assert plain(answer.folded.text(), broken=broken) == plain(first.text(), broken=broken)
    broken = client == "chat" and fixture.dialect != "chat"
    assert plain(answer.folded.reasoning(), broken=broken) == plain(first.reasoning(), broken=broken)
    late = "a provider's own fields on a call that come after it has begun" in lost
    if isinstance(fixture.outcome, Completed):
        for made, original in zip(answer.folded.calls, first.calls, strict=True):
            assert (made.id, made.name) == (original.id, original.name)
            # None are {} there.
            blank = client == "messages" and not original.arguments.strip()
            assert made.arguments.strip() == ("{}" if blank else original.arguments.strip())
            assert late or (made.extra or {}) == (original.extra or {})
    if "items of hosted tools, and others that we don't know" not in lost and fixture.dialect == client:
        assert opaque(answer.message, fixture.outcome) == opaque(first.message(), fixture.outcome)
        assert seals(answer.message) == seals(first.message())
    else:
        assert bool(lost) == bool(answer.notes)
    if first.usage.input_tokens is not None and first.usage.output_tokens is not None:
        assert answer.folded.usage.output_tokens == first.usage.output_tokens
        assert answer.folded.usage.input_tokens == first.usage.input_tokens
        assert (answer.folded.usage.cached_tokens or 0) == (first.usage.cached_tokens or 0)
        assert (answer.folded.usage.reasoning_tokens or 0) == (first.usage.reasoning_tokens or 0)
