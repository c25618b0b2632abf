"""The checkers refuse what the providers refuse, each thing by its place, and take what they take."""

from collections.abc import Callable
from typing import Any

import pytest

from headwater.testing import check_chat, check_messages, check_responses

Body = dict[str, Any]
USER = {"role": "user", "content": "Hi"}


def complains(check: Callable[[Body], list[str]], body: Body, *places: str) -> None:
    found = check(body)
    assert [complaint.partition(": ")[0] for complaint in found] == list(places), found


# ----------------------------------------------------------------------- chat

CALL = {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_a", "content": "7"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}
FUNCTION = {"type": "function", "function": {"name": "look"}}


def chat(*messages: Any, **fields: Any) -> Body:
    return {"model": "m", "messages": list(messages)} | fields


def called(**fields: Any) -> Body:
    return CALLS | {"tool_calls": [CALL | fields]}


@pytest.mark.parametrize(
    "body",
    [
        chat(USER),
        chat(
            {"role": "system", "content": "x"}, {"role": "developer", "content": [{"type": "text", "text": "x"}]}, USER
        ),
        chat({"role": "user", "content": [{"type": "text", "text": "x"}, IMAGE], "name": "Ada"}),
        chat(USER, CALLS, RESULT, {"role": "assistant", "content": "So."}),
        chat(USER, CALLS, RESULT | {"content": ""}, {"role": "assistant", "content": None, "refusal": "No."}),
        chat(USER, tools=[FUNCTION], tool_choice="required", parallel_tool_calls=False, stop="X", temperature=2),
        chat(USER, tools=[FUNCTION], tool_choice={"type": "function", "function": {"name": "look"}}, stop=["X"]),
    ],
)
def test_chat_that_is_taken(body: Body) -> None:
    assert check_chat(body) == []


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"messages": [USER]}, ["model"]),
        (chat(), ["messages"]),
        (chat("Hi"), ["messages[0]"]),
        (chat({"role": "function", "content": "x"}), ["messages[0].role"]),
        (chat({"role": "user", "content": ""}), ["messages[0].content"]),
        (chat({"role": "user", "content": []}), ["messages[0].content"]),
        (chat({"role": "user"}), ["messages[0].content"]),
        (chat({"role": "user", "content": [{"type": "text", "text": ""}]}), ["messages[0].content[0].text"]),
        (chat({"role": "user", "content": [{"type": "video"}]}), ["messages[0].content[0].type"]),
        (chat({"role": "user", "content": [{"type": "image_url"}]}), ["messages[0].content[0].image_url.url"]),
        (chat({"role": "user", "content": [{"type": "file"}]}), ["messages[0].content[0].file"]),
        (chat({"role": "system", "content": [IMAGE]}), ["messages[0].content[0].type"]),
        (chat(USER | {"name": "Ada Lovelace"}), ["messages[0].name"]),
        (chat({"role": "assistant", "content": None}), ["messages[0]"]),
        (chat({"role": "assistant", "content": ""}), ["messages[0].content"]),
        (chat(USER, CALLS), ["messages"]),
        (chat(USER, CALLS, USER), ["messages[2]"]),
        (chat(USER, CALLS, USER, RESULT), ["messages[2]", "messages[3]"]),
        (chat(USER, RESULT), ["messages[1]"]),
        (chat(USER, CALLS, RESULT, RESULT), ["messages[3]"]),
        (chat(USER, CALLS, RESULT | {"content": [IMAGE]}), ["messages[2].content[0].type"]),
        (chat(USER, CALLS, RESULT | {"content": []}), ["messages[2].content"]),
        (chat(CALLS, RESULT, CALLS, RESULT), ["messages"]),
        (chat(CALLS | {"tool_calls": []}), ["messages[0].tool_calls"]),
        (chat(called(id="")), ["messages[0].tool_calls[0].id"]),
        (chat(called(id="x" * 41), RESULT | {"tool_call_id": "x" * 41}), ["messages[0].tool_calls[0].id"]),
        (chat(called(type="tool"), RESULT), ["messages[0].tool_calls[0].type"]),
        (chat(called(function=None), RESULT), ["messages[0].tool_calls[0].function"]),
        (
            chat(called(function={"name": "a.b", "arguments": {}}), RESULT),
            ["messages[0].tool_calls[0].function.name", "messages[0].tool_calls[0].function.arguments"],
        ),
        (chat(USER, tool_choice="auto"), ["tool_choice"]),
        (chat(USER, parallel_tool_calls=True), ["parallel_tool_calls"]),
        (chat(USER, tools=[]), ["tools"]),
        (chat(USER, tools=[{"type": "web"}]), ["tools[0].type", "tools[0].function"]),
        (chat(USER, tools=[FUNCTION, FUNCTION]), ["tools"]),
        (chat(USER, tools=[FUNCTION], tool_choice="most"), ["tool_choice"]),
        (chat(USER, tools=[FUNCTION], tool_choice={"function": {"name": "b"}}), ["tool_choice"]),
        (
            chat(USER, temperature=2.1, top_p=2, presence_penalty=3, max_tokens=0),
            ["temperature", "top_p", "presence_penalty", "max_tokens"],
        ),
        (chat(USER, stop=["a"] * 5), ["stop"]),
    ],
    ids=str,
)
def test_chat_that_is_refused(body: Body, places: list[str]) -> None:
    complains(check_chat, body, *places)


