"""What is asked, over nine pairings: the table says what is lost, and nothing else is."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from docs.generate import dialects_page
from hypothesis import given
from hypothesis import strategies as st

from headwater.conversation import (
    Assistant,
    Extras,
    Image,
    JsonSchema,
    Message,
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
from headwater.dialects.carry import ASKED, CARRIED, Asked, Question
from headwater.dialects.carry.asked import is_plain
from headwater.events import DialectName
from headwater.testing import check_chat, check_messages, check_responses
from tests.conversations import texts

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


def other(dialect: DialectName) -> DialectName:
    return NAMES[NAMES.index(dialect) - 1]


def in_messages_words(effort: Any = None, max_tokens: int | None = None, **fields: Any) -> Request:
    parameters = Parameters(reasoning_effort=effort, max_tokens=max_tokens)
    return Request((HI,), parameters=parameters, extras=Extras("messages", fields))


Example = tuple[Request, Target] | Callable[[DialectName], tuple[Request, Target]]

MARKED = Text("Hi", cache="5m")
CUSTOM_CALL = Opaque("responses", {"type": "custom_tool_call", "call_id": "call_c", "name": "sql", "input": "x"})

ALONE: dict[DialectName, Reasoning] = {
    "chat": Reasoning("", "chat", {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}),
    "responses": Reasoning("", "responses", {"encrypted_content": "x"}),
    "messages": Reasoning("", "messages", {"data": "x"}),
}

# One request for each row of the table, by what it is about.
EXAMPLES: dict[str, Example] = {
    "a limit of tokens": (with_parameters(max_tokens=100), target()),
    "a limit of fewer than 16 tokens": (with_parameters(max_tokens=15), target()),
    "temperature": (with_parameters(temperature=0.5), target()),
    "temperature above 1": (with_parameters(temperature=1.5), target()),
    "temperature of a model that is asked to reason": (
        with_parameters(temperature=0.5, reasoning_effort="low"),
        target(),
    ),
    "top_p": (with_parameters(top_p=0.5), target()),
    "top_p below 0.95 of a model that is asked to reason": (
        with_parameters(top_p=0.94, reasoning_effort="low"),
        target(),
    ),
    "top_k of a model that is asked to reason": (in_messages_words(top_k=5, thinking={"type": "adaptive"}), target()),
    "stop sequences": (with_parameters(stop=("END",)), target()),
    "a stop sequence of white space": (with_parameters(stop=("\n",)), target()),
    "seed": (with_parameters(seed=7), target()),
    "presence penalty": (with_parameters(presence_penalty=0.5), target()),
    "frequency penalty": (with_parameters(frequency_penalty=0.5), target()),
    "parameters that only another dialect has": lambda dialect: (
        Request((HI,), extras=Extras(other(dialect), {"speed": "fast"})),
        target(),
    ),
    "metadata of a chat completion": (Request((HI,), extras=Extras("chat", {"metadata": {"a": "b"}})), target()),
    "reasoning effort": (with_parameters(reasoning_effort="low"), target()),
    "the least reasoning effort, minimal": (with_parameters(reasoning_effort="minimal"), target()),
    "an effort for which the limit of tokens has no room": (
        with_parameters(reasoning_effort="high", max_tokens=4000),
        target(thinking="budget"),
    ),
    "reasoning where it can't be: a model without it, a forced tool, an answer that is begun, no room, "
    "calls that another model made": (
        Request((HI,), tools=(LOOK,), tool_choice="required", parameters=Parameters(reasoning_effort="low")),
        target(),
    ),
    "reasoning by a number of tokens": (
        in_messages_words("low", 2000, thinking={"type": "enabled", "budget_tokens": 1024}),
        target(),
    ),
    "reasoning as the model sees fit, adaptive": (in_messages_words(thinking={"type": "adaptive"}), target()),
    "an effort of a model that is told not to reason": (
        in_messages_words("none", thinking={"type": "disabled"}, output_config={"effort": "low"}),
        target(),
    ),
    "how reasoning is shown": (in_messages_words(thinking={"type": "adaptive", "display": "omitted"}), target()),
    "JSON by a schema": (with_parameters(output=SCHEMA), target()),
    "a schema's name and description, and whether it is strict": (
        with_parameters(output=JsonSchema("answer", {"type": "object"}, "An answer.", strict=False)),
        target(),
    ),
    "JSON without a schema": (with_parameters(output="json_object"), target()),
    "function tools": (Request((HI,), tools=(LOOK,)), target()),
    "a tool's name with a dot, or longer than 128 characters": (Request((HI,), tools=(Tool("files.read"),)), target()),
    "two tools of one name": (Request((HI,), tools=(LOOK, LOOK)), target()),
    "arguments held to a tool's schema if that is possible, as the responses dialect does unless it is told": (
        Request((HI,), tools=(Tool("look", strict="if_possible"),)),
        target(),
    ),
    "tool choice": (Request((HI,), tools=(LOOK,), tool_choice=NamedTool("look")), target()),
    "no parallel calls": (Request((HI,), tools=(LOOK,), parameters=Parameters(parallel_tool_calls=False)), target()),
    "cache marks": (Request((HI, CALL, ToolOutput("call_1", (Text("ok"),), cache="5m")), tools=(LOOK,)), target()),
    "more than 4 cache marks": (Request((User((MARKED,) * 5),)), target()),
    "system prompts, a developer's among them": (Request((System((Text("Be brief."),)), HI)), target()),
    "a system prompt after the conversation has begun": (Request((HI, System((Text("Be brief."),)), HI)), target()),
    "a speaker's name": (Request((System((Text("Be brief."),), "ada"), HI)), target()),
    "a speaker's name with white space, a slash, a bar or an angle bracket": (
        Request((HI, CALL, ToolOutput("call_1", (Text("ok"),), name="ada l")), tools=(LOOK,)),
        target(),
    ),
    "images": (Request((User((Image(PNG),)),)), target()),
    "the detail in which an image is seen": (Request((User((Image(PNG, "low"),)),)), target()),
    "an empty message of the user": (Request((User((Text(""),)),)), target()),
    "images by http, and of other types than JPEG, PNG, GIF and WebP": (
        Request((User((Image("http://example.com/a.png"),)),)),
        target(),
    ),
    "tool calls and their results": (Request((HI, CALL, ToolOutput("call_1", (Text("ok"),))), tools=(LOOK,)), target()),
    "an earlier call's name that no tool of the request has and a provider would refuse": (
        Request((HI, Assistant((ToolCall("call_1", "files.read", "{}"),)), ToolOutput("call_1", (Text("ok"),)))),
        target(),
    ),
    "an earlier call's arguments that are no JSON object": (
        Request((HI, Assistant((ToolCall("call_1", "look", "[1]"),)), ToolOutput("call_1", (Text("ok"),)))),
        target(),
    ),
    "images in a tool's result": (Request((HI, CALL, ToolOutput("call_1", (Image(PNG),))), tools=(LOOK,)), target()),
    "images in the result of a call that failed": (
        Request((HI, CALL, ToolOutput("call_1", (Image(PNG),), is_error=True)), tools=(LOOK,)),
        target(),
    ),
    "that a tool call failed": (
        Request((HI, CALL, ToolOutput("call_1", (Text("no"),), is_error=True)), tools=(LOOK,)),
        target(),
    ),
    "that the model had refused": (Request((HI, Assistant((Text("No.", refusal=True),)), HI)), target()),
    "white space at the end of an answer that is begun": (Request((HI, Assistant((Text("Once "),)))), target()),
    "what a client brings that only another dialect knows: a document, a file, a custom tool's output": (
        lambda dialect: (Request((User((Opaque(other(dialect), {"type": "document"}),)),)), target())
    ),
    "what a model has left that only another dialect knows: a hosted tool's call and result": (
        lambda dialect: (
            Request((HI, Assistant((Opaque(other(dialect), {"type": "web_search_call"}), Text("So."))), HI)),
            target(),
        )
    ),
    "calls of other kinds than a function's without their output, and outputs without their call": (
        Request((HI, Assistant((Text("So."), CUSTOM_CALL)), HI)),
        target(),
    ),
    "what an earlier answer has left that can't stand where it is: images or seals alone, "
    "a hosted tool's call without its result, reasoning that nothing follows": lambda dialect: (
        Request((HI, Assistant((ALONE[dialect],)), HI)),
        target(),
    ),
    "what an earlier text cites, and other remarks on it": lambda dialect: (
        Request((HI, Assistant((Text("So."), Opaque(other(dialect), {"type": "message", "annotations": [{}]}))), HI)),
        target(),
    ),
    "earlier reasoning": lambda dialect: (
        Request((HI, Assistant((Reasoning("", other(dialect), {"seal": "x"}), Text("So."))), HI)),
        target(),
    ),
    "a provider's own fields on an earlier call": (
        Request(
            (HI, Assistant((ToolCall("call_1", "look", "{}", {"x": 1}),), origin="there"), ToolOutput("call_1", ())),
            tools=(LOOK,),
        ),
        target(),
    ),
}


def example(row: Asked, dialect: DialectName) -> tuple[Request, Target]:
    given = EXAMPLES[row.what]
    return given(dialect) if callable(given) else given


def there_and_back(request: Request, at: Target, dialect: DialectName) -> Request:
    """What an upstream of this dialect would understand of it."""
    body = DIALECTS[dialect].render(request, at)
    # A name that OpenAI would not take may be fine with a compatible server: it is sent as it is.
    assert [what for what in CHECKS[dialect](json.loads(body)) if not what.startswith(("tools[0].", "tools:"))] == []
    return DIALECTS[dialect].parse(body).request


def test_every_row_has_an_example_that_uses_it() -> None:
    assert set(EXAMPLES) == {row.what for row in ASKED}
    for row, dialect in itertools.product(ASKED, NAMES):
        assert [*row.found(Question(*example(row, dialect), dialect))]
        assert not [*row.found(Question(Request((HI,)), target(), dialect))]


@each_dialect
@pytest.mark.parametrize("row", ASKED, ids=lambda row: row.what)
def test_what_the_table_says_of_a_request_is_what_happens(row: Asked, dialect: DialectName) -> None:
    request, at = example(row, dialect)
    fate = row.fate(dialect)
    found = [*row.found(Question(request, at, dialect))]
    noted = [(note.field, note.refuse) for note in carry.notes(request, at, dialect) if note.text == fate.why]
    if fate.kind == "refused":
        assert set(noted) >= {(field, True) for field in found}
        return
    kept = [*row.found(Question(there_and_back(request, at, dialect), at, dialect))]
    if fate == CARRIED:
        # That it failed has a row of its own.
        assert kept or row.what == "images in the result of a call that failed"
        return
    assert set(noted) >= {(field, False) for field in found}
    if fate.kind == "dropped" and row.what != "more than 4 cache marks":
        assert not kept


@each_dialect
def test_what_only_one_dialect_knows_goes_back_to_it(dialect: DialectName) -> None:
    """Unread and unnoted: parameters, items, what a text cites, a call's fields, seals."""
    remark: dict[DialectName, Opaque] = {
        "chat": Opaque("chat", {"type": "message", "annotations": [{"type": "url_citation"}]}),
        "responses": Opaque("responses", {"type": "message", "annotations": [{"type": "url_citation"}]}),
        "messages": Opaque("messages", {"type": "headwater.citations", "citations": [{"type": "char_location"}]}),
    }
    item: dict[DialectName, Opaque] = {
        "chat": Opaque("chat", {"type": "images", "images": [{"type": "image_url"}]}),
        "responses": Opaque("responses", {"type": "web_search_call", "id": "ws_1"}),
        "messages": Opaque("messages", {"type": "container_upload", "file_id": "f"}),
    }
    call = ToolCall("call_1", "look", "{}", {"caller": {"type": "x"}})
    said = Assistant((Text("So."), remark[dialect], item[dialect], call))
    request = Request((HI, said, ToolOutput("call_1", (Text("ok"),))), tools=(LOOK,))
    assert carry.notes(request, target(), dialect) == []
    (_, back, _) = there_and_back(request, target(), dialect).messages
    assert isinstance(back, Assistant)
    assert sorted(map(repr, back.parts)) == sorted(map(repr, said.parts))


