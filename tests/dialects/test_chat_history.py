"""A chat upstream is asked with a legal history, and is open about what it is not told."""

from typing import Any

import msgspec
import pytest

from headwater.conversation import (
    Assistant,
    Extras,
    Image,
    Message,
    Opaque,
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
from headwater.dialects import carry, chat
from headwater.dialects.history import FAILED_ORPHAN, NOTHING_SAID, ORPHAN, UNKNOWN_OUTCOME
from headwater.testing import check_chat

HI = User((Text("Hi"),))
HI_SENT = {"role": "user", "content": "Hi"}
CALL = ToolCall("call_a", "look", "{}")
TARGET = Target(model="gpt", origin="here")


def render(*said: Message, **fields: Any) -> list[dict[str, Any]]:
    body = msgspec.json.decode(chat.render(Request(said, **fields), TARGET))
    assert check_chat(body) == []
    sent: list[dict[str, Any]] = body["messages"]
    return sent


def result(id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def test_a_missing_result_is_said_to_be_unknown() -> None:
    assert render(HI, Assistant((CALL,)), HI)[2:] == [result("call_a", UNKNOWN_OUTCOME), HI_SENT]


def test_results_come_right_after_their_calls_in_their_order() -> None:
    two = Assistant((CALL, ToolCall("call_b", "look", "{}")))
    late = (ToolOutput("call_b", (Text("8"),)), HI, ToolOutput("call_a", (Text("7"),)))
    assert render(two, System((Text("x"),)), *late)[1:] == [
        result("call_a", "7"),
        result("call_b", "8"),
        {"role": "system", "content": "x"},
        HI_SENT,
    ]


@pytest.mark.parametrize(("failed", "words"), [(False, ORPHAN), (True, FAILED_ORPHAN)])
def test_a_result_without_its_call_becomes_text(failed: bool, words: str) -> None:
    (sent,) = render(ToolOutput("call_x", (Text("7"),), failed))
    assert sent == {"role": "user", "content": [{"type": "text", "text": words}, {"type": "text", "text": "7"}]}


def test_a_tools_images_follow_its_results() -> None:
    image = Image("https://x.example/a.png")
    two = Assistant((CALL, ToolCall("call_b", "look", "{}")))
    sent = render(two, ToolOutput("call_a", (image,)), ToolOutput("call_b", (Text("8"), image)), HI)
    assert sent[1:3] == [result("call_a", ""), result("call_b", "8")]
    assert [part["type"] for part in sent[3]["content"]] == ["text", "image_url", "image_url"]
    assert sent[4] == HI_SENT
    assert [part["type"] for part in render(Assistant((CALL,)), ToolOutput("call_a", (image,)))[2]["content"]] == [
        "text",
        "image_url",
    ]


def test_an_empty_message_is_left_out() -> None:
    empty: list[Message] = [User(()), User((Text(""),)), System((Text(""),)), Assistant((Reasoning("Hm."),))]
    assert render(*empty, HI) == [HI_SENT]
    assert render(*empty) == [{"role": "user", "content": NOTHING_SAID}]


@pytest.mark.parametrize("origin", [None, "elsewhere"])
def test_ids_of_another_provider_fit(origin: str | None) -> None:
    long = "call_" + "x" * 60
    said = (Assistant((ToolCall(long, "look", "{}"),), origin=origin), ToolOutput(long, (Text("7"),)))
    sent = render(*said)
    assert sent[0]["tool_calls"][0]["id"] == sent[1]["tool_call_id"] == long[:32]


def test_ids_of_its_own_go_back_as_they_are() -> None:
    """Some servers keep more in an id than a name."""
    long = "call_" + "x" * 60
    request = Request((Assistant((ToolCall(long, "look", "{}"),), origin="here"),))
    sent = msgspec.json.decode(chat.render(request, TARGET))["messages"]
    assert sent[0]["tool_calls"][0]["id"] == sent[1]["tool_call_id"] == long


def test_a_call_has_a_plain_name_unless_the_tool_is_declared_by_another() -> None:
    called = Assistant((ToolCall("a", "files.read", "{}"),))
    assert render(called)[0]["tool_calls"][0]["function"]["name"] == "files_read"
    request = Request((called,), tools=(Tool("files.read"),))
    sent = msgspec.json.decode(chat.render(request, TARGET))["messages"]
    assert sent[0]["tool_calls"][0]["function"]["name"] == "files.read"


def test_earlier_reasoning_goes_where_the_upstream_wants_it() -> None:
    request = Request((Assistant((Reasoning("Hm."), Text("So."))),))
    target = Target(model="m", reasoning_field="reasoning_content")
    (sent,) = msgspec.json.decode(chat.render(request, target))["messages"]
    assert sent == {"role": "assistant", "content": "So.", "reasoning_content": "Hm."}


def test_names_are_spelt_as_the_provider_takes_them() -> None:
    assert render(User((Text("Hi"),), "Ada Lovelace"))[0]["name"] == "Ada_Lovelace"
    assert render(Assistant((Text("Hi"),), "Ada <x>"))[0]["name"] == "Ada_x_"


def test_another_dialects_items_stay_out() -> None:
    assert render(User((Text("Hi"), Opaque("messages", {"type": "document"})))) == [HI_SENT]


def test_what_is_not_carried_is_noted() -> None:
    request = Request(
        (
            User((Text("Hi", cache="5m"), Opaque("messages", {"type": "document"}))),
            Assistant((Opaque("messages", {"type": "server_tool_use"}), Reasoning("Hm."))),
        ),
        tools=(Tool("look", extras=Extras("messages", {"defer_loading": True})),),
        extras=Extras("messages", {"top_k": 5}),
    )
    found = carry.notes(request, TARGET, "chat")
    assert [(note.field, note.refuse) for note in found] == [
        ("top_k", False),
        ("defer_loading", False),
        ("cache", False),
        ("messages.content.document", True),
        ("messages.content.server_tool_use", False),
        ("messages.reasoning", False),
    ]
    assert carry.notes(Request((HI,), extras=Extras("chat", {"top_k": 5})), TARGET, "chat") == []
    assert [note.field for note in carry.notes(Request((HI,), tools=(Tool("look", cache="1h"),)), TARGET, "chat")] == [
        "cache"
    ]


@pytest.mark.parametrize(
    ("part", "field"),
    [
        (Opaque("chat", {"type": "images", "images": [{"type": "image_url"}]}), "messages.content.images"),
        (Reasoning("", "chat", {"reasoning_details": [{"data": "x"}]}), "messages.content.reasoning_details"),
    ],
)
def test_an_answer_without_text_and_calls_is_left_out_and_noted(part: Opaque | Reasoning, field: str) -> None:
    said = (HI, Assistant((part,), origin="here"), HI)
    assert render(*said) == [HI_SENT, HI_SENT]
    assert [note.field for note in carry.notes(Request(said), TARGET, "chat")] == [field]
