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


def test_many_brackets_are_not_deep_ones() -> None:
    tools = [{"type": "function", "name": f"t{n}", "parameters": {"type": "object"}} for n in range(300)]
    ask = DIALECTS["responses"].parse(json.dumps({"input": "Hi", "tools": tools}).encode())
    assert len(ask.request.tools) == 300
