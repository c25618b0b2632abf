"""A Responses request: what it comes to in our own form, and everything that is refused, by name."""

from typing import Any

import pytest

from headwater.conversation import (
    Assistant,
    Image,
    Opaque,
    Reasoning,
    System,
    Text,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.errors import CallerError
from tests.dialects.responses_parsed import messages, parse


def test_a_string_is_a_users_message() -> None:
    assert parse().request.messages == (User((Text("Hi"),)),)


def test_instructions_come_first() -> None:
    assert parse(instructions="Be brief.").request.messages == (System((Text("Be brief."),)), User((Text("Hi"),)))
    assert parse(instructions="").request.messages == (User((Text("Hi"),)),)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_and_developer_are_one(role: str) -> None:
    item = {"role": role, "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}
    assert messages(item, {"role": role, "content": "c"}) == (System((Text("a"), Text("b"))), System((Text("c"),)))


def test_a_message_may_leave_out_its_type() -> None:
    assert messages({"role": "user", "content": "a"}) == messages({"type": "message", "role": "user", "content": "a"})


def test_images_keep_their_detail() -> None:
    item = {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
            {"type": "input_image", "image_url": "https://example.org/a.png"},
        ],
    }
    parts = (Text("What is this?"), Image("data:image/png;base64,AA==", "low"), Image("https://example.org/a.png"))
    assert messages(item) == (User(parts),)


def test_what_the_model_said_in_one_go_is_one_message() -> None:
    """Also as our own answers and OpenAI's have it: with ids, statuses, annotations."""
    text = {"type": "output_text", "text": "Let me look.", "annotations": [], "logprobs": []}
    assert messages(
        {"role": "user", "content": "Where?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA", "status": "completed"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "look", "arguments": "{}"},
        {"type": "function_call", "call_id": "call_b", "name": "look", "arguments": "{}", "status": "completed"},
        {"type": "function_call_output", "call_id": "call_a", "output": "Oslo"},
        {
            "type": "function_call_output",
            "call_id": "call_b",
            "output": [
                {"type": "input_text", "text": "A map:"},
                {"type": "input_image", "image_url": "https://example.org/map.png"},
            ],
        },
        {"role": "assistant", "content": "In Oslo."},
    ) == (
        User((Text("Where?"),)),
        Assistant(
            (
                Reasoning("", "responses", {"id": "rs_1", "summary": [], "encrypted_content": "gAAA"}),
                Text("Let me look."),
                ToolCall("call_a", "look", "{}"),
                ToolCall("call_b", "look", "{}"),
            )
        ),
        ToolOutput("call_a", (Text("Oslo"),)),
        ToolOutput("call_b", (Text("A map:"), Image("https://example.org/map.png"))),
        Assistant((Text("In Oslo."),)),
    )


def test_a_refusal_is_told_from_text_and_empty_texts_are_left_out() -> None:
    content = [{"type": "output_text", "text": ""}, {"type": "refusal", "refusal": "No."}]
    assert messages({"role": "assistant", "content": content}) == (Assistant((Text("No.", refusal=True),)),)
    assert messages({"role": "assistant", "content": "", "phase": "commentary"}, {"role": "user", "content": "a"}) == (
        User((Text("a"),)),
    )


def test_a_phase_and_citations_are_noted_after_their_message() -> None:
    cite = {"type": "url_citation", "url": "https://example.org", "title": "E", "start_index": 0, "end_index": 1}
    content = [{"type": "output_text", "text": "Found.", "annotations": [cite]}]
    assert messages(
        {"role": "assistant", "content": "Looking.", "phase": "commentary"},
        {"role": "assistant", "content": content},
    ) == (
        Assistant((Text("Looking."), Opaque("responses", {"type": "message", "phase": "commentary"}))),
        Assistant((Text("Found."), Opaque("responses", {"type": "message", "annotations": [cite]}))),
    )


def test_two_messages_of_the_model_stay_two() -> None:
    assert messages({"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}) == (
        Assistant((Text("a"),)),
        Assistant((Text("b"),)),
    )


def test_reasoning_without_a_seal_is_only_text() -> None:
    summary = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
    content = [{"type": "reasoning_text", "text": "c"}]
    assert messages({"type": "reasoning", "summary": summary, "content": content}) == (
        Assistant((Reasoning("a\n\nb\n\nc"),)),
    )


def test_a_seal_is_kept_without_the_text_that_it_comes_with() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}]}
    state = {"id": "rs_1", "encrypted_content": "gAAA", "text_is": "summary"}
    assert messages(item | {"encrypted_content": "gAAA"}) == (Assistant((Reasoning("a", "responses", state),)),)


