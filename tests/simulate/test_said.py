"""What is said to whom: made up or given, and told as each dialect tells it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events import DialectName
from headwater.simulate.asked import read_asked
from headwater.simulate.said import make_up, split_tokens
from headwater.simulate.script import Answer, Call, Reasoning, Usage
from headwater.testing import Simulator
from tests.simulate.wire import DIALECTS, ask

anyio = pytest.mark.anyio
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["content", "text", "type", "role", "output", "function", "name", "parameters"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.text())
def test_tokens_join_to_the_text(text: str) -> None:
    assert "".join(split_tokens(text)) == text


@given(
    st.sampled_from(DIALECTS),
    st.dictionaries(st.sampled_from(["model", "messages", "input", "tools", "stream", "stream_options"]), json_values),
)
def test_any_json_can_be_looked_at(dialect: DialectName, body: dict[str, Any]) -> None:
    assert isinstance(read_asked(dialect, body).last_text, str)


@pytest.mark.parametrize(
    ("dialect", "body", "text", "result"),
    [
        ("chat", {"messages": [{"role": "user", "content": "a"}]}, "a", False),
        ("chat", {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}]}, "a", False),
        ("chat", {"messages": [{"role": "tool", "tool_call_id": "c", "content": "7"}]}, "7", True),
        ("responses", {"input": "a"}, "a", False),
        ("responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}]}, "a", False),
        ("responses", {"input": [{"type": "function_call_output", "call_id": "c", "output": "7"}]}, "7", True),
        ("messages", {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}, "a", False),
        (
            "messages",
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "7"}]}]}]},
            "7",
            True,
        ),
    ],
)  # fmt: skip
def test_the_last_message_is_what_is_echoed(
    dialect: DialectName, body: dict[str, Any], text: str, result: bool
) -> None:
    asked = read_asked(dialect, body)
    assert (asked.last_text, asked.tool_result) == (text, result)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {}),
        (None, {}),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
        (
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {"enum": ["x", "y"]},
                    "c": {"type": ["integer", "null"]},
                    "d": {"type": "object", "properties": {"e": {"type": "boolean"}}, "required": ["e"]},
                    "f": {"type": "strange"},
                },
                "required": ["a", "b", "c", "d", "f", "g"],
            },
            {"a": "x", "b": "x", "c": 1, "d": {"e": True}, "f": None, "g": {}},
        ),
    ],
)
def test_arguments_are_made_up_by_the_schema(schema: Any, value: Any) -> None:
    assert make_up(schema) == value


@anyio
@pytest.mark.parametrize(
    ("send", "asked", "expected"),
    [
        ("as_asked", False, []),
        ("as_asked", True, ["last"]),
        ("always", False, ["last"]),
        ("none", True, []),
        ("with_finish", False, ["finish"]),
        ("every_chunk", False, ["", "", "", "finish"]),
    ],
)
async def test_usage_in_chat_comes_where_it_is_told_to(
    simulator: Simulator, send: Any, asked: bool, expected: list[str]
) -> None:
    simulator.script("m", Answer(tokens=2, usage=Usage(send=send, input_tokens=3, output_tokens=4)))
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if asked else {}
    *frames, _ = (await ask(simulator, "m", **options)).frames
    with_usage = [frame for frame in frames if frame.get("usage")]
    places = [
        "last" if not frame["choices"] else "finish" if frame["choices"][0]["finish_reason"] else ""
        for frame in with_usage
    ]
    assert places == expected
    assert all(frame["usage"]["total_tokens"] == 7 for frame in with_usage)
    whole = (await ask(simulator, "m", stream=False)).json
    assert ("usage" in whole) == (send != "none")


@anyio
async def test_usage_can_be_missing_anywhere(simulator: Simulator) -> None:
    simulator.script("m", Answer(usage=Usage(send="none")))
    assert b'"usage"' not in (await ask(simulator, "m", "messages")).body
    assert (await ask(simulator, "m", "responses")).frames[-1]["response"]["usage"] is None


@anyio
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_in_chat_has_several_names(simulator: Simulator, field: Any) -> None:
    simulator.script("m", Answer(text="So.", reasoning=Reasoning(text="Hm, well.", field=field)))
    *frames, _ = (await ask(simulator, "m")).frames
    assert [frame["choices"][0]["delta"][field] for frame in frames if field in frame["choices"][0]["delta"]] == [
        "Hm, ",
        "well.",
    ]
    whole = (await ask(simulator, "m", stream=False)).json
    assert whole["choices"][0]["message"][field] == "Hm, well."


@anyio
async def test_reasoning_in_chat_may_be_in_tags(simulator: Simulator) -> None:
    simulator.script("m", Answer(text="So.", reasoning=Reasoning(text="Hm.", field="think_tags")))
    *frames, _ = (await ask(simulator, "m")).frames
    text = "".join(frame["choices"][0]["delta"].get("content", "") for frame in frames)
    whole = (await ask(simulator, "m", stream=False)).json
    assert text == whole["choices"][0]["message"]["content"] == "<think>Hm.</think>\nSo."


@anyio
async def test_redacted_reasoning_has_no_words(simulator: Simulator) -> None:
    simulator.script("m", Answer(text="So.", reasoning=Reasoning(redacted=True, signature="c2VhbA==")))
    item = (await ask(simulator, "m", "responses")).frames[-1]["response"]["output"][0]
    assert (item["summary"], item["encrypted_content"]) == ([], "c2VhbA==")


@anyio
@every_dialect
async def test_calls_have_their_extras_and_no_text_of_their_own(simulator: Simulator, dialect: DialectName) -> None:
    signed = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    simulator.script("m", Answer(calls=(Call(name="look", arguments="{nonsense", extras=signed),)))
    for stream in (True, False):
        body = (await ask(simulator, "m", dialect, stream=stream)).body
        assert b'"thought_signature":"c2ln"' in body
        assert b"t0 " not in body


@anyio
async def test_fragments_of_several_calls_can_take_turns(simulator: Simulator) -> None:
    calls = (Call(name="a", arguments="abcd", fragments=2), Call(name="b", arguments="123", fragments=3))
    for interleaved, order in ((False, "ab cd 1 2 3"), (True, "ab 1 cd 2 3")):
        simulator.script("m", Answer(calls=calls, interleaved=interleaved))
        *frames, _ = (await ask(simulator, "m")).frames
        deltas = [delta for frame in frames for delta in frame["choices"][0]["delta"].get("tool_calls", ())]
        assert " ".join(filter(None, (delta["function"]["arguments"] for delta in deltas))) == order
        assert [delta["index"] for delta in deltas if "id" in delta] == [0, 1]


@anyio
async def test_arguments_that_are_no_json_are_told_as_an_object_where_it_must_be_one(simulator: Simulator) -> None:
    simulator.script("m", Answer(calls=(Call(name="look", arguments="{nonsense"),)))
    whole = (await ask(simulator, "m", "messages", stream=False)).json
    assert whole["content"][0]["input"] == {"INVALID_JSON": "{nonsense"}


@anyio
@every_dialect
async def test_finish_reasons_are_told_in_the_dialects_words(simulator: Simulator, dialect: DialectName) -> None:
    words = {
        "chat": ["length", "content_filter", "network_error"],
        "responses": ["max_output_tokens", "content_filter", "network_error"],
        "messages": ["max_tokens", "refusal", "network_error"],
    }
    for finish, word in zip(["length", "content_filter", "network_error"], words[dialect], strict=True):
        for stream in (True, False):
            body = (await ask(simulator, f"sim/finish-{finish}", dialect, stream=stream)).body
            assert f'reason":"{word}"'.encode() in body
