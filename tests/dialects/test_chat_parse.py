"""A chat client's request, into ours; and what is wrong with it, in words that help."""

import contextlib
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from headwater.conversation import (
    Ask,
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
    Text,
    Tool,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects import chat
from headwater.dialects.chat.parse import EXTRAS
from headwater.errors import CallerError

HI = {"role": "user", "content": "Hi"}
LOOK = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}}
FILES: list[dict[str, Any]] = [
    {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
]
SDK_FIELDS = sorted(CompletionCreateParamsBase.__annotations__.keys() - {"messages"})


def parse(*messages: Any, **fields: Any) -> Ask:
    return chat.parse(json.dumps({"messages": messages or [HI], **fields}).encode())


def complaint(*messages: Any, **fields: Any) -> CallerError:
    with pytest.raises(CallerError) as raised:
        parse(*messages, **fields)
    assert raised.value.status == 400
    return raised.value


def test_the_least_request() -> None:
    assert parse() == Ask(Request((User((Text("Hi"),)),)))


def test_every_kind_of_message() -> None:
    url = "data:image/png;base64,AA=="
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}, "extra_content": {"g": 1}}
    assert parse(
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}], "name": "dev"},
        {"role": "user", "name": "ann", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        ]},
        {"role": "assistant", "content": "Let me look.", "reasoning_content": "hm", "tool_calls": [call], "name": "bob"},
        {"role": "tool", "tool_call_id": "c", "content": "A cat."},
        {"role": "tool", "tool_call_id": "d", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "dog."}]},
    ).request.messages == (
        System((Text("Be brief."),)),
        System((Text("Be kind."),), "dev"),
        User((Text("What is this?"), Image(url, "low")), "ann"),
        Assistant((Reasoning("hm"), Text("Let me look."), ToolCall("c", "look", "{}", {"extra_content": {"g": 1}})), "bob"),
        ToolOutput("c", (Text("A cat."),)),
        ToolOutput("d", (Text("A"), Text("dog."))),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "parts"),
    [
        ({"content": None}, ()),
        ({"content": ""}, ()),
        ({"refusal": "No."}, (Text("No.", refusal=True),)),
        ({"content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}]},
         (Text("a"), Text("b", refusal=True))),
        ({"reasoning": "hm"}, (Reasoning("hm"),)),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
         (Reasoning("hm", "chat", {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}),)),
        ({"content": "a", "annotations": [], "audio": None, "function_call": None, "tool_calls": None}, (Text("a"),)),
        ({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]}, (ToolCall("c", "f", ""),)),
    ],
)  # fmt: skip
def test_an_answer_sent_back_is_understood(sent: dict[str, Any], parts: tuple[Any, ...]) -> None:
    assert parse({"role": "assistant", **sent}).request.messages == (Assistant(parts),)


def test_parameters() -> None:
    request = parse(
        model="fast",
        max_completion_tokens=100,
        temperature=0.5,
        top_p=1,
        stop=["a", "b"],
        seed=7,
        presence_penalty=-1,
        frequency_penalty=1.5,
        parallel_tool_calls=False,
        reasoning_effort="low",
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": True},
        },
        tools=[LOOK],
        tool_choice={"type": "function", "function": {"name": "look"}},
        user="u1",
        top_k=None,
    ).request
    assert request.model == "fast"
    assert request.parameters == Parameters(
        max_tokens=100,
        temperature=0.5,
        top_p=1,
        stop=("a", "b"),
        seed=7,
        presence_penalty=-1,
        frequency_penalty=1.5,
        parallel_tool_calls=False,
        reasoning_effort="low",
        output=JsonSchema("x", {"type": "object"}, strict=True),
    )
    assert request.tools == (Tool("look", "Looks.", {"type": "object"}),)
    assert request.tool_choice == NamedTool("look")
    assert request.extras == Extras("chat", {"user": "u1"})


@pytest.mark.parametrize("extra", EXTRAS)
def test_fields_of_some_servers_are_carried_as_they_are(extra: str) -> None:
    assert parse(**{extra: {"any": ["thing"]}}).request.extras == Extras("chat", {extra: {"any": ["thing"]}})


