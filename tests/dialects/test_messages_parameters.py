"""How a Messages upstream is asked: parameters, tools, formats."""

from typing import Any

import msgspec
import pytest

from headwater.conversation import (
    Extras,
    JsonSchema,
    NamedTool,
    Parameters,
    Target,
    Tool,
)
from headwater.dialects.base import Note
from tests.dialects.messages_rendered import LOOK, MARK, notes, render


def test_parameters() -> None:
    body = render(parameters=Parameters(max_tokens=9, temperature=0.5, top_p=0.9, stop=("X",)))
    assert {name: body[name] for name in ("max_tokens", "temperature", "top_p", "stop_sequences")} == {
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["X"],
    }


def test_what_the_target_refuses_is_left_out_and_noted() -> None:
    target = Target(model="m", omit=frozenset({"temperature"}))
    assert "temperature" not in render(target=target, parameters=Parameters(temperature=0.5))
    assert [note.field for note in notes(target=target, parameters=Parameters(temperature=0.5))] == ["temperature"]
    assert notes(target=target) == []


def test_a_temperature_that_is_too_high_is_the_highest_and_noted() -> None:
    parameters = Parameters(temperature=1.5)
    assert render(parameters=parameters)["temperature"] == 1
    (note,) = notes(parameters=parameters)
    assert note == Note("temperature", "Sent as 1, which is the highest there.")


def test_blank_stop_sequences_are_noted() -> None:
    parameters = Parameters(stop=("\n", "X"))
    assert render(parameters=parameters)["stop_sequences"] == ["X"]
    assert [note.field for note in notes(parameters=parameters)] == ["stop"]


@pytest.mark.parametrize("name", ["seed", "presence_penalty", "frequency_penalty"])
def test_what_the_dialect_lacks_is_noted(name: str) -> None:
    parameters = msgspec.convert({name: 1}, Parameters)
    assert name not in render(parameters=parameters)
    assert [note.field for note in notes(parameters=parameters)] == [name]


def test_another_dialects_extras_are_noted_by_name() -> None:
    extras = Extras("chat", {"logit_bias": {}, "user": "u"})
    assert "logit_bias" not in render(extras=extras)
    assert [note.field for note in notes(extras=extras)] == ["logit_bias", "user"]


def test_structured_output() -> None:
    schema = {"type": "object"}
    body = render(parameters=Parameters(output=JsonSchema("x", schema)))
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


@pytest.mark.parametrize("output", ["json_object", JsonSchema("x")])
def test_json_without_a_schema_is_noted(output: Any) -> None:
    parameters = Parameters(output=output)
    assert "output_config" not in render(parameters=parameters)
    assert [note.field for note in notes(parameters=parameters) if note.refuse] == ["output"]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (None, None),
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        (NamedTool("look"), {"type": "tool", "name": "look"}),
    ],
)
def test_tool_choice(choice: Any, sent: Any) -> None:
    assert render(tools=(LOOK,), tool_choice=choice).get("tool_choice") == sent
    single = Parameters(parallel_tool_calls=False)
    expected = sent if choice == "none" else (sent or {"type": "auto"}) | {"disable_parallel_tool_use": True}
    assert render(tools=(LOOK,), tool_choice=choice, parameters=single)["tool_choice"] == expected


def test_no_choice_without_tools() -> None:
    assert "tool_choice" not in render(tool_choice="auto")


def test_tools() -> None:
    own, other = Extras("messages", {"defer_loading": True}), Extras("responses", {"x": 1})
    body = render(tools=(Tool("a"), Tool("b", "d", {"properties": {}}, True, "5m", own), Tool("c", extras=other)))
    assert body["tools"] == [
        {"name": "a", "input_schema": {"type": "object"}},
        {
            "name": "b",
            "description": "d",
            "input_schema": {"type": "object", "properties": {}},
            "strict": True,
            "defer_loading": True,
            "cache_control": MARK,
        },
        {"name": "c", "input_schema": {"type": "object"}},
    ]


def test_a_tool_that_can_not_be_named_so_is_to_be_refused() -> None:
    tool = Tool("files.read")
    body = render(tools=(tool,), tool_choice=NamedTool("files.read"))
    assert body["tools"][0]["name"] == body["tool_choice"]["name"] == "files_read"
    (note,) = notes(tools=(tool,))
    assert note.refuse
    assert "letters, digits" in note.text
