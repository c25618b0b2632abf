"""A Responses request: what it comes to in our own form, and everything that is refused, by name."""

from typing import Any

import msgspec
import pytest

from headwater.conversation import (
    Ask,
    Assistant,
    Image,
    JsonSchema,
    Message,
    NamedTool,
    Opaque,
    Parameters,
    Reasoning,
    System,
    Text,
    Tool,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects import responses
from headwater.errors import CallerError


def parse(**fields: Any) -> Ask:
    return responses.parse(msgspec.json.encode({"input": "Hi", **fields}))


def messages(*input: dict[str, Any]) -> tuple[Message, ...]:
    return parse(input=list(input)).request.messages


LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}


# ---------------------------------------------------------------------- input


def test_a_string_is_a_users_message() -> None:
    assert parse().request.messages == (User((Text("Hi"),)),)


def test_instructions_come_first() -> None:
    assert parse(instructions="Be brief.").request.messages == (System((Text("Be brief."),)), User((Text("Hi"),)))
    assert parse(instructions="").request.messages == (User((Text("Hi"),)),)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_and_developer_are_one(role: str) -> None:
    item = {"role": role, "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}
    assert messages(item, {"role": role, "content": "c"}) == (System((Text("a"), Text("b"))), System((Text("c"),)))


def test_a_message_may_leave_out_its_type() -> None:
    assert messages({"role": "user", "content": "a"}) == messages({"type": "message", "role": "user", "content": "a"})


def test_images_keep_their_detail() -> None:
    item = {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
            {"type": "input_image", "image_url": "https://example.org/a.png"},
        ],
    }
    parts = (Text("What is this?"), Image("data:image/png;base64,AA==", "low"), Image("https://example.org/a.png"))
    assert messages(item) == (User(parts),)


def test_what_the_model_said_in_one_go_is_one_message() -> None:
    """Also as our own answers and OpenAI's have it: with ids, statuses, annotations."""
    text = {"type": "output_text", "text": "Let me look.", "annotations": [], "logprobs": []}
    assert messages(
        {"role": "user", "content": "Where?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA", "status": "completed"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "look", "arguments": "{}"},
        {"type": "function_call", "call_id": "call_b", "name": "look", "arguments": "{}", "status": "completed"},
        {"type": "function_call_output", "call_id": "call_a", "output": "Oslo"},
        {
            "type": "function_call_output",
            "call_id": "call_b",
            "output": [
                {"type": "input_text", "text": "A map:"},
                {"type": "input_image", "image_url": "https://example.org/map.png"},
            ],
        },
        {"role": "assistant", "content": "In Oslo."},
    ) == (
        User((Text("Where?"),)),
        Assistant(
            (
                Reasoning("", "responses", {"id": "rs_1", "summary": [], "encrypted_content": "gAAA"}),
                Text("Let me look."),
                ToolCall("call_a", "look", "{}"),
                ToolCall("call_b", "look", "{}"),
            )
        ),
        ToolOutput("call_a", (Text("Oslo"),)),
        ToolOutput("call_b", (Text("A map:"), Image("https://example.org/map.png"))),
        Assistant((Text("In Oslo."),)),
    )


def test_a_refusal_is_told_from_text_and_empty_texts_are_left_out() -> None:
    content = [{"type": "output_text", "text": ""}, {"type": "refusal", "refusal": "No."}]
    assert messages({"role": "assistant", "content": content}) == (Assistant((Text("No.", refusal=True),)),)
    assert messages({"role": "assistant", "content": "", "phase": "commentary"}, {"role": "user", "content": "a"}) == (
        User((Text("a"),)),
    )


def test_a_phase_and_citations_are_noted_after_their_message() -> None:
    cite = {"type": "url_citation", "url": "https://example.org", "title": "E", "start_index": 0, "end_index": 1}
    content = [{"type": "output_text", "text": "Found.", "annotations": [cite]}]
    assert messages(
        {"role": "assistant", "content": "Looking.", "phase": "commentary"},
        {"role": "assistant", "content": content},
    ) == (
        Assistant((Text("Looking."), Opaque("responses", {"type": "message", "phase": "commentary"}))),
        Assistant((Text("Found."), Opaque("responses", {"type": "message", "annotations": [cite]}))),
    )


