"""Our request as a messages upstream is asked: legal whatever came before, and open about what it leaves out."""

import json
from typing import Any

import msgspec
import pytest

from headwater.conversation import (
    Assistant,
    Image,
    Message,
    Opaque,
    System,
    Target,
    Text,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects import carry, messages
from headwater.dialects.history import NOTHING_SAID, ORPHAN, UNKNOWN_OUTCOME
from headwater.testing import check_messages
from tests.dialects.messages_rendered import (
    CALL,
    CALL_BLOCK,
    HI,
    MARK,
    RESULT,
    RESULT_BLOCK,
    SIGNED,
    SIGNED_BLOCK,
    TARGET,
    notes,
    render,
    text,
    turns,
)

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
