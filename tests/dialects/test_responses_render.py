"""What a Responses upstream is asked: legal for the real one, whatever conversation it comes from."""

import pytest

from headwater.conversation import (
    Assistant,
    Effort,
    Extras,
    Image,
    JsonSchema,
    NamedTool,
    Parameters,
    Request,
    System,
    Text,
    Tool,
    ToolOutput,
    User,
)
from headwater.dialects import responses
from headwater.dialects.history import UNKNOWN_OUTCOME
from tests.dialects.responses_rendered import HI, body, call, items

# -------------------------------------------------------------------- request


def test_it_is_asked_to_stream_and_to_store_nothing() -> None:
    assert body(Request((HI,))) == {
        "model": "up-1",
        "input": [{"type": "message", "role": "user", "content": "Hi"}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    assert body(Request((HI,)), stream=False)["stream"] is False


@pytest.mark.parametrize(("effort", "asked"), [(None, True), ("low", True), ("max", True), ("none", False)])
def test_sealed_thoughts_are_asked_for_where_there_can_be_any(effort: Effort | None, asked: bool) -> None:
    rendered = body(Request((HI,), parameters=Parameters(reasoning_effort=effort)))
    assert ("include" in rendered) == asked
    assert rendered.get("reasoning") == ({"effort": effort} if effort else None)


def test_what_an_upstream_refuses_is_left_out() -> None:
    rendered = body(Request((HI,), parameters=Parameters(temperature=1)), omit=frozenset({"include", "temperature"}))
    assert "include" not in rendered
    assert "temperature" not in rendered


def test_parameters() -> None:
    parameters = Parameters(
        max_tokens=16,
        temperature=0.5,
        top_p=0.9,
        parallel_tool_calls=False,
        reasoning_effort="low",
        output=JsonSchema("place", {"type": "object"}, strict=True),
    )
    tools = (Tool("look", "Looks.", {"type": "object"}, True), Tool("wait"))
    extras = Extras("responses", {"summary": "auto", "verbosity": "low", "prompt_cache_key": "k"})
    rendered = body(Request((HI,), tools=tools, tool_choice=NamedTool("look"), parameters=parameters, extras=extras))
    assert {name: value for name, value in rendered.items() if name not in ("model", "input", "stream", "store")} == {
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 16,
        "temperature": 0.5,
        "top_p": 0.9,
        "parallel_tool_calls": False,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {
            "format": {"type": "json_schema", "name": "place", "schema": {"type": "object"}, "strict": True},
            "verbosity": "low",
        },
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "Looks.",
                "parameters": {"type": "object"},
                "strict": True,
            },
            {"type": "function", "name": "wait", "parameters": None, "strict": False},
        ],
        "tool_choice": {"type": "function", "name": "look"},
        "prompt_cache_key": "k",
    }


def test_json_without_a_schema_and_a_choice_by_mode() -> None:
    request = Request((HI,), tools=(Tool("look"),), tool_choice="required", parameters=Parameters(output="json_object"))
    rendered = body(request)
    assert rendered["text"] == {"format": {"type": "json_object"}}
    assert rendered["tool_choice"] == "required"


def test_without_tools_there_is_nothing_to_choose() -> None:
    rendered = body(Request((HI,), tool_choice="none", parameters=Parameters(parallel_tool_calls=True)))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & rendered.keys()


def test_another_dialects_fields_are_not_sent() -> None:
    assert "top_k" not in body(Request((HI,), extras=Extras("chat", {"top_k": 3})))


def test_what_it_has_no_field_for_is_not_sent() -> None:
    parameters = Parameters(stop=("a",), seed=1, presence_penalty=1, frequency_penalty=1)
    assert body(Request((HI,), parameters=parameters)) == body(Request((HI,)))


# -------------------------------------------------------------------- history


def test_the_first_system_message_is_the_instructions() -> None:
    rendered = body(Request((System((Text("a"), Text(""), Text("b"))), HI, System((Text("c"),)))))
    assert rendered["instructions"] == "a\n\nb"
    assert [item["role"] for item in rendered["input"]] == ["user", "system"]


def test_a_system_message_alone_is_the_input() -> None:
    rendered = body(Request((System((Text("a"),)),)))
    assert "instructions" not in rendered
    assert rendered["input"] == [{"type": "message", "role": "system", "content": "a"}]