def test_two_messages_of_the_model_stay_two() -> None:
    assert messages({"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}) == (
        Assistant((Text("a"),)),
        Assistant((Text("b"),)),
    )


def test_reasoning_without_a_seal_is_only_text() -> None:
    summary = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
    content = [{"type": "reasoning_text", "text": "c"}]
    assert messages({"type": "reasoning", "summary": summary, "content": content}) == (
        Assistant((Reasoning("a\n\nb\n\nc"),)),
    )


def test_a_seal_is_kept_without_the_text_that_it_comes_with() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}]}
    state = {"id": "rs_1", "encrypted_content": "gAAA", "text_is": "summary"}
    assert messages(item | {"encrypted_content": "gAAA"}) == (Assistant((Reasoning("a", "responses", state),)),)


def test_a_calls_extras_are_kept() -> None:
    call = {"type": "function_call", "call_id": "call_a", "name": "a", "arguments": "", "extra_content": {"google": {}}}
    assert messages(call) == (Assistant((ToolCall("call_a", "a", "", {"extra_content": {"google": {}}}),)),)


def test_an_item_that_we_dont_know_travels_unread() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert messages(search) == (Assistant((Opaque("responses", search),)),)
    assert messages(search, {"role": "assistant", "content": "a"}) == (
        Assistant((Opaque("responses", search), Text("a"))),
    )


IMAGE = {"type": "input_image"}


@pytest.mark.parametrize(
    ("item", "param", "word"),
    [
        ({"type": "item_reference", "id": "msg_1"}, "input[1]", "item_reference"),
        ({"id": "msg_1"}, "input[1]", "item_reference"),
        ({"type": None, "id": "msg_1"}, "input[1]", "item_reference"),
        ({"type": 7}, "input[1].type", "str"),
        ({"role": "robot", "content": "a"}, "input[1].role", "robot"),
        ({"type": "message", "content": "a"}, "input[1]", "role"),
        ({"role": "user"}, "input[1]", "content"),
        ({"role": "user", "content": "a", "name": "b"}, "input[1].name", "name"),
        (
            {"role": "user", "content": [{"type": "output_text", "text": "a"}]},
            "input[1].content[0].type",
            "output_text",
        ),
        (
            {"role": "user", "content": [{"type": "input_file", "file_id": "f"}]},
            "input[1].content[0]",
            "text and images",
        ),
        ({"role": "user", "content": [{**IMAGE, "file_id": "f"}]}, "input[1].content[0]", "image_url"),
        ({"role": "user", "content": [{**IMAGE, "image_url": "file:///a"}]}, "input[1].content[0].image_url", "match"),
        ({"role": "system", "content": [{**IMAGE, "image_url": "data:image/a"}]}, "input[1].content[0].type", "image"),
        (
            {"role": "assistant", "content": [{"type": "input_text", "text": "a"}]},
            "input[1].content[0].type",
            "input_text",
        ),
        ({"role": "assistant", "content": "a", "phase": "x"}, "input[1].phase", "x"),
        ({"type": "function_call", "name": "a", "arguments": "{}"}, "input[1]", "call_id"),
        ({"type": "function_call", "call_id": "", "name": "a", "arguments": "{}"}, "input[1].call_id", "length"),
        ({"type": "function_call", "call_id": "c", "name": "a", "arguments": {}}, "input[1].arguments", "str"),
        ({"type": "function_call_output", "call_id": "c"}, "input[1]", "output"),
        ({"type": "function_call_output", "output": "a"}, "input[1]", "call_id"),
        (
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file"}]},
            "input[1].output[0]",
            "text and images",
        ),
        ({"type": "reasoning"}, "input[1]", "summary"),
        ({"type": "reasoning", "summary": [{"type": "text", "text": "a"}]}, "input[1].summary[0].type", "text"),
        ({"type": "reasoning", "summary": [], "encrypted": "x"}, "input[1].encrypted", "encrypted_content"),
    ],
)
def test_an_item_that_cant_be_taken_is_refused_by_its_place(item: dict[str, Any], param: str, word: str) -> None:
    with pytest.raises(CallerError) as raised:
        messages({"role": "user", "content": "Hi"}, item)
    assert raised.value.param == param
    assert word in raised.value.message
    assert raised.value.status == 400


# ----------------------------------------------------------------- parameters


def test_parameters() -> None:
    ask = parse(
        model="fast",
        max_output_tokens=16,
        temperature=0.5,
        top_p=0.9,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        parallel_tool_calls=False,
        reasoning={"effort": "low", "summary": "auto"},
        text={"format": {"type": "json_object"}, "verbosity": "low"},
    )
    assert ask.request.model == "fast"
    assert ask.request.parameters == Parameters(
        max_tokens=16,
        temperature=0.5,
        top_p=0.9,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        parallel_tool_calls=False,
        reasoning_effort="low",
        output="json_object",
    )
    assert ask.request.extras is not None
    assert ask.request.extras.fields == {"summary": "auto", "verbosity": "low"}


