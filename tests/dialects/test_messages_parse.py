"""A client's messages request: what is taken, what it becomes, and what is refused by name."""

import json
from typing import Any

import pytest

from headwater.conversation import (
    Ask,
    Assistant,
    Extras,
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
from headwater.dialects import messages
from headwater.errors import CallerError

HI = {"role": "user", "content": "Hi"}
LOOK = {"name": "look", "input_schema": {"type": "object"}}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def parse(**fields: Any) -> Ask:
    return messages.parse(json.dumps({"model": "fast", "max_tokens": 100, "messages": [HI]} | fields).encode())


def said(*turns: Any, **fields: Any) -> tuple[Message, ...]:
    return parse(messages=turns, **fields).request.messages


def user(*blocks: Any) -> tuple[Message, ...]:
    return said({"role": "user", "content": blocks})


def assistant(*blocks: Any) -> Message:
    (message,) = said({"role": "assistant", "content": blocks})
    return message


def refused(**fields: Any) -> CallerError:
    with pytest.raises(CallerError) as raised:
        parse(**fields)
    assert raised.value.status == 400
    return raised.value


# ------------------------------------------------------------------ messages


def test_the_least_request() -> None:
    ask = messages.parse(b'{"max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}')
    assert ask.request.messages == (User((Text("Hi"),)),)
    assert ask.request.model is None
    assert ask.request.parameters == Parameters(max_tokens=9)
    assert (ask.stream, ask.session_id, ask.on_disconnect, ask.on_cut) == (False, None, "cancel", "end")


def test_how_the_answer_is_wanted() -> None:
    ask = parse(stream=True, session_id="s", on_disconnect="continue", on_cut="continue")
    assert (ask.stream, ask.session_id, ask.on_disconnect, ask.on_cut) == (True, "s", "continue", "continue")


def test_the_system_prompt_comes_first() -> None:
    assert said(HI, system="Be brief.")[0] == System((Text("Be brief."),))
    blocks = [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief.", "cache_control": MARK}]
    assert said(HI, system=blocks)[0] == System((Text("Be"), Text("brief.", cache="5m")))


def test_a_system_message_between_the_turns_keeps_its_place() -> None:
    later = {"role": "system", "content": "In French now."}
    assert said(HI, later)[1] == System((Text("In French now."),))
    assert said(HI, {"role": "system", "content": [{"type": "text", "text": "x"}]})[1] == System((Text("x"),))


def test_images() -> None:
    inline = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}, "cache_control": HOUR}
    assert user(inline, linked) == (
        User((Image("data:image/png;base64,iVBORw0KGgo="), Image("https://x.example/a.png", cache="1h"))),
    )


def test_documents_travel_as_they_are() -> None:
    document = {"type": "document", "source": {"type": "url", "url": "https://x.example/a.pdf"}, "cache_control": MARK}
    result = {"type": "search_result", "title": "t", "source": "s", "content": []}
    assert user(document, result) == (User((Opaque("messages", document), Opaque("messages", result))),)


def test_tool_results_are_messages_of_their_own_and_come_first() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}
    assert user(
        {"type": "text", "text": "So?"},
        {"type": "tool_result", "tool_use_id": "a", "content": "7", "cache_control": MARK},
        {
            "type": "tool_result",
            "tool_use_id": "b",
            "content": [{"type": "text", "text": "8"}, image],
            "is_error": True,
        },
        {"type": "tool_result", "tool_use_id": "c"},
        {"type": "tool_result", "tool_use_id": "d", "content": ""},
    ) == (
        ToolOutput("a", (Text("7"),), cache="5m"),
        ToolOutput("b", (Text("8"), Image("https://x.example/a.png")), is_error=True),
        ToolOutput("c", ()),
        ToolOutput("d", ()),
        User((Text("So?"),)),
    )


def test_results_alone_make_no_empty_message() -> None:
    assert user({"type": "tool_result", "tool_use_id": "a"}) == (ToolOutput("a", ()),)


def test_an_answer_comes_back_whole() -> None:
    citation = {"type": "char_location", "cited_text": "x"}
    hosted = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    message = assistant(
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
        {"type": "text", "text": "Look:", "citations": [citation], "cache_control": MARK},
        {"type": "text", "text": ""},
        hosted,
        {"type": "tool_use", "id": "a", "name": "look", "input": {"x": 1}, "cache_control": MARK},
    )
    assert message == Assistant(
        (
            Reasoning("Hm.", "messages", {"signature": "c2ln"}),
            Reasoning("", "messages", {"data": "c2VhbGVk"}),
            Text("Look:", cache="5m"),
            Opaque("messages", {"type": "headwater.citations", "citations": [citation]}),
            Opaque("messages", hosted),
            ToolCall("a", "look", '{"x":1}', cache="5m"),
        )
    )


@pytest.mark.parametrize("signature", [{}, {"signature": ""}])
def test_thinking_without_a_signature_is_nobodys(signature: dict[str, str]) -> None:
    assert assistant({"type": "thinking", "thinking": "Hm.", **signature}) == Assistant((Reasoning("Hm."),))


