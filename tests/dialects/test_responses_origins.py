"""What of a history goes back to the Responses upstream that it came from, and that it is legal whatever it was."""

from typing import Any

import msgspec
import openresponses_types.types as open_responses
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.checks.responses import check_responses
from headwater.conversation import (
    Assistant,
    Image,
    Message,
    Opaque,
    Reasoning,
    Request,
    System,
    Target,
    Text,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects import carry, responses
from headwater.dialects.responses.reasoning import rebuilt, state_of, text_of
from tests.dialects.responses_rendered import HI, body, call, items

# ------------------------------------------------------------- whose it is


SEALED = Reasoning("hm", "responses", {"id": "rs_1", "encrypted_content": "gAAA", "text_is": "summary"})


def test_an_upstreams_own_seal_goes_back_to_it_under_its_id_before_what_it_led_to() -> None:
    for led_to in (Text("So."), call(), Opaque("responses", {"type": "web_search_call"})):
        first, second = items(Assistant((SEALED, led_to), origin="up"))[:2]
        assert first == {
            "type": "reasoning",
            "id": "rs_1",
            "encrypted_content": "gAAA",
            "summary": [{"type": "summary_text", "text": "hm"}],
        }
        assert second["type"] in ("message", "function_call", "web_search_call")


def test_a_seal_that_a_client_brings_has_lost_its_id() -> None:
    """The id is of our stream: the upstream that made the seal knows another."""
    assert "id" not in items(Assistant((SEALED, Text("So."))))[0]


@pytest.mark.parametrize(
    "message",
    [
        Assistant((SEALED, Text("So.")), origin="another"),
        Assistant((Reasoning("hm"), Text("So."))),
        Assistant((Reasoning("hm", "messages", {"signature": "c2ln"}), Text("So."))),
        Assistant((Text("So."), SEALED), origin="up"),
        Assistant((Text("So."), SEALED, Text("")), origin="up"),
    ],
    ids=["another upstream's", "no seal", "another dialect's", "leading nowhere", "leading to nothing"],
)
def test_reasoning_is_left_out_if_it_is(message: Assistant) -> None:
    assert items(message) == [{"type": "message", "role": "assistant", "content": "So."}]


def test_a_partial_that_is_only_reasoning_is_left_out() -> None:
    assert items(HI, Assistant((SEALED,), origin="up"), HI) == items(HI, HI)


def test_an_opaque_item_goes_back_to_its_own_dialect_and_upstream_only() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert items(Assistant((Opaque("responses", search),), origin="up")) == [search]
    assert items(Assistant((Opaque("responses", search),))) == [search]
    assert search not in items(Assistant((Opaque("responses", search),), origin="another"))
    assert search not in items(Assistant((Opaque("messages", search),), origin="up"))


def test_how_an_answer_ended_is_no_item() -> None:
    ended = Opaque("responses", {"type": "headwater.stop", "service_tier": "default"})
    said = {"type": "message", "role": "assistant", "content": "So."}
    assert items(Assistant((Text("So."), ended), origin="up")) == items(Assistant((Text("So."), ended))) == [said]


def test_an_output_that_an_upstream_gave_itself_is_not_sent_twice() -> None:
    output = Opaque("responses", {"type": "function_call_output", "call_id": "call_a", "output": "x"})
    written = items(Assistant((call(), output), origin="up"), ToolOutput("call_a", (Text("y"),)))
    assert [item.get("output") for item in written] == [None, "y"]


def test_an_item_without_a_type_is_no_call() -> None:
    assert items(Assistant((Opaque("responses", {"id": "x"}),))) == [{"id": "x"}]


def test_a_messages_phase_goes_back_with_it() -> None:
    noted = {"type": "message", "phase": "commentary", "annotations": [{"type": "url_citation"}]}
    said = (Text("Looking."), Opaque("responses", noted), Text("Found."), Opaque("messages", noted))
    assert [item.get("phase") for item in items(Assistant(said, origin="up"))] == ["commentary", None]
    assert "phase" not in items(Assistant(said, origin="another"))[0]
    assert "annotations" not in items(Assistant(said))[0]


def test_a_calls_extras_go_back_to_their_upstream_and_the_dialects_own_to_any() -> None:
    extra = {"namespace": "crm", "caller": {}, "async": True, "extra_content": {"google": {}}, "call_id": "forged"}

    def sent(origin: str | None) -> set[str]:
        return items(Assistant((call(extra=extra),), origin=origin))[0].keys() & extra.keys()

    assert sent("up") == extra.keys()
    assert sent(None) == sent("another") == extra.keys() - {"extra_content"}
    assert items(Assistant((call(extra=extra),), origin="up"))[0]["call_id"] == "call_a"


def test_an_upstream_without_a_name_owns_nothing() -> None:
    [item, _] = items(Assistant((SEALED, Text("So."))), origin=None)
    assert "id" not in item


# ---------------------------------------------------------------- properties

words = st.sampled_from(["a", "b", "a\n\nb", ""])


@given(
    st.lists(words, max_size=2),
    st.none() | st.lists(words, max_size=2),
    st.sampled_from(["a", "b", "a\n\nb", "a\n\na", ""]),
)
def test_a_reasoning_item_is_rebuilt_from_its_text_and_the_rest(
    summary: list[str], content: list[str] | None, text: str
) -> None:
    """Whatever text was delivered for it, also one that differs."""
    item: dict[str, Any] = {
        "type": "reasoning",
        "id": "rs_1",
        "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": part} for part in summary],
    }
    if content is not None:
        item["content"] = [{"type": "reasoning_text", "text": part} for part in content]
    for delivered in (text, text_of(item)):
        assert rebuilt(delivered, state_of({**item, "status": "completed"}, delivered)) == item
    if [*summary, *(content or ())] == ["a"]:
        assert '"a"' not in msgspec.json.encode(state_of(item, "a")).decode()