@pytest.mark.parametrize("text", [{}, {"format": None}, {"format": {"type": "text"}}])
def test_text_is_text(text: dict[str, Any]) -> None:
    assert parse(text=text).request.parameters.output == "text"


def test_a_schema() -> None:
    schema = {"name": "place", "schema": {"type": "object"}, "strict": True, "description": "A place"}
    text = {"format": {"type": "json_schema", **schema}}
    assert parse(text=text).request.parameters.output == JsonSchema("place", {"type": "object"}, "A place", True)


def test_fields_of_this_dialect_alone_are_carried_as_they_came() -> None:
    fields = {
        "truncation": "auto",
        "service_tier": "flex",
        "max_tool_calls": 3,
        "user": "u",
        "safety_identifier": "s",
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
    }
    extras = parse(**fields).request.extras
    assert extras is not None
    assert extras.dialect == "responses"
    assert extras.fields == fields
    assert parse(**dict.fromkeys(fields)).request.extras is None


def test_tools() -> None:
    ask = parse(tools=[LOOK | {"description": "Looks.", "strict": True}, {"type": "function", "name": "wait"}])
    # Left out, it is as strict as the schema allows.
    assert ask.request.tools == (Tool("look", "Looks.", {"type": "object"}, True), Tool("wait", strict="if_possible"))


def test_tool_choice() -> None:
    assert parse().request.tool_choice is None
    assert parse(tool_choice="none").request.tool_choice == "none"
    assert parse(tool_choice="auto").request.tool_choice == "auto"
    assert parse(tools=[LOOK], tool_choice="required").request.tool_choice == "required"
    choice = {"type": "function", "name": "look"}
    assert parse(tools=[LOOK], tool_choice=choice).request.tool_choice == NamedTool("look")


# ------------------------------------------------------------ how it is wanted


def test_the_answer_is_stored_unless_it_is_not_to_be() -> None:
    assert parse().store
    assert parse(store=True).store
    assert parse(store=None).store
    assert not parse(store=False).store


def test_a_run_in_the_background_goes_on_without_its_client() -> None:
    assert parse().on_disconnect == "cancel"
    assert not parse().background
    ask = parse(background=True)
    assert ask.background
    assert ask.on_disconnect == "continue"
    assert parse(background=True, on_disconnect="continue").on_disconnect == "continue"


def test_what_is_ours_and_how_it_is_wanted() -> None:
    ask = parse(stream=True, session_id="s", on_disconnect="continue", on_cut="continue", stream_options={})
    assert (ask.stream, ask.session_id, ask.on_disconnect, ask.on_cut) == (True, "s", "continue", "continue")
    assert ask.include_usage
    assert (parse().stream, parse().on_cut) == (False, "end")
    assert parse(previous_response_id="resp_1").previous_response_id == "resp_1"
    assert parse(include=["reasoning.encrypted_content"]) == parse()