def test_a_calls_extras_are_kept() -> None:
    call = {"type": "function_call", "call_id": "call_a", "name": "a", "arguments": "", "extra_content": {"google": {}}}
    assert messages(call) == (Assistant((ToolCall("call_a", "a", "", {"extra_content": {"google": {}}}),)),)


def test_an_item_that_we_dont_know_travels_unread() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert messages(search) == (Assistant((Opaque("responses", search),)),)
    assert messages(search, {"role": "assistant", "content": "a"}) == (
        Assistant((Opaque("responses", search), Text("a"))),
    )


IMAGE = {"type": "input_image"}


@pytest.mark.parametrize(
    ("item", "param", "word"),
    [
        ({"type": "item_reference", "id": "msg_1"}, "input[1]", "item_reference"),
        ({"id": "msg_1"}, "input[1]", "item_reference"),
        ({"type": None, "id": "msg_1"}, "input[1]", "item_reference"),
        ({"type": 7}, "input[1].type", "str"),
        ({"role": "robot", "content": "a"}, "input[1].role", "robot"),
        ({"type": "message", "content": "a"}, "input[1]", "role"),
        ({"role": "user"}, "input[1]", "content"),
        ({"role": "user", "content": "a", "name": "b"}, "input[1].name", "name"),
        (
            {"role": "user", "content": [{"type": "output_text", "text": "a"}]},
            "input[1].content[0].type",
            "output_text",
        ),
        (
            {"role": "user", "content": [{"type": "input_file", "file_id": "f"}]},
            "input[1].content[0]",
            "text and images",
        ),
        ({"role": "user", "content": [{**IMAGE, "file_id": "f"}]}, "input[1].content[0]", "image_url"),
        ({"role": "user", "content": [{**IMAGE, "image_url": "file:///a"}]}, "input[1].content[0].image_url", "match"),
        ({"role": "system", "content": [{**IMAGE, "image_url": "data:image/a"}]}, "input[1].content[0].type", "image"),
        (
            {"role": "assistant", "content": [{"type": "input_text", "text": "a"}]},
            "input[1].content[0].type",
            "input_text",
        ),
        ({"role": "assistant", "content": "a", "phase": "x"}, "input[1].phase", "x"),
        ({"type": "function_call", "name": "a", "arguments": "{}"}, "input[1]", "call_id"),
        ({"type": "function_call", "call_id": "", "name": "a", "arguments": "{}"}, "input[1].call_id", "length"),
        ({"type": "function_call", "call_id": "c", "name": "a", "arguments": {}}, "input[1].arguments", "str"),
        ({"type": "function_call_output", "call_id": "c"}, "input[1]", "output"),
        ({"type": "function_call_output", "output": "a"}, "input[1]", "call_id"),
        (
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file"}]},
            "input[1].output[0]",
            "text and images",
        ),
        ({"type": "reasoning"}, "input[1]", "summary"),
        ({"type": "reasoning", "summary": [{"type": "text", "text": "a"}]}, "input[1].summary[0].type", "text"),
        ({"type": "reasoning", "summary": [], "encrypted": "x"}, "input[1].encrypted", "encrypted_content"),
    ],
)
def test_an_item_that_cant_be_taken_is_refused_by_its_place(item: dict[str, Any], param: str, word: str) -> None:
    with pytest.raises(CallerError) as raised:
        messages({"role": "user", "content": "Hi"}, item)
    assert raised.value.param == param
    assert word in raised.value.message
    assert raised.value.status == 400


def test_what_the_parts_of_a_message_refer_to_is_found_in_the_whole_text() -> None:
    def part(text: str, **places: int) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [{"type": "url_citation", **places}]}

    content = [part("See here. ", start_index=4, end_index=8), part("And there.", start_index=4, end_index=9), part("")]
    (said,) = messages({"role": "assistant", "content": content})
    assert said.parts[2:] == (
        Opaque(
            "responses",
            {
                "type": "message",
                "annotations": [
                    {"type": "url_citation", "start_index": 4, "end_index": 8},
                    {"type": "url_citation", "start_index": 14, "end_index": 19},
                    {"type": "url_citation"},
                ],
            },
        ),
    )