@each_dialect
def test_a_clients_output_of_a_custom_tool_is_refused_where_it_is_not_known(dialect: DialectName) -> None:
    output = Opaque("responses", {"type": "custom_tool_call_output", "call_id": "call_c", "output": "1"})
    request = Request((HI, Assistant((CUSTOM_CALL, output)), HI))
    refused = [note.field for note in carry.notes(request, target(), dialect) if note.refuse]
    assert refused == ([] if dialect == "responses" else ["messages.content.custom_tool_call_output"])
    if dialect == "responses":
        assert there_and_back(request, target(), dialect).messages == request.messages


def test_a_parameter_that_is_not_carried_is_named_as_its_client_wrote_it() -> None:
    asked = {"input": "Hi", "reasoning": {"summary": "auto"}, "text": {"verbosity": "low"}}
    request = DIALECTS["responses"].parse(json.dumps(asked).encode()).request
    assert [note.field for note in carry.notes(request, target(), "chat")] == ["reasoning.summary"]
    assert {note.field for note in carry.notes(request, target(), "messages")} == {
        "reasoning.summary",
        "text.verbosity",
    }


@each_dialect
@pytest.mark.parametrize("said", [User(()), User((Text(""), Text("")))], ids=["nothing", "empty"])
def test_that_an_empty_message_is_not_sent_is_noted_wherever_it_stands(dialect: DialectName, said: User) -> None:
    for messages in ((said,), (said, HI), (HI, Assistant((Text("So."),)), said)):
        notes = carry.notes(Request(messages), target(), dialect)
        assert [(note.field, note.refuse) for note in notes] == [("messages.content", False)]
    assert carry.notes(Request((HI, Assistant(()), System((Text(""),)))), target(), "chat") == []