# ------------------------------------------------------------------- messages

TEXT = {"type": "text", "text": "Hi"}
USE = {"type": "tool_use", "id": "toolu_a", "name": "look", "input": {}}
GIVEN = {"type": "tool_result", "tool_use_id": "toolu_a", "content": "7"}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SEALED = {"type": "redacted_thinking", "data": "c2VhbGVk"}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
LINK = {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}
TOOL = {"name": "look", "input_schema": {"type": "object"}}
MARKED = TEXT | {"cache_control": {"type": "ephemeral"}}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}


REMOTE = {"type": "mcp_tool_use", "id": "mcp_1", "name": "look", "server_name": "s", "input": {}}
REMOTE_FOUND = {"type": "mcp_tool_result", "tool_use_id": "mcp_1", "is_error": False, "content": []}


def turn(role: str, *blocks: Any) -> Body:
    return {"role": role, "content": list(blocks)}


def ask(*messages: Any, **fields: Any) -> Body:
    return {"model": "m", "max_tokens": 9, "messages": list(messages)} | fields


def answered(*use: Any, given: Any = (GIVEN,), **fields: Any) -> Body:
    return ask(USER, turn("assistant", *use), turn("user", *given), **{"tools": [TOOL]} | fields)


THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}


@pytest.mark.parametrize(
    "body",
    [
        ask(USER, system="x"),
        ask(turn("user", TEXT, PNG, LINK), system=[MARKED], temperature=1, top_p=1, stop_sequences=["X"]),
        answered(THOUGHT, SEALED, TEXT, USE, given=[GIVEN, TEXT]),
        answered(THOUGHT, USE, **THINKING, tool_choice={"type": "auto"}),
        answered(USE, given=[GIVEN | {"content": [TEXT, PNG]}], thinking={"type": "adaptive"}),
        answered(
            USE, given=[{"type": "tool_result", "tool_use_id": "toolu_a"}], tool_choice={"type": "tool", "name": "look"}
        ),
        answered(USE, given=[GIVEN | {"is_error": True}]),
        ask(USER, turn("assistant", TEXT, SEARCH, FOUND, THOUGHT, TEXT), USER),
        ask(USER, turn("assistant", TEXT, SEARCH)),
        ask(USER, turn("assistant", TEXT, REMOTE, REMOTE_FOUND, THOUGHT, TEXT), USER),
        ask(USER, thinking={"type": "adaptive"}, top_p=0.95, temperature=1),
        ask(USER, turn("assistant", TEXT), thinking={"type": "disabled"}, top_p=0.5, top_k=5, temperature=0),
        ask(USER, {"role": "assistant", "content": "Once"}),
        ask(turn("user", MARKED, MARKED, MARKED, MARKED)),
        ask(USER, **THINKING),
    ],
)
def test_messages_that_are_taken(body: Body) -> None:
    assert check_messages(body) == []


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"model": "m", "messages": [USER]}, ["max_tokens"]),
        (ask(USER, seed=1), ["seed"]),
        (ask(), ["messages"]),
        (ask(USER, USER), ["messages[1].role"]),
        (ask({"role": "system", "content": "x"}), ["messages[0].role"]),
        (ask({"role": "assistant", "content": "x"}), ["messages[0].role"]),
        (ask({"role": "user", "content": " "}), ["messages[0].content[0]"]),
        (ask({"role": "user", "content": []}), ["messages[0].content"]),
        (ask(turn("user", {"text": "x"})), ["messages[0].content[0].type", "messages[0].content[0].type"]),
        (ask(turn("user", TEXT | {"color": 1})), ["messages[0].content[0].color"]),
        (ask(turn("user", THOUGHT)), ["messages[0].content[0].type"]),
        (ask(USER, turn("assistant", PNG)), ["messages[1].content[0].type"]),
        (ask(USER, turn("assistant", {"type": "headwater.stop"})), ["messages[1].content[0].type"]),
        (ask(USER, {"role": "assistant", "content": "x "}), ["messages[1]"]),
        (ask(USER, turn("assistant", TEXT, THOUGHT)), ["messages[1]", "messages[1]"]),
        (ask(USER, turn("assistant", TEXT, THOUGHT, TEXT)), ["messages[1]"]),
        (ask(USER, turn("assistant", THOUGHT | {"signature": ""}, TEXT)), ["messages[1].content[0].signature"]),
        (ask(USER, turn("assistant", SEALED | {"data": ""}, TEXT)), ["messages[1].content[0].data"]),
        (ask(USER, turn("assistant", TEXT, SEARCH), USER), ["messages[1]"]),
        (ask(USER, turn("assistant", TEXT, REMOTE), USER), ["messages[1]"]),
        (ask(USER, turn("assistant", TEXT, REMOTE, FOUND | {"tool_use_id": REMOTE["id"]}), USER), ["messages[1]"]),
        (ask(turn("user", {"type": "image"})), ["messages[0].content[0].source"]),
        (ask(turn("user", LINK | {"source": {"type": "url", "url": "http://x"}})), ["messages[0].content[0].source"]),
        (
            ask(turn("user", PNG | {"source": {"type": "base64", "media_type": "image/bmp", "data": "?"}})),
            ["messages[0].content[0].source.media_type", "messages[0].content[0].source.data"],
        ),
        (ask(turn("user", TEXT | {"cache_control": {"type": "eternal"}})), ["messages[0].content[0].cache_control"]),
        (ask(turn("user", *[MARKED] * 4), system=[MARKED]), ["cache_control"]),
        (ask(turn("user", *[MARKED] * 4), cache_control={"type": "ephemeral"}), ["cache_control"]),
        (ask(USER, system=[PNG]), ["system[0].type"]),
        (ask(USER, system=""), ["system[0]"]),
        (ask(USER, turn("assistant", USE), tools=[TOOL]), ["messages"]),
        (ask(USER, turn("assistant", USE), USER, tools=[TOOL]), ["messages[2]"]),
        (ask(turn("user", GIVEN)), ["messages[0]"]),
        (answered(USE, given=[TEXT, GIVEN]), ["messages[2]"]),
        (answered(USE, given=[GIVEN, GIVEN]), ["messages[2]"]),
        (answered(USE, USE, given=[GIVEN, GIVEN]), ["messages"]),
        (answered(USE | {"id": "a b"}, given=[GIVEN | {"tool_use_id": "a b"}]), ["messages[1].content[0].id"]),
        (
            answered(USE | {"name": "a.b", "input": "{}"}),
            ["messages[1].content[0].name", "messages[1].content[0].input"],
        ),
        (answered(USE, given=[GIVEN | {"content": 7}]), ["messages[2].content[0].content"]),
        (answered(USE, given=[GIVEN | {"content": []}]), ["messages[2].content[0].content"]),
        (answered(USE, given=[GIVEN | {"content": [USE]}]), ["messages[2].content[0].content[0].type"]),
        (answered(USE, given=[GIVEN | {"content": [PNG], "is_error": True}]), ["messages[2].content[0].content[0]"]),
        (answered(USE, given=[GIVEN | {"content": "", "is_error": True}]), ["messages[2].content[0]"]),
        (ask(USER, turn("assistant", USE), turn("user", GIVEN)), ["tools"]),
        (ask(USER, tool_choice={"type": "auto"}), ["tool_choice"]),
        (ask(USER, tools=[TOOL, TOOL]), ["tools"]),
        (ask(USER, tools=[{"name": "a.b"}]), ["tools[0].name", "tools[0].input_schema.type"]),
        (ask(USER, tools=[TOOL], tool_choice="auto"), ["tool_choice"]),
        (ask(USER, tools=[TOOL], tool_choice={"type": "most"}), ["tool_choice.type"]),
        (ask(USER, tools=[TOOL], tool_choice={"type": "tool", "name": "b"}), ["tool_choice.name"]),
        (ask(USER, temperature=1.1, top_p=2), ["temperature", "top_p"]),
        (ask(USER, stop_sequences=["\n"]), ["stop_sequences[0]"]),
        (ask(USER, thinking="on"), ["thinking"]),
        (ask(USER, thinking={"type": "on"}), ["thinking.type"]),
        (ask(USER, thinking={"type": "enabled", "budget_tokens": 9}), ["thinking.budget_tokens"]),
        (ask(USER, thinking={"type": "adaptive"}, temperature=0.5), ["temperature"]),
        (ask(USER, thinking={"type": "adaptive"}, top_p=0.9, top_k=5), ["top_p", "top_k"]),
        (ask(USER, turn("assistant", TEXT), **THINKING), ["messages"]),
        (ask(USER, thinking={"type": "adaptive"}, top_p="most"), ["top_p"]),
        (ask(USER, thinking={"type": "adaptive"}, tools=[TOOL], tool_choice={"type": "any"}), ["thinking"]),
        (answered(USE, **THINKING), ["messages"]),
    ],
    ids=str,
)
def test_messages_that_are_refused(body: Body, places: list[str]) -> None:
    complains(check_messages, body, *places)


