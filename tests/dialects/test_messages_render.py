"""Our request as a messages upstream is asked: legal whatever came before, and open about what it leaves out."""

import json
from typing import Any

import msgspec
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
from headwater.dialects import carry, messages
from headwater.dialects.base import Note
from headwater.dialects.history import NOTHING_SAID, ORPHAN, UNKNOWN_OUTCOME
from headwater.testing import check_messages

TARGET = Target(model="claude", origin="anthropic")
BUDGET = Target(model="claude", origin="anthropic", thinking="budget")
HI = User((Text("Hi"),))
SIGNED = Reasoning("Hm.", "messages", {"signature": "c2ln"})
SIGNED_BLOCK = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
CALL = ToolCall("call_a", "look", "{}")
CALL_BLOCK = {"type": "tool_use", "id": "call_a", "name": "look", "input": {}}
RESULT = ToolOutput("call_a", (Text("7"),))
RESULT_BLOCK = {"type": "tool_result", "tool_use_id": "call_a", "content": "7"}
LOOK = Tool("look", "It looks.", {"type": "object", "properties": {}})
MARK = {"type": "ephemeral"}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def render(*said: Message, target: Target = TARGET, **fields: Any) -> dict[str, Any]:
    request = Request(said or (HI,), **fields)
    body: dict[str, Any] = msgspec.json.decode(messages.render(request, target))
    assert check_messages(body) == []
    return body


def notes(*said: Message, target: Target = TARGET, **fields: Any) -> list[Note]:
    return carry.notes(Request(said or (HI,), **fields), target, "messages")


def turns(*said: Message, **fields: Any) -> list[Any]:
    return [(turn["role"], turn["content"]) for turn in render(*said, **fields)["messages"]]


# -------------------------------------------------------------------- history


def test_the_least_request() -> None:
    assert render() == {
        "model": "claude",
        "max_tokens": 16000,
        "messages": [{"role": "user", "content": [text("Hi")]}],
        "stream": True,
    }
    assert notes() == []


def test_not_streamed() -> None:
    assert render(target=Target(model="m", stream=False))["stream"] is False