@each_dialect
def test_metadata_is_noted_once(dialect: DialectName) -> None:
    request = Request((HI,), extras=Extras("chat", {"metadata": {"a": "b"}}))
    assert [note.field for note in carry.notes(request, target(), dialect)] == ["metadata"]


@each_dialect
def test_a_file_of_a_chat_client_is_refused_where_it_is_not_known(dialect: DialectName) -> None:
    request = Request((User((Opaque("chat", {"type": "file", "file": {"file_id": "f"}}),)),))
    refused = [note.field for note in carry.notes(request, target(), dialect) if note.refuse]
    assert refused == ([] if dialect == "chat" else ["messages.content.file"])


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
    noted = [note.field for note in carry.notes(request, target(), dialect)]
    assert noted == (["output.name"] if dialect == "messages" else [])
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
    for name in NAMES:
        request = Request((HI,), extras=Extras(name, {"speed": "fast"}))
        notes = carry.notes(request, target(), dialect)
        assert [note.field for note in notes] == ([] if name == dialect else ["speed"])
        assert ("speed" in json.loads(DIALECTS[dialect].render(request, target()))) == (name == dialect)


def test_what_two_dialects_mean_alike_goes_from_one_to_the_other() -> None:
    fields = {"user": "u", "service_tier": "flex", "verbosity": "low"}
    asked = Request((HI,), extras=Extras("chat", fields))
    body = json.loads(DIALECTS["responses"].render(asked, target()))
    assert (body["user"], body["service_tier"], body["text"]) == ("u", "flex", {"verbosity": "low"})
    assert json.loads(
        DIALECTS["chat"].render(Request((HI,), extras=Extras("responses", fields)), target())
    ).items() >= (fields.items())
    assert carry.notes(asked, target(), "responses") == []
    assert [note.field for note in carry.notes(asked, target(), "messages")] == ["user", "service_tier", "verbosity"]