# ------------------------------------------------------------------ responses

INPUT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}
ITEM = {"type": "function_call", "call_id": "call_a", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_a", "output": "7"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
DECLARED = {"type": "function", "name": "look", "parameters": {}}
CUSTOM = {"type": "custom_tool_call", "call_id": "call_c", "name": "sql", "input": "select 1"}
CUSTOM_OUTPUT = {"type": "custom_tool_call_output", "call_id": "call_c", "output": "1"}


def responses(*items: Any, **fields: Any) -> Body:
    return {"model": "m", "input": list(items)} | fields


@pytest.mark.parametrize(
    "body",
    [
        responses(USER, instructions="x", max_output_tokens=16, temperature=2),
        {"model": "m", "input": "Hi"},
        responses(INPUT, CUSTOM, CUSTOM_OUTPUT, CUSTOM, CUSTOM_OUTPUT),
        responses(INPUT, REASONING, ITEM, OUTPUT, SAID, tools=[DECLARED], tool_choice="required"),
        responses(INPUT, REASONING, REASONING | {"id": "rs_2"}, SAID, tools=[DECLARED], tool_choice={"name": "look"}),
        responses(
            INPUT
            | {
                "content": [
                    {"type": "input_image", "image_url": "https://x"},
                    {"type": "input_file", "file_id": "x"},
                ]
            },
            {"type": "web_search_call", "id": "ws_1"},
            {"type": "item_reference", "id": "ws_1"},
            ITEM,
            OUTPUT | {"output": [{"type": "input_text", "text": "7"}]},
            SAID | {"content": [{"type": "refusal", "refusal": "No."}]},
        ),
    ],
)
def test_responses_that_are_taken(body: Body) -> None:
    assert check_responses(body) == []


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"input": "Hi"}, ["model"]),
        ({"model": "m", "input": ""}, ["input"]),
        (responses(), ["input"]),
        (responses(USER, messages=[], max_tokens=1), ["messages", "max_tokens"]),
        (responses(USER, instructions=7), ["instructions"]),
        (responses({"type": "tool_use"}), ["input[0].type"]),
        (responses({"role": "tool", "content": "x"}), ["input[0].role"]),
        (responses({"role": "user", "content": ""}), ["input[0].content"]),
        (responses({"role": "user", "content": []}), ["input[0].content"]),
        (responses({"role": "user", "content": [{"type": "output_text", "text": "x"}]}), ["input[0].content[0].type"]),
        (responses({"role": "user", "content": [{"type": "input_text", "text": ""}]}), ["input[0].content[0].text"]),
        (responses({"role": "user", "content": [{"type": "input_image"}]}), ["input[0].content[0].image_url"]),
        (responses(SAID | {"content": [{"type": "refusal"}]}), ["input[0].content[0].refusal"]),
        (responses(ITEM), ["input"]),
        (responses(CUSTOM), ["input"]),
        (responses(CUSTOM_OUTPUT), ["input[0]"]),
        (responses(CUSTOM, CUSTOM_OUTPUT | {"call_id": "call_d"}), ["input[1]", "input"]),
        (responses(OUTPUT), ["input[0]"]),
        (responses(OUTPUT, ITEM), ["input[0]"]),
        (responses(ITEM, ITEM, OUTPUT), ["input"]),
        (responses(ITEM, OUTPUT, OUTPUT), ["input"]),
        (responses(ITEM, OUTPUT | {"output": []}), ["input[1].output"]),
        (responses(ITEM | {"call_id": ""}, OUTPUT | {"call_id": ""}), ["input[0].call_id"]),
        (responses(ITEM | {"call_id": "x" * 65}, OUTPUT | {"call_id": "x" * 65}), ["input[0].call_id"]),
        (responses(ITEM | {"name": "a.b", "arguments": {}}, OUTPUT), ["input[0].name", "input[0].arguments"]),
        (responses(REASONING), ["input[0]"]),
        (responses(REASONING, INPUT), ["input[0]"]),
        (responses(ITEM, REASONING, OUTPUT), ["input[1]"]),
        (
            responses(REASONING | {"summary": None, "encrypted_content": None}, SAID),
            ["input[0].summary", "input[0].encrypted_content"],
        ),
        (responses(REASONING, REASONING, SAID), ["input"]),
        (responses(INPUT | {"id": ""}), ["input[0].id"]),
        (responses(USER, temperature=3, top_p=2, max_output_tokens=1), ["temperature", "top_p", "max_output_tokens"]),
        (responses(USER, tools=[{"type": "web_search"}]), ["tools[0].type"]),
        (responses(USER, tools=[DECLARED, DECLARED]), ["tools"]),
        (
            responses(USER, tools=[DECLARED | {"name": "a.b", "parameters": 1}]),
            ["tools[0].name", "tools[0].parameters"],
        ),
        (responses(USER, tool_choice="required"), ["tool_choice"]),
        (responses(USER, tool_choice="most"), ["tool_choice"]),
        (responses(USER, tools=[DECLARED], tool_choice={"name": "b"}), ["tool_choice"]),
    ],
    ids=str,
)
def test_responses_that_are_refused(body: Body, places: list[str]) -> None:
    complains(check_responses, body, *places)
