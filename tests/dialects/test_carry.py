"""Nine pairings: the tables say what is lost, and nothing else is."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs.generate import dialects_page

from headwater.accumulate import Accumulator
from headwater.conversation import (
    Assistant,
    Extras,
    Image,
    JsonSchema,
    NamedTool,
    Opaque,
    Parameters,
    Reasoning,
    Request,
    System,
    Target,
    Text,
    Tool,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects import DIALECTS, carry
from headwater.dialects.base import NOT_CARRIED, Head
from headwater.dialects.carry import ASKED, CARRIED, Asked
from headwater.events import (
    Completed,
    DialectName,
    Event,
    Incomplete,
    Notice,
    ProviderState,
    RunEnded,
    TextDelta,
    Usage,
)
from headwater.testing import check_chat, check_messages, check_responses
from headwater.turn import TurnReader
from tests.fixtures import FIXTURES, Fixture

NAMES: list[DialectName] = ["chat", "responses", "messages"]
CHECKS = {"chat": check_chat, "responses": check_responses, "messages": check_messages}
each_dialect = pytest.mark.parametrize("dialect", NAMES)
HI = User((Text("Hi"),))
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {}})
SCHEMA = JsonSchema("answer", {"type": "object"})
PNG = "data:image/png;base64,iVBORw0KGgo="
CALL = Assistant((ToolCall("call_1", "look", "{}"),))


def target(**fields: Any) -> Target:
    return Target(model="m", origin="here", **fields)


def with_parameters(**fields: Any) -> Request:
    return Request((HI,), parameters=Parameters(**fields))


# One request for each row of the table, by what it is about.
EXAMPLES: dict[str, tuple[Request, Target]] = {
    "a limit of tokens": (with_parameters(max_tokens=100), target()),
    "temperature": (with_parameters(temperature=0.5), target()),
    "temperature above 1": (with_parameters(temperature=1.5), target()),
    "temperature of a model that is asked to reason": (
        with_parameters(temperature=0.5, reasoning_effort="low"),
        target(),
    ),
    "top_p": (with_parameters(top_p=0.5), target()),
    "stop sequences": (with_parameters(stop=("END",)), target()),
    "a stop sequence of white space": (with_parameters(stop=("\n",)), target()),
    "seed": (with_parameters(seed=7), target()),
    "presence penalty": (with_parameters(presence_penalty=0.5), target()),
    "frequency penalty": (with_parameters(frequency_penalty=0.5), target()),
    "reasoning effort": (with_parameters(reasoning_effort="low"), target()),
    "reasoning where it can't be: a model without it, a forced tool, no room, calls that another model made": (
        Request((HI,), tools=(LOOK,), tool_choice="required", parameters=Parameters(reasoning_effort="low")),
        target(),
    ),
    "JSON by a schema": (with_parameters(output=SCHEMA), target()),
    "a schema's description, and whether it is strict": (
        with_parameters(output=JsonSchema("answer", {"type": "object"}, "An answer.", strict=False)),
        target(),
    ),
    "JSON without a schema": (with_parameters(output="json_object"), target()),
    "function tools": (Request((HI,), tools=(LOOK,)), target()),
    "a tool's name with a dot, or longer than 128 characters": (Request((HI,), tools=(Tool("files.read"),)), target()),
    "tool choice": (Request((HI,), tools=(LOOK,), tool_choice=NamedTool("look")), target()),
    "no parallel calls": (Request((HI,), tools=(LOOK,), parameters=Parameters(parallel_tool_calls=False)), target()),
    "cache marks": (Request((User((Text("Hi", cache="5m"),)),)), target()),
    "system prompts": (Request((System((Text("Be brief."),)), HI)), target()),
    "a system prompt after the conversation has begun": (Request((HI, System((Text("Be brief."),)), HI)), target()),
    "a speaker's name": (Request((User((Text("Hi"),), "ada"),)), target()),
    "images": (Request((User((Image(PNG),)),)), target()),
    "the detail in which an image is seen": (Request((User((Image(PNG, "low"),)),)), target()),
    "images by http, and of other types than JPEG, PNG, GIF and WebP": (
        Request((User((Image("http://example.com/a.png"),)),)),
        target(),
    ),
    "tool calls and their results": (Request((HI, CALL, ToolOutput("call_1", (Text("ok"),))), tools=(LOOK,)), target()),
    "images in a tool's result": (Request((HI, CALL, ToolOutput("call_1", (Image(PNG),))), tools=(LOOK,)), target()),
    "that a tool call failed": (
        Request((HI, CALL, ToolOutput("call_1", (Text("no"),), is_error=True)), tools=(LOOK,)),
        target(),
    ),
    "that the model had refused": (Request((HI, Assistant((Text("No.", refusal=True),)), HI)), target()),
}


def there_and_back(request: Request, at: Target, dialect: DialectName) -> Request:
    """What an upstream of this dialect would understand of it."""
    body = DIALECTS[dialect].render(request, at)
    # A name that OpenAI would not take may be fine with a compatible server: it is sent as it is.
    assert [what for what in CHECKS[dialect](json.loads(body)) if not what.startswith("tools[0].")] == []
    return DIALECTS[dialect].parse(body).request


def test_every_row_has_an_example_that_uses_it() -> None:
    assert set(EXAMPLES) == {row.what for row in ASKED}
    for row in ASKED:
        assert row.used(*EXAMPLES[row.what])
        assert not row.used(Request((HI,)), target())


@each_dialect
@pytest.mark.parametrize("row", ASKED, ids=lambda row: row.what)
def test_what_the_table_says_of_a_request_is_what_happens(row: Asked, dialect: DialectName) -> None:
    request, at = EXAMPLES[row.what]
    fate = row.fate(dialect)
    notes = [note for note in carry.notes(request, at, dialect) if note.text == fate.why]
    kept = row.used(there_and_back(request, at, dialect), at)
    if fate == CARRIED:
        # Where it can't be is no feature that an upstream could be asked for.
        assert kept or "can't be" in row.what or "asked to reason" in row.what
        return
    assert [(note.field, note.refuse) for note in notes] == [(row.field, fate.kind == "refused")]
    if fate.kind in ("dropped", "refused") or row.what == "temperature above 1":
        assert not kept


@each_dialect
def test_a_plain_conversation_loses_nothing(dialect: DialectName) -> None:
    request = Request(
        (
            System((Text("Be brief."),)),
            User((Text("What is this?"), Image(PNG, None if dialect != "responses" else "auto"))),
            Assistant((Text("Let me look."), ToolCall("call_1", "look", '{"at":1}'), ToolCall("call_2", "look", "{}"))),
            ToolOutput("call_1", (Text("A cat."),)),
            ToolOutput("call_2", (Text("A dog."),)),
            Assistant((Text("A cat and a dog."),)),
            User((Text("Thanks."), Text("Bye."))),
        ),
        tools=(LOOK,),
        tool_choice="auto",
        parameters=Parameters(max_tokens=100, temperature=0.5, top_p=0.9, output=SCHEMA),
    )
    assert carry.notes(request, target(), dialect) == []
    back = there_and_back(request, target(), dialect)
    assert back.messages == request.messages
    assert [(tool.name, tool.description, tool.parameters) for tool in back.tools] == [
        (LOOK.name, LOOK.description, LOOK.parameters)
    ]
    assert back.tool_choice == "auto"
    for name in ("max_tokens", "temperature", "top_p"):
        assert getattr(back.parameters, name) == getattr(request.parameters, name)
    assert isinstance(back.parameters.output, JsonSchema)
    assert back.parameters.output.schema == SCHEMA.schema


@each_dialect
def test_fields_of_one_dialect_go_there_and_are_noted_elsewhere(dialect: DialectName) -> None:
    for other in NAMES:
        request = Request((HI,), extras=Extras(other, {"service_tier": "auto"}))
        notes = carry.notes(request, target(), dialect)
        assert [note.field for note in notes] == ([] if other == dialect else ["service_tier"])
        assert ("service_tier" in json.loads(DIALECTS[dialect].render(request, target()))) == (other == dialect)


@each_dialect
def test_parts_that_only_another_dialect_knows_are_refused_or_noted(dialect: DialectName) -> None:
    for other in NAMES:
        document, item = Opaque(other, {"type": "document"}), Opaque(other, {"type": "web_search_call", "id": "ws_1"})
        request = Request((User((Text("Read."), document)), Assistant((item, Text("So."))), HI))
        refuses = [note.refuse for note in carry.notes(request, target(), dialect)]
        assert refuses == ([] if other == dialect else [True, False])


@each_dialect
def test_reasoning_goes_back_sealed_or_is_noted(dialect: DialectName) -> None:
    def noted(part: Reasoning, origin: str | None = "here", **fields: Any) -> bool:
        notes = carry.notes(Request((HI, Assistant((part,), origin=origin), HI)), target(**fields), dialect)
        return "messages.reasoning" in [note.field for note in notes]

    for other in NAMES:
        assert noted(Reasoning("hm", other, {"seal": 1})) == (other != dialect)
    assert noted(Reasoning("hm", dialect, {"seal": 1}), origin="elsewhere")
    assert noted(Reasoning("hm"))
    assert noted(Reasoning("hm"), reasoning_field="reasoning_content") == (dialect != "chat")


def test_what_an_upstream_is_known_to_refuse_is_noted() -> None:
    request = with_parameters(temperature=0.5)
    assert [note.field for note in carry.notes(request, target(omit=frozenset({"temperature", "seed"})), "chat")] == [
        "temperature"
    ]


# --------------------------------------------------------------------- answers


def fold(events: list[Event]) -> Accumulator:
    accumulator = Accumulator()
    for event in events:
        accumulator.apply(event)
    return accumulator


def pairings() -> Iterator[tuple[Fixture, DialectName]]:
    for fixture, client in itertools.product(FIXTURES, NAMES):
        if isinstance(fixture.outcome, Completed | Incomplete):
            yield fixture, client


@pytest.mark.parametrize(
    ("fixture", "client"), list(pairings()), ids=lambda value: value.name if isinstance(value, Fixture) else value
)
def test_an_answer_reaches_every_client_whole(fixture: Fixture, client: DialectName) -> None:
    """All recorded successes of all three upstream dialects, through all three client dialects, and read again."""
    encoder = DIALECTS[client].encoder(Head("run_1", 1760000000, "m"), include_usage=True, style="error")
    data = b"".join(encoder.encode(event) for event in [*fixture.events, RunEnded(fixture.outcome)])
    again = Accumulator()
    reader = TurnReader(DIALECTS[client].decoder("call_x"), again, think_tags=False)
    reader.feed(data)
    outcome = reader.end("clean").outcome
    first = fold(fixture.events)
    empty = isinstance(fixture.outcome, Completed) and not first.delivered().text and not first.calls
    assert type(outcome) is type(fixture.outcome) or empty
    assert again.text() == first.text()
    assert again.reasoning() == first.reasoning()
    if isinstance(fixture.outcome, Completed):
        assert [(call.id, call.name) for call in again.calls] == [(call.id, call.name) for call in first.calls]
        for call, original in zip(again.calls, first.calls, strict=True):
            assert call.arguments == original.arguments or client == "messages"
    if first.usage.input_tokens is not None and first.usage.output_tokens is not None:
        assert again.usage.output_tokens == first.usage.output_tokens
        assert again.usage.input_tokens == first.usage.input_tokens
        assert (again.usage.cached_tokens or 0) == (first.usage.cached_tokens or 0)


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


@each_dialect
def test_what_a_client_does_not_get_to_see_is_said(dialect: DialectName) -> None:
    for other in NAMES:
        item = ProviderState(other, {"type": "web_search_call"})
        assert (carry.unsaid(item, dialect) is None) == (other == dialect)
        assert carry.unsaid(ProviderState(other, {"type": "headwater.stop"}), dialect) is None
        assert carry.unsaid(ProviderState(other, {"seal": 1}, of="reasoning"), dialect) is None
    assert (carry.unsaid(TextDelta("No.", refusal=True), dialect) is None) == (dialect != "messages")
    assert carry.unsaid(TextDelta("Yes."), dialect) is None


def test_the_page_is_made_from_the_table() -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "dialects.md"
    assert page.read_text() == dialects_page(), "run `make docs`"
