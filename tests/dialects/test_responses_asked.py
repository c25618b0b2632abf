"""What a Responses client asks for besides its input: parameters, tools, how it wants its answer; and what is refused."""

from typing import Any

import pytest

from headwater.conversation import (
    JsonSchema,
    NamedTool,
    Parameters,
    Tool,
)
from headwater.dialects import responses
from headwater.errors import CallerError
from tests.dialects.responses_parsed import LOOK, parse

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