@each_dialect
def test_parts_that_only_another_dialect_knows_are_refused_or_noted(dialect: DialectName) -> None:
    for name in NAMES:
        document, item = Opaque(name, {"type": "document"}), Opaque(name, {"type": "web_search_call", "id": "ws_1"})
        request = Request((User((Text("Read."), document)), Assistant((item, Text("So."))), HI))
        refuses = [note.refuse for note in carry.notes(request, target(), dialect)]
        assert refuses == ([] if name == dialect else [True, False])


@each_dialect
def test_reasoning_goes_back_sealed_or_is_noted(dialect: DialectName) -> None:
    def noted(part: Reasoning, origin: str | None = "here", **fields: Any) -> bool:
        notes = carry.notes(Request((HI, Assistant((part,), origin=origin), HI)), target(**fields), dialect)
        return "messages.reasoning" in [note.field for note in notes]

    for name in NAMES:
        assert noted(Reasoning("hm", name, {"seal": 1})) == (name != dialect)
    assert noted(Reasoning("hm", dialect, {"seal": ""}))
    assert noted(Reasoning("hm", dialect, {"seal": 1}), origin="elsewhere")
    assert noted(Reasoning("hm"))
    assert noted(Reasoning("hm"), reasoning_field="reasoning_content") == (dialect != "chat")