@pytest.mark.parametrize(
    ("field", "value", "parsed"),
    [
        ("max_tokens", 5, Parameters(max_tokens=5)),
        ("stop", "x", Parameters(stop=("x",))),
        ("stop", None, Parameters()),
        ("response_format", {"type": "text"}, Parameters()),
        ("response_format", {"type": "json_object"}, Parameters(output="json_object")),
    ],
)
def test_other_ways_to_say_it(field: str, value: Any, parsed: Parameters) -> None:
    assert parse(**{field: value}).request.parameters == parsed


def test_both_names_of_the_token_limit_may_agree() -> None:
    assert parse(max_tokens=5, max_completion_tokens=5).request.parameters.max_tokens == 5
    assert complaint(max_tokens=5, max_completion_tokens=6).param == "max_tokens"


def test_how_the_answer_is_wanted() -> None:
    asked = parse(
        stream=True, stream_options={"include_usage": True}, session_id="s", on_disconnect="continue", on_cut="continue"
    )
    assert (asked.stream, asked.include_usage, asked.session_id) == (True, True, "s")
    assert (asked.on_disconnect, asked.on_cut) == ("continue", "continue")


def test_values_that_change_nothing_are_taken() -> None:
    assert parse(n=1, store=False, logprobs=False, modalities=["text"], tool_choice="none") == parse(tool_choice="none")
    assert parse(top_logprobs=0) == parse(**dict.fromkeys(SDK_FIELDS)) == parse()


def is_unknown(name: str, value: Any) -> bool:
    try:
        parse(**{name: value})
    except CallerError as error:
        return (error.param, error.code) == (name, "unknown_parameter")
    return False


def test_every_field_of_the_sdk_is_known() -> None:
    """Taken, or refused by a word on why: none is a riddle."""
    pairs = itertools.product(SDK_FIELDS, (True, 1, "x", ["x"], {"x": "x"}))
    assert [name for name, value in pairs if is_unknown(name, value)] == []


@pytest.mark.parametrize(
    ("fields", "param", "code", "words"),
    [
        ({"n": 2}, "n", "unsupported_parameter", "one answer"),
        ({"store": True}, "store", "unsupported_parameter", "session_id"),
        ({"logprobs": True}, "logprobs", "unsupported_parameter", "probabilities"),
        ({"modalities": ["audio"]}, "modalities", "unsupported_parameter", "text"),
        ({"top_logprobs": 5}, "top_logprobs", "unsupported_parameter", "probabilities"),
        ({"audio": {"voice": "ash"}}, "audio", "unsupported_parameter", "text"),
        ({"moderation": {"model": "x"}}, "moderation", "unsupported_parameter", "not carried"),
        ({"functions": [{"name": "f"}]}, "functions", "unsupported_parameter", "'tools'"),
        ({"function_call": "auto"}, "function_call", "unsupported_parameter", "'tool_choice'"),
        ({"metadata": {"a": 1}}, "metadata[...]", "invalid_value", "str"),
        ({"foo": 1}, "foo", "unknown_parameter", "Unknown parameter: 'foo'"),
        ({"max_token": 5}, "max_token", "unknown_parameter", "Did you mean 'max_tokens'?"),
        ({"temperature": 3}, "temperature", "invalid_value", "<= 2"),
        ({"temperature": "hot"}, "temperature", "invalid_value", "got `str`"),
        ({"max_tokens": 0}, "max_tokens", "invalid_value", ">= 1"),
        ({"session_id": "x" * 129}, "session_id", "invalid_value", "128"),
        ({"on_disconnect": "explode"}, "on_disconnect", "invalid_value", "explode"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "invalid_value", "stream: true"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value", "needs 'tools'"),
        (
            {"tools": [LOOK], "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "tool_choice",
            "invalid_value",
            "'x'",
        ),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "invalid_value", "web_search"),
        (
            {"tools": [{"type": "function", "function": {"name": "a b"}}]},
            "tools[0].function.name",
            "invalid_value",
            "regex",
        ),
        ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value", "xml"),
    ],
)
def test_what_we_cannot_do_is_refused_by_name(fields: dict[str, Any], param: str, code: str, words: str) -> None:
    error = complaint(**fields)
    assert (error.param, error.code) == (param, code)
    assert words in error.message


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "function", "content": "x"}, "messages[0].role"),
        ({"content": "x"}, "messages[0]"),
        ({"role": "user"}, "messages[0]"),
        ({"role": "user", "content": [{"type": "video", "video": {}}]}, "messages[0].content[0].type"),
        ({"role": "assistant", "audio": {"id": "a"}}, "messages[0].audio"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]},
         "messages[0].content[0].image_url.url"),
        ({"role": "user", "content": "x", "color": "red"}, "messages[0].color"),
        ({"role": "tool", "content": "x"}, "messages[0]"),
        ({"role": "assistant", "function_call": {"name": "f"}}, "messages[0].function_call"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": ""}}]}, "messages[0].tool_calls[0].id"),
        ({"role": "assistant", "tool_calls": [{"id": "c", "type": "custom"}]}, "messages[0].tool_calls[0].type"),
        ({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}, "messages[0].tool_calls[0].function"),
    ],
)  # fmt: skip
def test_a_bad_message_is_named_by_its_place(message: dict[str, Any], param: str) -> None:
    assert complaint(message).param == param


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"messages":"\\ud800"}', b"[" * 100_000])
def test_what_is_no_json_says_so(body: bytes) -> None:
    with pytest.raises(CallerError) as raised:
        chat.parse(body)
    assert raised.value.message.startswith(("The body is not valid JSON", "Invalid value: expected `object`"))