def test_images_and_several_parts() -> None:
    [item] = items(User((Text("a"), Image("https://example.org/a.png"), Image("data:image/png;base64,AA==", "low"))))
    assert item["content"] == [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
    ]


def test_a_call_and_its_output() -> None:
    assert items(HI, Assistant((Text("Let me look."), call())), ToolOutput("call_a", (Text("Oslo"),)))[1:] == [
        {"type": "message", "role": "assistant", "content": "Let me look."},
        {"type": "function_call", "call_id": "call_a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_a", "output": "Oslo"},
    ]


def test_an_output_with_an_image_and_one_with_nothing() -> None:
    outputs = items(
        Assistant((call("a"), call("b"))),
        ToolOutput("a", (Text("x"), Image("https://example.org/a.png"))),
        ToolOutput("b", ()),
    )[2:]
    assert [type(item["output"]) for item in outputs] == [list, str]


def test_a_call_without_an_output_gets_one_that_says_so() -> None:
    written = items(Assistant((call("a"), call("b"), call("c"))), ToolOutput("b", (Text("x"),)), HI)
    assert [(item["type"], item.get("call_id"), item.get("output")) for item in written] == [
        ("function_call", "a", None),
        ("function_call", "b", None),
        ("function_call", "c", None),
        ("function_call_output", "a", UNKNOWN_OUTCOME),
        ("function_call_output", "b", "x"),
        ("function_call_output", "c", UNKNOWN_OUTCOME),
        ("message", None, None),
    ]
    assert items(HI, Assistant((call(),)))[-1]["output"] == UNKNOWN_OUTCOME


def test_an_output_without_its_call_and_one_that_comes_again_are_told_as_text() -> None:
    written = items(
        ToolOutput("lost", (Text("x"),)),
        Assistant((call("a"),)),
        ToolOutput("a", (Text("first"),)),
        ToolOutput("a", (Text("again"),)),
    )
    assert [(item["type"], item.get("output")) for item in written] == [
        ("message", None),
        ("function_call", None),
        ("function_call_output", "first"),
        ("message", None),
    ]


def test_calls_that_share_an_id_are_told_apart() -> None:
    written = items(
        Assistant((call("a"),)),
        ToolOutput("a", (Text("1"),)),
        Assistant((call("a"),)),
        ToolOutput("a", (Text("2"),)),
        Assistant((call("a"), call("a"))),
        ToolOutput("a", (Text("3"),)),
    )
    assert len({item["call_id"] for item in written}) == 4
    assert [item["output"] for item in written if "output" in item] == ["1", "2", "3", UNKNOWN_OUTCOME]


def test_an_id_that_is_too_long_is_shortened_on_both_sides() -> None:
    asked, answered = items(Assistant((call("x" * 65),)), ToolOutput("x" * 65, (Text("y"),)))
    assert asked["call_id"] == answered["call_id"]
    assert len(asked["call_id"]) <= 64
    assert items(Assistant((call("x" * 64),)))[0]["call_id"] == "x" * 64


def test_nothing_empty_is_sent() -> None:
    written = items(System((Text("s"),)), User((Text(""),)), User(()), Assistant((Text(""),)), Assistant(), HI)
    assert written == [{"type": "message", "role": "user", "content": "Hi"}]


def test_a_refusal_is_sent_as_one() -> None:
    [item] = items(Assistant((Text("Well, "), Text("no.", refusal=True))))
    assert item["content"] == [{"type": "output_text", "text": "Well, "}, {"type": "refusal", "refusal": "no."}]


def test_strictness_keeps_its_meaning() -> None:
    """Left out it is as strict as the schema allows here, and not at all elsewhere."""
    for strict, sent in ((True, True), (False, False), (None, False)):
        (tool,) = body(Request((HI,), tools=(Tool("look", strict=strict),)))["tools"]
        assert tool["strict"] is sent
    asked = responses.parse(b'{"input":"Hi","tools":[{"type":"function","name":"look"}]}').request
    (tool,) = body(asked)["tools"]
    assert "strict" not in tool


def test_a_limit_is_never_less_than_the_provider_takes() -> None:
    assert body(Request((HI,), parameters=Parameters(max_tokens=1)))["max_output_tokens"] == 16
    assert body(Request((HI,), parameters=Parameters(max_tokens=17)))["max_output_tokens"] == 17
