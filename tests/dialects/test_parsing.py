"""What all dialects refuse of a body, whatever it asks for."""

import json
from typing import Any

import pytest

from headwater.conversation import Target
from headwater.dialects import DIALECTS, carry
from headwater.errors import CallerError
from headwater.events import DialectName

# Every place where a client may put what it likes: "@".
BODIES: list[tuple[DialectName, Any]] = [
    ("chat", "@"),
    ("chat", {"messages": [{"role": "user", "content": "@"}]}),
    ("chat", {"messages": [{"role": "user", "content": "Hi"}], "reasoning": "@"}),
    ("chat", {"messages": [{"role": "assistant", "content": "x", "reasoning_details": [{"x": "@"}]}]}),
    ("chat", {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": "@"}]}]}),
    ("chat", {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "x": "@"}]}]}),
    ("responses", {"input": "Hi", "tools": [{"type": "function", "name": "a", "parameters": {"x": "@"}}]}),
    ("responses", {"input": "Hi", "text": {"format": {"type": "json_schema", "name": "a", "schema": {"x": "@"}}}}),
    ("responses", {"input": [{"type": "web_search_call", "x": "@"}]}),
    ("responses", {"input": [{"role": "user", "content": "Hi", "x": "@"}]}),
    ("responses", {"input": [{"type": "function_call", "call_id": "a", "name": "a", "arguments": "{}", "x": "@"}]}),
    ("responses", {"input": "Hi", "tool_choice": {"type": "function", "x": "@"}}),
    ("messages", {"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "document", "x": "@"}]}]}),
    ("messages", {"max_tokens": 9, "messages": [{"role": "assistant", "content": [{"type": "x", "x": "@"}]}]}),
    (
        "messages",
        {
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"name": "a", "input_schema": {"x": "@"}}],
            "context_management": {"x": "@"},
        },
    ),
    (
        "messages",
        {
            "max_tokens": 9,
            "messages": [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "a", "input": {"x": "@"}}]}
            ],
        },
    ),
]


@pytest.mark.parametrize("depth", [150, 198, 500, 960, 993, 999, 5_000, 100_000])
@pytest.mark.parametrize(("dialect", "body"), BODIES, ids=str)
def test_a_body_that_is_nested_too_deeply_is_refused_and_all_else_can_be_sent(
    dialect: DialectName, body: Any, depth: int
) -> None:
    for start, end in (("[", "]"), ('{"k":', "}")):
        nested = json.dumps(body).replace('"@"', start * depth + "1" + end * depth).encode()
        try:
            request = DIALECTS[dialect].parse(nested).request
        except CallerError:
            continue
        assert depth < 200
        for upstream in DIALECTS:
            carry.notes(request, Target(model="m"), upstream)
            assert DIALECTS[upstream].render(request, Target(model="m"))


@pytest.mark.parametrize("number", ["1" * 5000, "-" + "9" * 400, "1e400", "1e-400", "99999999999999999999"])
@pytest.mark.parametrize(("dialect", "body"), BODIES, ids=str)
def test_a_number_of_any_size_is_refused_or_sent_as_it_is(dialect: DialectName, body: Any, number: str) -> None:
    try:
        request = DIALECTS[dialect].parse(json.dumps(body).replace('"@"', number).encode()).request
    except CallerError:
        return
    assert DIALECTS[dialect].render(request, Target(model="m"))


HI = {"role": "user", "content": "Hi"}
ASKED: dict[DialectName, dict[str, Any]] = {
    "chat": {"messages": [HI]},
    "responses": {"input": "Hi"},
    "messages": {"messages": [HI], "max_tokens": 9},
}


@pytest.mark.parametrize(
    ("dialect", "fields", "param", "choices"),
    [
        ("chat", {"messages": [{"role": "function", "content": "x"}]}, "messages[0].role",
         "'system', 'developer', 'user', 'assistant' or 'tool'"),
        ("chat", {"messages": [HI, {"role": "user", "content": [{"type": "x"}]}]}, "messages[1].content[0].type",
         "'text', 'image_url', 'file' or 'input_audio'"),
        ("chat", {"messages": [{"role": "assistant", "content": [{"type": "x"}]}]}, "messages[0].content[0].type",
         "'text' or 'refusal'"),
        ("chat", {"tools": [{"type": "custom"}]}, "tools[0].type", "'function'"),
        ("chat", {"tool_choice": "any"}, "tool_choice", "'auto', 'none' or 'required'"),
        ("chat", {"response_format": {"type": "xml"}}, "response_format.type", "'text', 'json_object' or 'json_schema'"),
        ("chat", {"on_cut": "go"}, "on_cut", "'continue' or 'end'"),
        ("responses", {"input": [{"role": "tool", "content": "x"}]}, "input[0].role",
         "'user', 'assistant', 'system' or 'developer'"),
        ("responses", {"input": [{"role": "assistant", "content": [{"type": "x"}]}]}, "input[0].content[0].type",
         "'output_text' or 'refusal'"),
        ("responses", {"reasoning": {"summary": "long"}}, "reasoning.summary", "'auto', 'concise' or 'detailed'"),
        ("messages", {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role",
         "'assistant', 'system' or 'user'"),
        ("messages", {"tool_choice": {"type": "required"}}, "tool_choice.type", "'any', 'auto', 'none' or 'tool'"),
    ],
)  # fmt: skip
def test_where_there_are_choices_they_are_named(
    dialect: DialectName, fields: dict[str, Any], param: str, choices: str
) -> None:
    with pytest.raises(CallerError) as raised:
        DIALECTS[dialect].parse(json.dumps(ASKED[dialect] | fields).encode())
    assert raised.value.param == param
    assert raised.value.message.endswith(f" It can be {choices}.")


def test_what_comes_after_a_wrong_word_need_not_be_json_for_it_to_be_named() -> None:
    with pytest.raises(CallerError) as raised:
        DIALECTS["chat"].parse(b'{"messages":[{"role":"tool","content":[{"type":"x"}]}],"x":}')
    assert raised.value.message == "Invalid value at 'messages[0].content[0].type': invalid value 'x'."


def test_many_brackets_are_not_deep_ones() -> None:
    tools = [{"type": "function", "name": f"t{n}", "parameters": {"type": "object"}} for n in range(300)]
    ask = DIALECTS["responses"].parse(json.dumps({"input": "Hi", "tools": tools}).encode())
    assert len(ask.request.tools) == 300