def test_a_providers_fields_of_a_call_are_kept() -> None:
    """C3."""
    call: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "look", "input": {}, "toolset_name": None}
    assert assistant(call | {"extra_content": {"google": 1}}) == Assistant(
        (ToolCall("a", "look", "{}", {"extra_content": {"google": 1}}),)
    )
    assert assistant(call | {"caller": {"type": "direct"}}) == Assistant((ToolCall("a", "look", "{}"),))
    other = {"caller": {"type": "code_execution_20250825", "tool_id": "x"}}
    assert assistant(call | other) == Assistant((ToolCall("a", "look", "{}", other),))


# ---------------------------------------------------------------- parameters


def test_parameters() -> None:
    ask = parse(temperature=0.5, top_p=0.9, stop_sequences=["X", "Y"])
    assert ask.request.parameters == Parameters(max_tokens=100, temperature=0.5, top_p=0.9, stop=("X", "Y"))
    assert ask.request.extras is None


def test_what_only_this_dialect_has_is_carried_as_it_came() -> None:
    fields = {
        "metadata": {"user_id": "u"},
        "cache_control": HOUR,
        "top_k": 5,
        "service_tier": "standard_only",
        "context_management": {"edits": []},
        "inference_geo": "eu",
        "speed": "fast",
        "thinking": {"type": "adaptive", "display": "omitted"},
        "output_config": {"effort": "max"},
    }
    assert parse(**fields).request.extras == Extras("messages", fields)


@pytest.mark.parametrize(
    ("fields", "effort"),
    [
        ({}, None),
        ({"thinking": {"type": "disabled"}}, "none"),
        ({"thinking": {"type": "adaptive"}}, None),
        ({"thinking": {"type": "between_tools"}}, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "low"),
        ({"thinking": {"type": "enabled", "budget_tokens": 8192}}, "medium"),
        ({"thinking": {"type": "enabled", "budget_tokens": 30000}}, "high"),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}}, "medium"),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "medium"}}, "none"),
        ({"output_config": {"effort": "xhigh"}}, "xhigh"),
        ({"output_config": {"effort": "max"}}, "max"),
    ],
)
def test_another_dialect_is_told_an_effort(fields: dict[str, Any], effort: str | None) -> None:
    assert parse(max_tokens=32000, **fields).request.parameters.reasoning_effort == effort


@pytest.mark.parametrize("field", ["output_config", "output_format"])
def test_structured_output(field: str) -> None:
    format = {"type": "json_schema", "schema": {"type": "object"}}
    ask = parse(**{field: {"format": format} if field == "output_config" else format})
    assert ask.request.parameters.output == JsonSchema("output", {"type": "object"}, strict=True)
    assert ask.request.extras is None


def test_tools() -> None:
    extra = {"input_examples": [{}], "defer_loading": True}
    ask = parse(tools=[LOOK, LOOK | {"name": "b", "type": "custom", "description": "d", "strict": True, **extra}])
    assert ask.request.tools == (
        Tool("look", None, {"type": "object"}),
        Tool("b", "d", {"type": "object"}, True, None, Extras("messages", extra)),
    )
    assert parse(tools=[LOOK | {"cache_control": HOUR}]).request.tools[0].cache == "1h"


@pytest.mark.parametrize(
    ("choice", "ours"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "look"}, NamedTool("look")),
    ],
)
def test_tool_choice(choice: dict[str, Any], ours: Any) -> None:
    request = parse(tools=[LOOK], tool_choice=choice).request
    assert request.tool_choice == ours
    assert request.parameters.parallel_tool_calls is None
    single = parse(tools=[LOOK], tool_choice=choice | {"disable_parallel_tool_use": True}).request
    assert single.parameters.parallel_tool_calls is False


# ------------------------------------------------------------------ refusals


def test_max_tokens_is_required() -> None:
    with pytest.raises(CallerError, match="max_tokens"):
        messages.parse(json.dumps({"messages": [HI]}).encode())


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 0},
        {"messages": []},
        {"temperature": 1.1},
        {"top_p": -0.1},
        {"top_k": -1},
        {"service_tier": "best"},
        {"stream": "yes"},
        {"session_id": ""},
        {"on_cut": "perhaps"},
        {"tool_choice": {"type": "most"}},
        {"thinking": {"type": "enabled", "budget_tokens": 100}},
        {"output_config": {"effort": "minimal"}},
        {"metadata": {"name": "x"}},
        {"system": [{"type": "image"}]},
    ],
    ids=str,
)
def test_bad_values_are_refused(fields: dict[str, Any]) -> None:
    (name,) = fields
    error = refused(**fields)
    assert error.param is not None
    assert error.param.startswith(name)


def test_unknown_fields_are_refused_by_name() -> None:
    error = refused(stop_sequence=["X"])
    assert (error.code, error.param) == ("unknown_parameter", "stop_sequence")
    assert "stop_sequences" in error.message