ids = st.sampled_from(["a", "b", "c", "x" * 80])
texts = st.builds(Text, st.sampled_from(["", "hi", " "]))
images = st.just(Image("https://example.org/a.png"))
parts = (
    texts
    | st.builds(Text, st.just("no"), st.booleans())
    | st.builds(ToolCall, ids, st.just("look"), st.sampled_from(["{}", '{"x":']))
    | st.sampled_from(
        [SEALED, Reasoning("hm"), Opaque("messages", {"type": "x"}), Opaque("responses", {"type": "message"})]
    )
)
histories = st.lists(
    st.builds(System, st.lists(texts, max_size=2).map(tuple))
    | st.builds(User, st.lists(texts | images, max_size=2).map(tuple))
    | st.builds(Assistant, st.lists(parts, max_size=4).map(tuple), origin=st.sampled_from([None, "up", "another"]))
    | st.builds(ToolOutput, ids, st.lists(texts | images, max_size=2).map(tuple)),
    max_size=8,
)


@given(histories)
def test_whatever_the_history_the_input_is_legal(history: list[Message]) -> None:
    rendered = body(Request(tuple(history)), origin="up")
    open_responses.CreateResponseBody.model_validate(rendered)
    called, answered = list[str](), list[str]()
    previous: dict[str, Any] = {}
    for item in rendered["input"]:
        if previous.get("type") == "reasoning":
            assert item["type"] in ("reasoning", "function_call") or item.get("role") == "assistant"
        match item["type"]:
            case "message":
                assert item["content"]
            case "function_call":
                called.append(item["call_id"])
            case "function_call_output":
                assert item["call_id"] in called, "after its call"
                answered.append(item["call_id"])
            case other:
                assert other == "reasoning"
                assert item["encrypted_content"]
        previous = item
    assert len(set(called)) == len(called)
    assert sorted(called) == sorted(answered)
    assert previous.get("type") not in ("reasoning", "function_call")


@given(histories)
def test_an_input_that_is_parsed_and_rendered_again_stays_as_it_is(history: list[Message]) -> None:
    rendered = body(Request((System((Text("Be brief."),)), HI, *history)), origin="up")
    sent = {name: rendered[name] for name in ("input", "instructions")}
    again = body(responses.parse(msgspec.json.encode(sent)).request, origin="up")
    for item in rendered["input"]:
        if item["type"] == "reasoning":
            # An id that a client brings may be of our own making.
            item.pop("id", None)
    assert {name: again[name] for name in sent} == sent


def test_another_dialects_remark_does_not_tear_a_text() -> None:
    cites = Opaque("messages", {"type": "headwater.citations", "citations": []})
    beside = Opaque("chat", {"type": "message", "annotations": [{}]})
    (sent,) = items(Assistant((Text("One "), cites, Text("text"), beside, Text("."))))
    assert sent["content"] == "One text."
    # Its own says that another message begins.
    two = items(Assistant((Text("One."), Opaque("responses", {"type": "message"}), Text("Two."))))
    assert [item["content"] for item in two] == ["One.", "Two."]


def test_what_a_text_refers_to_goes_back_with_it() -> None:
    note = Opaque("responses", {"type": "message", "annotations": [{"type": "url_citation"}]})
    (sent,) = items(Assistant((Text("No", refusal=True), Text("See "), Text("here."), note)))
    assert sent["content"] == [
        {"type": "refusal", "refusal": "No"},
        {"type": "output_text", "text": "See here.", "annotations": [{"type": "url_citation"}]},
    ]
    (sent,) = items(Assistant((Text("See here."), note), origin="another"))
    assert sent["content"] == "See here."


def test_a_call_that_is_no_functions_goes_with_its_output_or_not_at_all() -> None:
    def custom(kind: str, id: str = "call_c") -> Opaque:
        return Opaque("responses", {"type": kind, "call_id": id})

    made, output = custom("custom_tool_call"), custom("custom_tool_call_output")
    assert items(Assistant((made, output))) == [made.data, output.data]
    assert items(HI, Assistant((Text("So."), made)), HI) == items(HI, Assistant((Text("So."),)), HI)
    again = custom("custom_tool_call")
    assert items(Assistant((output, made, again, custom("custom_tool_call_output")))) == [again.data, output.data]
    assert items(Assistant((custom("computer_call"), output, Text("So.")))) == items(Assistant((Text("So."),)))


@pytest.mark.parametrize("kind", ["alone", "before_an_output"])
def test_reasoning_that_led_to_nothing_is_left_out_and_noted(kind: str) -> None:
    call = Opaque("responses", {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "x"})
    output = Opaque("responses", {"type": "custom_tool_call_output", "call_id": "c", "output": "1"})
    thought = Reasoning("", "responses", {"encrypted_content": "x"})
    parts = (call, output, thought) if kind == "alone" else (call, thought, output)
    request = Request((User((Text("Hi"),)), Assistant(parts)))
    body = msgspec.json.decode(responses.render(request, Target(model="m", origin="here")))
    assert check_responses(body) == []
    assert [item["type"] for item in body["input"]] == ["message", "custom_tool_call", "custom_tool_call_output"]
    noted = carry.notes(request, Target(model="m", origin="here"), "responses")
    assert [note.field for note in noted] == ["messages.content.reasoning"]
