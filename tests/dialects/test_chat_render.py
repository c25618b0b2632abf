"""Our request, as a chat upstream is asked (C3, C15)."""

import json
from typing import Any

import pytest

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
from headwater.dialects import chat

HI = User((Text("Hi"),))
TARGET = Target(model="gpt-5-mini", origin="openai")


def render(request: Request, target: Target = TARGET) -> dict[str, Any]:
    written = json.loads(chat.render(request, target))
    assert isinstance(written, dict)
    return written


def rendered(message: Message, target: Target = TARGET) -> dict[str, Any]:
    written = render(Request((message,)), target)["messages"][0]
    assert isinstance(written, dict)
    return written


def test_the_least_request_is_streamed_and_not_stored() -> None:
    """C15: also when the client wants the answer in one piece."""
    assert render(Request((HI,), model="fast")) == {
        "model": "gpt-5-mini",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "store": False,
    }


def test_what_only_this_dialect_knows_stands_where_it_was() -> None:
    file = {"type": "file", "file": {"file_id": "file_1"}}
    said = User((Text("Read."), Opaque("chat", file), Opaque("messages", {"type": "document"})))
    assert rendered(said)["content"] == [{"type": "text", "text": "Read."}, file]
    assert rendered(User((Opaque("chat", file),)))["content"] == [file]


def test_metadata_is_not_sent_since_nothing_is_stored() -> None:
    """OpenAI refuses the one without the other."""
    written = render(Request((HI,), extras=Extras("chat", {"metadata": {"a": "b"}, "user": "u"})))
    assert "metadata" not in written
    assert (written["user"], written["store"]) == ("u", False)


def test_an_upstream_that_cannot_stream_is_asked_for_the_whole() -> None:
    """C23."""
    written = render(Request((HI,)), Target(model="m", stream=False))
    assert written["stream"] is False
    assert "stream_options" not in written


def test_fields_that_an_upstream_refuses_are_left_out() -> None:
    target = Target(model="m", omit=frozenset({"store", "stream_options"}), max_tokens_field="max_completion_tokens")
    written = render(Request((HI,), parameters=Parameters(max_tokens=5)), target)
    assert set(written) == {"model", "messages", "stream", "max_completion_tokens"}


def test_every_parameter() -> None:
    tool = Tool("look", "Looks.", {"type": "object"}, strict=True)
    schema = JsonSchema("x", {"type": "object"})
    written = render(
        Request(
            (HI,),
            tools=(tool, Tool("wait")),
            tool_choice=NamedTool("look"),
            parameters=Parameters(5, 0.0, 0.5, ("a",), 7, 1, -1, False, "low", schema),
            extras=Extras("chat", {"top_k": 3}),
        )
    )
    assert {name: value for name, value in written.items() if name not in render(Request((HI,)))} == {
        "max_tokens": 5,
        "temperature": 0.0,
        "top_p": 0.5,
        "stop": ["a"],
        "seed": 7,
        "presence_penalty": 1,
        "frequency_penalty": -1,
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": True}},
            {"type": "function", "function": {"name": "wait"}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "top_k": 3,
    }  # fmt: skip


def test_what_goes_with_tools_goes_only_with_them() -> None:
    written = render(Request((HI,), tool_choice="auto", parameters=Parameters(parallel_tool_calls=True)))
    assert not {"tool_choice", "parallel_tool_calls", "tools"} & set(written)
    assert render(Request((HI,), tools=(Tool("t"),), tool_choice="auto"))["tool_choice"] == "auto"


def test_another_dialects_extras_stay_there() -> None:
    assert "top_k" not in render(Request((HI,), extras=Extras("messages", {"top_k": 3})))


def test_json_output() -> None:
    written = render(Request((HI,), parameters=Parameters(output="json_object")))
    assert written["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    ("message", "written"),
    [
        (System((Text("Be brief."),)), {"role": "system", "content": "Be brief."}),
        (System((Text("a"), Text("b"))), {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        (User((Text("Hi"),), "ann"), {"role": "user", "content": "Hi", "name": "ann"}),
        (User((Image("https://x/y.png", "low"), Image("data:image/png;base64,AA=="))),
         {"role": "user", "content": [
             {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
             {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}),
        (Assistant((Text("a"), Reasoning("hm"), Text("b")), "bob"), {"role": "assistant", "content": "ab", "name": "bob"}),
        (Assistant((Text("No.", refusal=True),)), {"role": "assistant", "refusal": "No."}),
    ],
)  # fmt: skip
def test_messages(message: Message, written: dict[str, Any]) -> None:
    assert rendered(message) == written


CALL = ToolCall("c", "look", "{}", {"extra_content": {"google": 1}})
BARE = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
SEALED = Reasoning("hm", "chat", {"reasoning_details": [{"type": "reasoning.text"}]})


@pytest.mark.parametrize(("origin", "back"), [("openai", True), (None, True), ("gemini", False)])
def test_a_providers_extras_go_back_to_it_and_to_nobody_else(origin: str | None, back: bool) -> None:
    """C3."""
    written = rendered(Assistant((SEALED, CALL), origin=origin))
    assert written["tool_calls"] == [{"extra_content": {"google": 1}, **BARE} if back else BARE]
    assert written.get("reasoning_details") == ([{"type": "reasoning.text"}] if back else None)


def test_reasoning_goes_back_only_where_it_is_wanted() -> None:
    message = Assistant((Reasoning("hm"), Text("a")))
    assert rendered(message) == {"role": "assistant", "content": "a"}
    target = Target(model="m", reasoning_field="reasoning_content")
    assert rendered(message, target) == {"role": "assistant", "content": "a", "reasoning_content": "hm"}


def test_a_result_follows_its_call() -> None:
    request = Request((Assistant((CALL,)), ToolOutput("c", (Text("ok"),))))
    assert render(request)["messages"][1] == {"role": "tool", "tool_call_id": "c", "content": "ok"}


def test_a_request_survives_the_way_through_us() -> None:
    """A client's request to a chat upstream loses nothing."""
    messages = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "https://x/y"}}],
        },
        {"role": "assistant", "content": "b", "tool_calls": [{"extra_content": 1, **BARE}]},
        {"role": "tool", "tool_call_id": "c", "content": "d"},
    ]
    body = {"messages": messages, "model": "m", "temperature": 0.5, "max_tokens": 9, "stop": ["x"], "min_p": 0.1}
    written = render(chat.parse(json.dumps(body).encode()).request, Target(model="m"))
    assert {name: written[name] for name in body} == body
