"""What a Messages upstream is told of thoughts, of its own items and of what it is to cache."""

from typing import Any

import pytest

from headwater.conversation import (
    Assistant,
    Extras,
    Message,
    NamedTool,
    Opaque,
    Parameters,
    Reasoning,
    System,
    Target,
    Text,
    Tool,
    ToolOutput,
    User,
)
from tests.dialects.messages_rendered import (
    BUDGET,
    CALL,
    CALL_BLOCK,
    HI,
    LOOK,
    MARK,
    RESULT,
    SIGNED,
    SIGNED_BLOCK,
    TARGET,
    notes,
    render,
    text,
    turns,
)

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