def test_no_messages_is_refused() -> None:
    with pytest.raises(CallerError) as raised:
        chat.parse(b'{"messages":[]}')
    assert raised.value.param == "messages"
    with pytest.raises(CallerError):
        chat.parse(b"{}")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("ab"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "role", "content", "id", "function"]), inner)
    ),
    max_leaves=8,
)
field_names = st.sampled_from(
    ["messages", "tools", "tool_choice", "response_format", "stop", "stream_options", "model"]
)


@given(st.dictionaries(field_names, json_values))
def test_nothing_but_a_caller_error_is_raised(body: dict[str, Any]) -> None:
    with contextlib.suppress(CallerError):
        chat.parse(json.dumps(body).encode())


def test_names_of_all_speakers_and_what_stood_beside_a_text_are_kept() -> None:
    (system, answer, output) = parse(
        {"role": "system", "content": "Be brief.", "name": "ada"},
        {"role": "assistant", "content": "So.", "annotations": [{"type": "url_citation"}], "images": [{"type": "x"}]},
        {"role": "tool", "tool_call_id": "c", "content": "7", "name": "look"},
    ).request.messages
    assert system == System((Text("Be brief."),), "ada")
    assert answer == Assistant(
        (
            Text("So."),
            Opaque("chat", {"type": "message", "annotations": [{"type": "url_citation"}]}),
            Opaque("chat", {"type": "images", "images": [{"type": "x"}]}),
        )
    )
    assert output == ToolOutput("c", (Text("7"),), name="look")


@pytest.mark.parametrize("part", FILES)
def test_a_file_is_carried_as_it_is(part: dict[str, Any]) -> None:
    (said,) = parse({"role": "user", "content": [{"type": "text", "text": "Read."}, part]}).request.messages
    assert said == User((Text("Read."), Opaque("chat", part)))


def test_metadata_is_taken_beside_what_servers_are_told() -> None:
    assert parse(metadata={"a": "b"}, user="u").request.extras == Extras("chat", {"user": "u", "metadata": {"a": "b"}})


def test_padding_is_refused_where_it_is_asked_for() -> None:
    parse(stream=True, stream_options={"include_obfuscation": False})
    found = complaint(stream=True, stream_options={"include_obfuscation": True})
    assert found.param == "stream_options.include_obfuscation"