def test_the_echo_says_what_the_request_has_said() -> None:
    assert parse().echo == {"tools": []}
    ask = parse(
        instructions="Be brief.",
        tools=[LOOK],
        tool_choice={"type": "function", "name": "look"},
        text={"verbosity": "low"},
        reasoning={"effort": "high"},
        metadata={"a": "b"},
        store=False,
        temperature=0,
        top_p=0.5,
        truncation="disabled",
        previous_response_id="resp_0",
        user="u",
    )
    assert ask.echo == {
        "instructions": "Be brief.",
        "tools": [{**LOOK, "description": None, "strict": None}],
        "tool_choice": {"type": "function", "name": "look"},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "reasoning": {"effort": "high", "summary": None},
        "metadata": {"a": "b"},
        "store": False,
        "temperature": 0.0,
        "top_p": 0.5,
        "truncation": "disabled",
        "previous_response_id": "resp_0",
        "user": "u",
    }
    schema = {"type": "json_schema", "name": "place", "schema": {"type": "object"}, "description": None, "strict": None}
    assert parse(text={"format": {"type": "json_schema", "name": "place", "schema": {"type": "object"}}}).echo[
        "text"
    ] == {"format": schema}


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"input": []}, "input", "invalid_value"),
        ({"input": 7}, "input", "invalid_value"),
        ({"input": None}, "input", "invalid_value"),
        ({"inptu": "a"}, "inptu", "unknown_parameter"),
        ({"stop": ["a"]}, "stop", "unknown_parameter"),
        ({"temperature": 3}, "temperature", "invalid_value"),
        ({"top_p": 2}, "top_p", "invalid_value"),
        ({"max_output_tokens": 0}, "max_output_tokens", "invalid_value"),
        ({"truncation": "always"}, "truncation", "invalid_value"),
        ({"reasoning": {"effort": "heroic"}}, "reasoning.effort", "invalid_value"),
        ({"reasoning": {"generate_summary": "auto"}}, "reasoning.generate_summary", "unknown_parameter"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type", "invalid_value"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format", "invalid_value"),
        ({"metadata": {"a" * 65: "b"}}, "metadata", "invalid_value"),
        ({"metadata": {str(n): "b" for n in range(17)}}, "metadata", "invalid_value"),
        ({"presence_penalty": -3}, "presence_penalty", "invalid_value"),
        ({"previous_response_id": ""}, "previous_response_id", "invalid_value"),
        ({"metadata": {"a": 1}}, "metadata[...]", "invalid_value"),
        ({"session_id": ""}, "session_id", "invalid_value"),
        ({"on_disconnect": "explode"}, "on_disconnect", "invalid_value"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "unsupported_value"),
        ({"tools": [LOOK, {"type": "mcp", "server_url": "x"}]}, "tools[1].type", "unsupported_value"),
        ({"tools": [{"name": "look"}]}, "tools[0]", "invalid_value"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name", "invalid_value"),
        ({"tools": [LOOK | {"defer_loading": True}]}, "tools[0].defer_loading", "unknown_parameter"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"tool_choice": "always"}, "tool_choice", "invalid_value"),
        ({"tools": [LOOK], "tool_choice": {"type": "function", "name": "x"}}, "tool_choice", "invalid_value"),
        ({"tools": [LOOK], "tool_choice": {"type": "function"}}, "tool_choice", "invalid_value"),
        ({"tools": [LOOK], "tool_choice": {"type": "allowed_tools"}}, "tool_choice.type", "unsupported_value"),
        ({"top_logprobs": 3}, "top_logprobs", "unsupported_parameter"),
        ({"conversation": "conv_1"}, "conversation", "unsupported_parameter"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt", "unsupported_parameter"),
        (
            {"include": ["reasoning.encrypted_content", "message.output_text.logprobs"]},
            "include[1]",
            "unsupported_value",
        ),
        ({"stream_options": {}}, "stream_options", "invalid_value"),
        ({"background": True, "store": False}, "background", "invalid_value"),
        ({"background": True, "on_disconnect": "cancel"}, "background", "invalid_value"),
        ({"previous_response_id": "resp_1", "session_id": "s"}, "previous_response_id", "invalid_value"),
    ],
)
def test_what_cant_be_done_is_refused_by_name(fields: dict[str, Any], param: str, code: str) -> None:
    with pytest.raises(CallerError) as raised:
        parse(**fields)
    assert raised.value.param == param
    assert raised.value.code == code
    assert raised.value.status == 400


def test_a_misspelt_field_gets_a_hint() -> None:
    with pytest.raises(CallerError, match="Did you mean 'instructions'"):
        parse(instruction="a")


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"a"'])
def test_a_body_that_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(CallerError):
        responses.parse(body)


def test_an_input_is_needed() -> None:
    with pytest.raises(CallerError, match="input"):
        responses.parse(b"{}")


def test_padding_is_refused_where_it_is_asked_for() -> None:
    parse(stream=True, stream_options={"include_obfuscation": False})
    with pytest.raises(CallerError) as raised:
        parse(stream=True, stream_options={"include_obfuscation": True})
    assert raised.value.param == "stream_options.include_obfuscation"


def test_what_the_parts_of_a_message_refer_to_is_found_in_the_whole_text() -> None:
    def part(text: str, **places: int) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [{"type": "url_citation", **places}]}

    content = [part("See here. ", start_index=4, end_index=8), part("And there.", start_index=4, end_index=9), part("")]
    (said,) = messages({"role": "assistant", "content": content})
    assert said.parts[2:] == (
        Opaque(
            "responses",
            {
                "type": "message",
                "annotations": [
                    {"type": "url_citation", "start_index": 4, "end_index": 8},
                    {"type": "url_citation", "start_index": 14, "end_index": 19},
                    {"type": "url_citation"},
                ],
            },
        ),
    )