def test_a_clients_own_request_comes_out_as_it_went_in() -> None:
    body = {
        "model": "claude",
        "max_tokens": 4000,
        "system": [{**text("Be brief."), "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [
            {"role": "user", "content": [text("Hi"), {"type": "document", "source": {"type": "url", "url": "x"}}]},
            {
                "role": "assistant",
                "content": [
                    SIGNED_BLOCK,
                    {"type": "redacted_thinking", "data": "c2VhbGVk"},
                    {**text("Look:"), "citations": [{"type": "char_location"}]},
                    {**CALL_BLOCK, "input": {"x": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {**RESULT_BLOCK, "content": [{**text("7"), "cache_control": MARK}], "cache_control": MARK},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                    {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
                ],
            },
        ],
        "stream": True,
        "temperature": 1,
        "top_p": 0.95,
        "stop_sequences": ["X"],
        "tools": [{"name": "look", "input_schema": {"type": "object"}, "strict": True, "defer_loading": False}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"},
        "output_config": {"effort": "max", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
    }
    request = messages.parse(json.dumps(body).encode()).request
    sent = msgspec.json.decode(messages.render(request, TARGET))
    assert sent.pop("temperature", 1) == 1
    assert sent == {name: value for name, value in body.items() if name != "temperature"}
    assert carry.notes(request, TARGET, "messages") == []
    assert check_messages(sent) == []


def test_system_messages_come_first_and_a_late_one_is_noted() -> None:
    said = (System((Text("Be brief."),)), HI, System((Text("In French."), Text(" "))))
    assert render(*said)["system"] == [text("Be brief."), text("In French.")]
    assert [note.field for note in notes(*said)] == ["messages.system"]


def test_turns_of_one_role_become_one() -> None:
    assert turns(HI, HI, Assistant((Text("A"),)), Assistant((Text("B"),)), HI) == [
        ("user", [text("Hi"), text("Hi")]),
        ("assistant", [text("A"), text("B")]),
        ("user", [text("Hi")]),
    ]


def test_the_user_speaks_first() -> None:
    assert turns(Assistant((Text("Hello."),)), HI)[0] == ("user", [text(NOTHING_SAID)])


@pytest.mark.parametrize("said", [(System((Text("x"),)),), (User(()),), (Assistant(),), (Assistant((SIGNED,)),)])
def test_something_is_said_where_nothing_was(said: tuple[Message, ...]) -> None:
    assert turns(*said) == [("user", [text(NOTHING_SAID)])]


def test_blank_texts_are_left_out() -> None:
    assert turns(User((Text(""), Text(" \n"), Text("Hi"))), Assistant((Text("\n"),)), User((Text(" "),)), HI) == [
        ("user", [text("Hi"), text("Hi")])
    ]


def test_the_last_turn_does_not_end_in_white_space() -> None:
    assert turns(HI, Assistant((Text("Once "), Text("upon \n"))))[-1] == ("assistant", [text("Once "), text("upon")])
    assert turns(HI, Assistant((Text("Once "),)), HI)[1] == ("assistant", [text("Once ")])


def test_a_refusal_is_text() -> None:
    assert turns(HI, Assistant((Text("No.", refusal=True),)), HI)[1] == ("assistant", [text("No.")])


def test_a_name_is_noted() -> None:
    assert [note.field for note in notes(User((Text("Hi"),), "Ada"))] == ["messages.name"]


# ---------------------------------------------------------------------- calls


def test_results_come_first_and_right_after_their_calls() -> None:
    two = Assistant((CALL, ToolCall("call_b", "look", "{}")))
    assert turns(HI, two, HI, ToolOutput("call_b", (Text("8"),)), System((Text("x"),)), RESULT)[2] == (
        "user",
        [RESULT_BLOCK, {"type": "tool_result", "tool_use_id": "call_b", "content": "8"}, text("Hi")],
    )


def test_a_missing_result_is_said_to_be_unknown() -> None:
    unknown = {"type": "tool_result", "tool_use_id": "call_a", "content": UNKNOWN_OUTCOME, "is_error": True}
    assert turns(HI, Assistant((CALL,)), HI)[2] == ("user", [unknown, text("Hi")])
    assert turns(HI, Assistant((CALL,)))[2] == ("user", [unknown])


def test_a_result_without_its_call_becomes_text() -> None:
    assert turns(RESULT, HI) == [("user", [text(ORPHAN), text("7"), text("Hi")])]
    assert turns(ToolOutput("call_a", ()), HI) == [("user", [text("Hi")])]


def test_a_second_result_becomes_text() -> None:
    assert turns(HI, Assistant((CALL,)), RESULT, RESULT)[2] == ("user", [RESULT_BLOCK, text(ORPHAN), text("7")])


@pytest.mark.parametrize(
    ("id", "sent"), [("fc:1|rs/2", "fc_1_rs_2"), ("é", "_"), ("", "call"), ("a b", "a_b"), ("toolu_1", "toolu_1")]
)
def test_ids_that_the_provider_would_not_take_are_put_otherwise(id: str, sent: str) -> None:
    said = turns(HI, Assistant((ToolCall(id, "look", "{}"),)), ToolOutput(id, (Text("7"),)))
    assert said[1][1][0]["id"] == said[2][1][0]["tool_use_id"] == sent


def test_an_id_that_is_used_again_is_another() -> None:
    turn = (Assistant((CALL, CALL)), RESULT, ToolOutput("call_a", (Text("8"),)))
    said = turns(HI, *turn, *turn)
    ids = [block["id"] for role, content in said if role == "assistant" for block in content]
    assert ids == ["call_a", "call_a_2", "call_a_3", "call_a_4"]
    results = [(block["tool_use_id"], block["content"]) for role, content in said[2::2] for block in content]
    assert results == [("call_a", "7"), ("call_a_2", "8"), ("call_a_3", "7"), ("call_a_4", "8")]


def test_two_ids_never_become_one() -> None:
    said = turns(HI, Assistant((ToolCall("a b", "look", "{}"), ToolCall("a_b", "look", "{}"))))
    assert [block["id"] for block in said[1][1]] == ["a_b", "a_b_2"]


@pytest.mark.parametrize(
    ("arguments", "input"),
    [
        ('{"x": [1]}', {"x": [1]}),
        ("", {}),
        (" ", {}),
        ("{'x': 1}", {"INVALID_JSON": "{'x': 1}"}),
        ('{"x":', {"INVALID_JSON": '{"x":'}),
        ("[1]", {"INVALID_JSON": "[1]"}),
        ("null", {"INVALID_JSON": "null"}),
        ("[" * 100_000, {"INVALID_JSON": "[" * 100_000}),
    ],
)
def test_arguments_are_an_object_whatever_the_model_wrote(arguments: str, input: Any) -> None:
    assert turns(HI, Assistant((ToolCall("a", "look", arguments),)))[1][1][0]["input"] == input


def test_extras_go_back_where_they_are_known() -> None:
    extra = {"caller": {"type": "x"}, "extra_content": 1}
    call = ToolCall("call_a", "look", "{}", extra)
    for origin in (None, "anthropic"):
        assert turns(HI, Assistant((call,), origin=origin))[1][1] == [{**CALL_BLOCK, "caller": {"type": "x"}}]
    assert turns(HI, Assistant((call,), origin="elsewhere"))[1][1] == [CALL_BLOCK]


def test_a_tool_that_was_called_by_an_odd_name_is_called_by_a_plain_one() -> None:
    assert turns(HI, Assistant((ToolCall("a", "files.read", "{}"),)))[1][1][0]["name"] == "files_read"
    assert turns(HI, Assistant((ToolCall("a", "", "{}"),)))[1][1][0]["name"] == "unnamed"


def test_a_history_of_calls_has_tools_that_are_not_called_again() -> None:
    body = render(HI, Assistant((CALL,)), RESULT)
    assert body["tools"] == [{"name": "look", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}


# -------------------------------------------------------------------- results


def result(*parts: Any, is_error: bool = False) -> list[Any]:
    content: list[Any] = turns(HI, Assistant((CALL,)), ToolOutput("call_a", parts, is_error))[2][1]
    return content


def test_a_result_of_several_parts() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}
    assert result(Text("7"), Image("https://x.example/a.png")) == [{**RESULT_BLOCK, "content": [text("7"), image]}]
    assert result(Image("https://x.example/a.png")) == [{**RESULT_BLOCK, "content": [image]}]


def test_an_empty_result_has_no_content() -> None:
    assert result() == [{"type": "tool_result", "tool_use_id": "call_a"}]


def test_a_failure_is_told_in_words() -> None:
    assert result(Text("No."), is_error=True) == [{**RESULT_BLOCK, "content": "No.", "is_error": True}]
    assert result(is_error=True) == [{**RESULT_BLOCK, "content": "(no output)", "is_error": True}]
    image = {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}
    assert result(Image("https://x.example/a.png"), Text("No."), is_error=True) == [
        {**RESULT_BLOCK, "content": "No.", "is_error": True},
        image,
    ]


# --------------------------------------------------------------------- images


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://x.example/a.png", {"type": "url", "url": "https://x.example/a.png"}),
        ("data:image/png;base64,iVBORw0KGgo=", {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}),
        ("data:image/gif;x=y;base64,R0lG", {"type": "base64", "media_type": "image/gif", "data": "R0lG"}),
        ("data:image/jpg;base64,/9j/", {"type": "base64", "media_type": "image/jpeg", "data": "/9j/"}),
        ("data:image/PNG;base64,iVBORw0KGgo=", {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}),
        ("data:image/webp,%52IFF", {"type": "base64", "media_type": "image/webp", "data": "UklGRg=="}),
    ],
)
def test_images(url: str, source: dict[str, str]) -> None:
    assert turns(User((Image(url),))) == [("user", [{"type": "image", "source": source}])]


@pytest.mark.parametrize(
    "url",
    [
        "http://x.example/a.png",
        "data:image/bmp;base64,Qk0=",
        "data:image/png;base64,?",
        "data:image/png;base64,",
        "data:,",
        "nonsense",
    ],
)
def test_an_image_that_can_not_be_shown_is_named_and_to_be_refused(url: str) -> None:
    assert turns(User((Image(url),)))[0][1][0]["type"] == "text"
    (note,) = notes(User((Image(url),)))
    assert (note.field, note.refuse) == ("messages.image", True)


def test_an_images_detail_is_noted() -> None:
    assert [note.field for note in notes(User((Image("https://x", "high"),)))] == ["messages.image.detail"]
    assert notes(User((Image("https://x", "auto"),))) == []


def test_another_dialects_parts_are_to_be_refused() -> None:
    file = Opaque("responses", {"type": "input_file", "file_id": "x"})
    assert turns(User((Text("Hi"), file))) == [("user", [text("Hi")])]
    (note,) = notes(User((file,)))
    assert note.refuse
    assert note.field == "messages.content.input_file"


# ------------------------------------------------------------------- thinking


def test_only_signed_thinking_goes_back() -> None:
    foreign = Reasoning("x", "chat", {"reasoning_details": [], "signature": "not ours"})
    sealed = Reasoning("", "messages", {"data": "c2VhbGVk"})
    said = Assistant((SIGNED, sealed, Reasoning("unsigned"), foreign, Text("A")))
    assert turns(HI, said, HI)[1][1] == [SIGNED_BLOCK, {"type": "redacted_thinking", "data": "c2VhbGVk"}, text("A")]


def test_thinking_comes_first_in_its_turn() -> None:
    assert turns(HI, Assistant((Text("A"),)), Assistant((SIGNED, Text("B"))), HI)[1][1] == [
        SIGNED_BLOCK,
        text("A"),
        text("B"),
    ]


def test_thinking_between_is_left_where_the_provider_put_it() -> None:
    again = Reasoning("Aha.", "messages", {"signature": "c2lnMg=="})
    said = turns(HI, Assistant((SIGNED, Text("A"), again, Text("B"))), HI)[1][1]
    assert [block["type"] for block in said] == ["thinking", "text", "thinking", "text"]


def test_a_turn_never_ends_with_thinking() -> None:
    assert turns(HI, Assistant((Text("A"), SIGNED)), HI)[1][1] == [text("A")]
    assert turns(HI, Assistant((SIGNED,)), HI) == [("user", [text("Hi"), text("Hi")])]


# ---------------------------------------------------------------------- items

SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}


def test_the_providers_own_items_go_back_to_it_only() -> None:
    items = (Opaque("messages", SEARCH), Opaque("messages", FOUND), Opaque("responses", {"type": "web_search_call"}))
    assert turns(HI, Assistant((Text("A"), *items, Text("B"))), HI)[1][1] == [text("A"), SEARCH, FOUND, text("B")]


def test_a_hosted_call_that_was_cut_is_left_out_unless_it_may_go_on() -> None:
    cut = Assistant((Text("A"), Opaque("messages", SEARCH)))
    assert turns(HI, cut, HI)[1][1] == [text("A")]
    assert turns(HI, Assistant((Text("A"), Opaque("messages", FOUND))), HI)[1][1] == [text("A")]
    assert turns(HI, cut)[1][1] == [text("A"), SEARCH]


@pytest.mark.parametrize(
    "parts",
    [
        (Text("A"), Opaque("messages", SEARCH)),
        (Text("A"), Opaque("messages", FOUND)),
        (Text("A"), Opaque("messages", {"type": "server_tool_use", "name": "web_search", "input": {}})),
        (Text("A"), Reasoning("Hm", "messages", {"signature": "s"})),
        (Reasoning("Hm", "messages", {"signature": "s"}),),
        (Reasoning("", "messages", {"data": "sealed"}),),
    ],
)
def test_what_would_be_refused_where_it_stands_is_left_out_and_noted(parts: tuple[Any, ...]) -> None:
    types = {"signature": "thinking", "data": "redacted_thinking"}
    last = parts[-1]
    left = last.data["type"] if isinstance(last, Opaque) else types[next(iter(last.state))]
    sent = [block["type"] for _, content in turns(HI, Assistant(parts), HI) for block in content]
    assert left not in sent
    assert [note.field for note in notes(HI, Assistant(parts), HI)] == [f"messages.content.{left}"]


def test_how_an_answer_ended_is_no_part_of_it() -> None:
    stop = Opaque("messages", {"type": "headwater.stop", "stop_sequence": "X"})
    nothing_cited = Opaque("messages", {"type": "headwater.citations", "citations": []})
    lost = Opaque("messages", {"type": "headwater.citations", "citations": [{}]})
    assert turns(HI, Assistant((lost, Text("A"), nothing_cited, stop)), HI)[1][1] == [text("A")]


# ---------------------------------------------------------------------- marks


def test_at_most_four_cache_marks_and_of_a_conversation_the_last() -> None:
    marked = User((Text("Hi", cache="5m"),))
    body = render(
        System((Text("S", cache="1h"),)),
        *(marked, Assistant((Text("A"),))) * 4,
        marked,
        tools=(Tool("look", cache="5m"),),
    )
    assert body["tools"][0]["cache_control"] == MARK
    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    marks = ["cache_control" in turn["content"][0] for turn in body["messages"][::2]]
    assert marks == [False, False, False, True, True]


def test_marks_inside_results_count() -> None:
    part = Text("7", cache="5m")
    said = (Assistant((CALL,)), ToolOutput("call_a", (part, part, part), cache="5m"))
    body = render(HI, *said, User((Text("So?", cache="5m"),)), tools=(LOOK,))
    outcome = body["messages"][2]["content"][0]
    assert "cache_control" in outcome
    assert ["cache_control" in block for block in outcome["content"]] == [False, True, True]


def test_the_conversation_itself_keeps_its_marks() -> None:
    document = {"type": "document", "source": {}, "cache_control": MARK}
    said: list[Message] = [User((Opaque("messages", document),)), Assistant((Text("A"),))] * 5
    render(*said, HI)
    assert document["cache_control"] == MARK


def test_the_requests_own_mark_takes_one() -> None:
    marked = User((Text("Hi", cache="5m"),) * 4)
    body = render(marked, extras=Extras("messages", {"cache_control": MARK}))
    assert ["cache_control" in block for block in body["messages"][0]["content"]] == [False, True, True, True]


# ----------------------------------------------------------------- parameters


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


# ------------------------------------------------------------------ reasoning


def reasoning(effort: Any, target: Target = TARGET, said: tuple[Message, ...] = (HI,), **fields: Any) -> Any:
    parameters = Parameters(reasoning_effort=effort, **fields.pop("parameters", {}))
    body = render(*said, target=target, parameters=parameters, **fields)
    noted = [note.field for note in notes(*said, target=target, parameters=parameters, **fields)]
    return body.get("thinking"), body.get("output_config"), body["max_tokens"], noted


@pytest.mark.parametrize(
    ("effort", "sent"),
    [("minimal", "low"), ("low", "low"), ("medium", "medium"), ("high", "high"), ("xhigh", "xhigh")],
)
def test_an_effort_is_an_effort(effort: str, sent: str) -> None:
    noted = [] if effort == sent else ["reasoning_effort"]
    assert reasoning(effort) == ({"type": "adaptive"}, {"effort": sent}, 16000, noted)


@pytest.mark.parametrize(
    ("effort", "budget"), [("minimal", 1024), ("low", 2048), ("medium", 8192), ("high", 16384), ("xhigh", 32768)]
)
def test_or_a_budget_on_top_of_the_answer(effort: str, budget: int) -> None:
    assert reasoning(effort, BUDGET) == ({"type": "enabled", "budget_tokens": budget}, None, 16000 + budget, [])


@pytest.mark.parametrize(("limit", "budget"), [(1025, 1024), (4000, 2000), (40000, 8192)])
def test_a_budget_fits_into_the_clients_limit(limit: int, budget: int) -> None:
    sent = reasoning("medium", BUDGET, parameters={"max_tokens": limit})
    noted = [] if budget == 8192 else ["reasoning_effort"]
    assert sent == ({"type": "enabled", "budget_tokens": budget}, None, limit, noted)


def test_no_effort_is_no_thinking() -> None:
    assert reasoning("none") == ({"type": "disabled"}, None, 16000, [])
    assert reasoning(None) == (None, None, 16000, [])


def test_reasoning_that_can_not_be_is_noted() -> None:
    noted = (None, None, 16000, ["reasoning_effort"])
    assert reasoning("high", Target(model="m", thinking="none")) == noted
    assert reasoning("high", tools=(LOOK,), tool_choice="required") == noted
    assert reasoning("high", tools=(LOOK,), tool_choice=NamedTool("look")) == noted
    assert reasoning("high", BUDGET, parameters={"max_tokens": 1024})[3] == ["reasoning_effort"]
    # Not where there is nothing to choose from.
    assert reasoning("high", tool_choice="required")[3] == []


def test_a_call_that_was_not_thought_of_here_is_not_thought_on() -> None:
    unsigned = (HI, Assistant((Reasoning("x"), CALL)), RESULT)
    assert reasoning("high", BUDGET, unsigned, tools=(LOOK,))[0] is None
    assert reasoning("high", BUDGET, unsigned, tools=(LOOK,))[3] == ["reasoning_effort", "messages.reasoning"]
    assert reasoning("high", TARGET, unsigned, tools=(LOOK,))[0] == {"type": "adaptive"}
    signed = (HI, Assistant((SIGNED, CALL)), RESULT)
    assert reasoning("high", BUDGET, signed, tools=(LOOK,))[0]["type"] == "enabled"
    done = (*unsigned, Assistant((Text("So."),)), HI)
    assert reasoning("high", BUDGET, done, tools=(LOOK,))[0]["type"] == "enabled"


def test_nor_where_the_client_asks_for_it_in_this_dialect() -> None:
    """As after a fallback from another dialect's upstream."""
    thinking = {"type": "enabled", "budget_tokens": 1024}
    extras = Extras("messages", {"thinking": thinking})
    unsigned = (HI, Assistant((Reasoning("x"), CALL)), RESULT)
    assert "thinking" not in render(*unsigned, tools=(LOOK,), extras=extras)
    assert [note.field for note in notes(*unsigned, tools=(LOOK,), extras=extras)] == [
        "reasoning_effort",
        "messages.reasoning",
    ]
    assert render(HI, tools=(LOOK,), extras=extras)["thinking"] == thinking


def test_a_model_that_reasons_has_its_own_temperature() -> None:
    assert reasoning("high", parameters={"temperature": 0.5})[3] == ["temperature"]
    assert reasoning("high", parameters={"temperature": 1.0})[3] == []
    assert reasoning("none", parameters={"temperature": 0.5})[3] == []


def test_what_a_text_cites_goes_back_with_it_and_with_no_other() -> None:
    cites = [{"type": "char_location"}]
    remark = Opaque("messages", {"type": "headwater.citations", "citations": cites})
    nothing = Opaque("messages", {"type": "headwater.citations", "citations": []})
    assert turns(User((Text("A"), remark, Text("B"))))[0][1] == [{**text("A"), "citations": cites}, text("B")]
    said = Assistant((Text("A"), nothing, Text("B"), remark, Text(" "), remark, CALL, remark))
    assert turns(HI, said, RESULT, tools=(LOOK,))[1][1] == [text("A"), {**text("B"), "citations": cites}, CALL_BLOCK]


def test_thoughts_that_nobody_signed_stay_away() -> None:
    said = Assistant((Reasoning("Hm.", "messages", {"signature": ""}), Text("A")))
    assert turns(HI, said, HI)[1][1] == [text("A")]
    assert [note.field for note in notes(HI, said, HI)] == ["messages.reasoning"]


@pytest.mark.parametrize("target", [TARGET, BUDGET])
def test_a_model_that_reasons_samples_as_it_likes(target: Target) -> None:
    """Its provider refuses anything else."""
    parameters = Parameters(reasoning_effort="high", temperature=0.5, top_p=0.9)
    assert render(target=target, parameters=parameters).keys().isdisjoint({"temperature", "top_p"})
    assert render(target=target, parameters=Parameters(reasoning_effort="high", top_p=0.95))["top_p"] == 0.95
    asked = Extras("messages", {"thinking": {"type": "adaptive"}, "top_k": 5})
    assert "top_k" not in render(extras=asked)
    assert [note.field for note in notes(extras=asked)] == ["top_k"]
    assert render(extras=Extras("messages", {"thinking": {"type": "disabled"}, "top_k": 5}))["top_k"] == 5


@pytest.mark.parametrize("asked", [{"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}])
def test_thinking_in_the_clients_own_words_gives_way_to_what_it_can_not_go_with(asked: dict[str, Any]) -> None:
    extras = Extras("messages", {"thinking": asked, "output_config": {"effort": "low"}})
    begun = (HI, Assistant((Text("Once"),)))
    forced: dict[str, Any] = {"tools": (LOOK,), "tool_choice": "required"}
    for said, fields in ((begun, {}), ((HI,), forced)):
        body = render(*said, extras=extras, **fields)
        assert "thinking" not in body
        assert body["output_config"] == {"effort": "low"}
        assert [note.field for note in notes(*said, extras=extras, **fields)] == ["reasoning_effort"]
    assert render(*begun, parameters=Parameters(reasoning_effort="high")).get("thinking") is None