def test_no_json_is_refused() -> None:
    with pytest.raises(CallerError) as raised:
        messages.parse(b"{")
    assert raised.value.code == "invalid_json"


def test_hosted_tools_are_refused_by_name() -> None:
    error = refused(tools=[LOOK, {"type": "web_search_20250305", "name": "web_search"}])
    assert (error.code, error.param) == ("unsupported_parameter", "tools[1].type")
    assert "web_search_20250305" in error.message


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({"name": "look"}, "tools[0]"),
        ({"name": "a b", "input_schema": {}}, "tools[0].name"),
        ({"name": "look", "input_schema": {}, "inputs": 1}, "tools[0].inputs"),
    ],
)
def test_bad_tools_are_refused(tool: dict[str, Any], param: str) -> None:
    assert refused(tools=[tool]).param == param


def test_a_misspelt_field_of_a_tool_has_a_hint() -> None:
    assert "input_schema" in refused(tools=[LOOK | {"input_shema": 1}]).message


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [LOOK], "tool_choice": {"type": "tool", "name": "b"}}, "tool_choice.name"),
        ({"tools": [LOOK], "tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 2000}}, "thinking.budget_tokens"),
    ],
)
def test_what_does_not_go_together_is_refused(fields: dict[str, Any], param: str) -> None:
    assert refused(**fields).param == param


@pytest.mark.parametrize(
    ("role", "block", "param"),
    [
        ("user", {"type": "container_upload", "file_id": "x"}, ".type"),
        ("user", {"type": "thinking", "thinking": "x", "signature": "y"}, ".type"),
        ("user", {"text": "x"}, ".type"),
        ("user", {"type": 7}, ".type"),
        ("user", {"type": "text"}, ""),
        ("user", {"type": "text", "text": "x", "color": "red"}, ".color"),
        ("user", {"type": "text", "text": "x", "cache_control": {"type": "eternal"}}, ".cache_control.type"),
        ("user", {"type": "image", "source": {"type": "file", "file_id": "x"}}, ".source"),
        ("user", {"type": "image", "source": {"type": "url"}}, ".source"),
        ("user", {"type": "image", "source": {"type": "url", "url": "ftp://x"}}, ".source.url"),
        ("user", {"type": "image", "source": {"type": "base64", "data": "x"}}, ".source"),
        (
            "user",
            {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "x"}},
            ".source.media_type",
        ),
        ("user", {"type": "tool_result"}, ""),
        ("user", {"type": "tool_result", "tool_use_id": ""}, ".tool_use_id"),
        ("user", {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "video"}]}, ".content[0].type"),
        ("assistant", {"type": "image", "source": {"type": "url", "url": "https://x"}}, ".type"),
        ("assistant", {"type": "tool_result", "tool_use_id": "a"}, ".type"),
        ("assistant", {"type": "tool_use", "id": "a", "name": "b", "input": "{}"}, ".input"),
        ("assistant", {"type": "tool_use", "id": "", "name": "b", "input": {}}, ".id"),
        ("assistant", {"type": "redacted_thinking"}, ""),
        ("assistant", {"type": "thinking"}, ""),
        ("assistant", {}, ".type"),
        ("system", {"type": "image"}, ".type"),
    ],
    ids=str,
)
def test_bad_blocks_are_refused_at_their_place(role: str, block: dict[str, Any], param: str) -> None:
    error = refused(messages=[HI, {"role": role, "content": [{"type": "text", "text": "x"}, block]}])
    assert error.param is not None
    assert error.param.startswith("messages[1].content[1]" + param) or (
        # Of one that has several things wrong, msgspec names the first that it finds.
        param == ".type" and error.param == "messages[1].content[1]"
    )


def test_an_unknown_role_is_refused() -> None:
    assert refused(messages=[{"role": "tool", "content": "x"}]).param == "messages[0].role"


def test_tools_of_one_name_are_refused() -> None:
    tool = {"name": "look", "input_schema": {"type": "object"}}
    assert refused(tools=[tool, tool | {"name": "see"}, tool]).param == "tools[2].name"


def test_thinking_needs_its_budget_whatever_the_effort() -> None:
    found = refused(thinking={"type": "enabled"}, output_config={"effort": "low"})
    assert found.param == "thinking.budget_tokens"
    found = refused(thinking={"type": "enabled", "budget_tokens": 1024}, output_config={"effort": "low"})
    assert found.param == "thinking.budget_tokens"


def test_what_a_users_text_cites_is_kept_and_a_system_prompt_cites_nothing() -> None:
    cited = {"type": "text", "text": "So.", "citations": [{"type": "char_location"}]}
    remark = Opaque("messages", {"type": "headwater.citations", "citations": [{"type": "char_location"}]})
    assert user(cited) == (User((Text("So."), remark)),)
    assert refused(system=[cited]).param == "system.citations"


def test_a_seal_without_its_data_is_refused() -> None:
    with pytest.raises(CallerError):
        assistant({"type": "redacted_thinking", "data": ""})