def test_what_an_upstream_is_known_to_refuse_is_noted() -> None:
    request = with_parameters(temperature=0.5)
    assert [note.field for note in carry.notes(request, target(omit=frozenset({"temperature", "seed"})), "chat")] == [
        "temperature"
    ]


def test_so_is_what_it_refuses_under_its_dialects_own_name() -> None:
    request = Request((HI,), parameters=Parameters(output=SCHEMA), extras=Extras("chat", {"top_k": 5}))
    omit = frozenset({"response_format", "top_k", "stop"})
    assert [note.field for note in carry.notes(request, target(omit=omit), "chat")] == ["response_format", "top_k"]


def test_the_page_is_made_from_the_table() -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "dialects.md"
    assert page.read_text() == dialects_page(), "run `make docs`"


words = st.builds(Text, texts, st.sampled_from([False, False, False, True]), st.sampled_from([None, None, None, "5m"]))
names = st.sampled_from([None, None, None, "Ada"])
spoken = st.one_of(
    st.builds(System, st.lists(words, max_size=2).map(tuple), names),
    st.builds(User, st.lists(words, max_size=2).map(tuple), names),
    st.builds(Assistant, st.lists(words, max_size=2).map(tuple), names, st.sampled_from([None, "here", "elsewhere"])),
)


sampling = st.builds(
    Parameters,
    max_tokens=st.sampled_from([None, 5, 16, 500]),
    temperature=st.sampled_from([None, 0.0, 1.0, 1.5]),
    top_p=st.sampled_from([None, 0.5, 0.99]),
    seed=st.sampled_from([None, None, None, 7]),
    reasoning_effort=st.sampled_from([None, None, None, "low", "none"]),
)


@given(st.lists(spoken, max_size=5).map(tuple), st.just(Parameters()) | sampling)
def test_no_row_has_anything_to_say_of_plain_words(said: tuple[Message, ...], parameters: Parameters) -> None:
    """They are not looked up: this is what that rests on."""
    request = Request(said, parameters=parameters)
    if not is_plain(request):
        return
    for at, dialect in itertools.product((target(), target(reasoning_field="reasoning")), NAMES):
        question = Question(request, at, dialect)
        assert [row.what for row in ASKED if row.fate(dialect) != CARRIED and [*row.found(question)]] == []


def test_what_is_not_plain_is_looked_up() -> None:
    assert is_plain(Request((System((Text("Be brief."),)), HI, Assistant((Text("Hello"),)), HI)))
    assert is_plain(Request((HI,), parameters=Parameters(max_tokens=500, temperature=0.7, top_p=0.9)))
    for row in ASKED:
        for dialect in NAMES:
            if row.fate(dialect) != CARRIED:
                assert not is_plain(example(row, dialect)[0]), row.what
