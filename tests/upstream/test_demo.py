"""The demo models: what a newcomer sees first."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.conversation import Assistant, Image, JsonSchema, NamedTool, Request, Target, Text, ToolOutput, User
from headwater.dialects.chat.render import render_request
from headwater.events import Completed, Incomplete, ReasoningDelta, TextDelta, Usage
from headwater.upstream import demo
from headwater.upstream.demo.steps import Cut, End, Hang, Pause, Send
from tests.conversations import requests
from tests.upstream.demo_turns import FISH, WEATHER, ask, turn_of

SOUND = [model for model in demo.MODELS if model != "flaky"]
TALKATIVE = ["echo", "story", "think"]


# ------------------------------------------------------------------------ every model


@pytest.mark.parametrize("model", SOUND)
def test_an_answer_is_written_as_openai_writes_it(model: str) -> None:
    turn = ask(model, "Tell me of the Rhine")
    frames = [frame.removeprefix(b"data: ") for frame in turn.bytes.split(b"\n\n") if frame]
    chunks = [msgspec.json.decode(frame) for frame in frames[:-1]]
    assert frames[-1] == b"[DONE]"
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[-2:-1]] == ["stop"]
    assert chunks[-1]["choices"] == []
    counts = chunks[-1]["usage"]
    assert counts["total_tokens"] == counts["prompt_tokens"] + counts["completion_tokens"] > 0
    assert {chunk["id"] for chunk in chunks} == {chunks[0]["id"]}
    assert turn.outcome == Completed("stop")
    assert isinstance(turn.steps[-1], End)


@pytest.mark.parametrize("model", SOUND)
def test_its_pace_is_a_readers(model: str) -> None:
    turn = ask(model, "Tell me of the Rhine, and take as many words for it as you like, since I have the time")
    tokens = sum(isinstance(event, TextDelta | ReasoningDelta) for event in turn.events)
    assert 25 < tokens / turn.seconds < 65


@pytest.mark.parametrize("model", SOUND)
def test_the_same_request_gets_the_same_answer(model: str) -> None:
    assert ask(model, "Tell me of the Rhine").steps == ask(model, "Tell me of the Rhine").steps


@pytest.mark.parametrize("model", SOUND)
def test_the_name_may_be_the_whole_one(model: str) -> None:
    assert ask(f"demo/{model}", "Hello").message == ask(model, "Hello").message


@pytest.mark.parametrize("model", SOUND)
@pytest.mark.parametrize("limit", [1, 3, 12])
def test_a_limit_of_tokens_is_held_and_told(model: str, limit: int) -> None:
    prompt = "Tell me of the Rhine, its castles, its boats, its bridges and of all the rest of it"
    turn = ask(model, prompt, max_tokens=limit)
    assert turn.outcome == Incomplete("length")
    assert turn.usage.output_tokens == limit
    whole = ask(model, prompt)
    assert whole.message.reasoning.startswith(turn.message.reasoning)
    assert whole.message.text.startswith(turn.message.text)


@pytest.mark.parametrize("model", SOUND)
def test_a_limit_that_is_not_reached_changes_nothing(model: str) -> None:
    whole = ask(model, "Hello")
    assert ask(model, "Hello", max_tokens=whole.usage.output_tokens).steps == whole.steps


@pytest.mark.parametrize("model", SOUND)
def test_a_stop_sequence_ends_the_text_before_it(model: str) -> None:
    whole = ask(model, "Tell me of the Rhine, please").message.text
    turn = ask(model, "Tell me of the Rhine, please", stop=(whole[30:36], "never said", whole[18:24]))
    assert turn.message.text == whole[: whole.index(whole[18:24])]
    assert turn.outcome == Completed("stop")


@pytest.mark.parametrize("model", TALKATIVE)
@pytest.mark.parametrize("at", [1, 7, 15])
def test_an_answer_that_was_cut_is_gone_on_with_at_that_very_character(model: str, at: int) -> None:
    whole = ask(model, "Tell me of the Rhine").message.text
    rest = ask(model, "Tell me of the Rhine", begun=whole[:at])
    assert whole[:at] + rest.message.text == whole
    assert rest.message.reasoning == ""
    assert rest.outcome == Completed("stop")


@pytest.mark.parametrize("begun", ["Something else", "Hello"])
def test_where_nothing_is_left_to_say_it_says_so(begun: str) -> None:
    turn = ask("echo", "Hello", begun=begun)
    assert turn.message.text == " That is all there is to say."
    assert turn.outcome == Completed("stop")


@pytest.mark.parametrize("model", SOUND)
def test_usage_counts_what_was_sent(model: str) -> None:
    turn = ask(model, "one two three", system="four five")
    tokens = sum(isinstance(event, TextDelta | ReasoningDelta) for event in turn.events)
    thoughts = sum(isinstance(event, ReasoningDelta) for event in turn.events)
    assert turn.usage == Usage(5, tokens, None, thoughts, "provider")


def test_usage_is_told_only_where_it_is_asked_for() -> None:
    body = render_request(Request((User((Text("Hi"),)),)), Target(model="echo", omit=frozenset({"stream_options"})))
    assert not any(b"usage" in step.data for step in demo.answer(body) if isinstance(step, Send))


@given(requests(), st.sampled_from(list(demo.MODELS)))
def test_any_conversation_gets_an_answer_of_whole_frames_and_one_ending(request: Request, model: str) -> None:
    turn = turn_of(request, model)
    assert isinstance(turn.steps[-1], End | Cut | Hang)
    assert not any(isinstance(step, End | Cut | Hang) for step in turn.steps[:-1])
    assert all(step.seconds > 0 for step in turn.steps if isinstance(step, Pause))
    assert turn.bytes.endswith(b"\n\n")
    if model != "flaky":
        assert type(turn.outcome) in (Completed, Incomplete)


@pytest.mark.parametrize("model", TALKATIVE)
def test_json_is_given_where_json_is_asked_for(model: str) -> None:
    schema = {"type": "object", "properties": {"river": {"type": "string"}, "km": {"type": "integer"}}}
    form = JsonSchema("river", {**schema, "required": ["river", "km"]})
    turn = ask(model, "The Rhine is 1230 km long, the “Rhine”", output=form)
    assert msgspec.json.decode(turn.message.text) == {"river": "Rhine", "km": 1230}
    assert msgspec.json.decode(ask(model, "Anything", output="json_object").message.text) == {}


# ------------------------------------------------------------------------------- echo


def test_echo_says_what_was_said() -> None:
    text = "  Grüße 🌍\n\n```py\nx = 1\n```\nдлинноесловобезпробелов <think>no</think> "
    assert ask("echo", text).message.text == text


def test_echo_of_nothing_says_so() -> None:
    assert "nothing" in ask("echo", "   ").message.text


def test_echo_counts_images() -> None:
    image = Image("https://example.com/a.png")
    one = turn_of(Request((User((Text("Look"), image)),)), "echo").message.text
    two = turn_of(Request((User((image, image)),)), "echo").message.text
    assert one == "Look\n\n(And 1 image, which I can't draw.)"
    assert "2 images" in two


# ------------------------------------------------------------------------------ story


def test_a_story_shows_what_markdown_can_do() -> None:
    text = ask("story", "Tell me a story").message.text
    for pattern in [r"^# ", r"^## ", r"^\| .* \|$", r"^```\w+$", r"^(- |1\. )", r"^> ", r"\*\*\w", r"^---$"]:
        assert re.search(pattern, text, re.MULTILINE), pattern
    assert text.count("```") % 2 == 0


def test_a_story_is_long_enough_to_be_stopped() -> None:
    assert ask("story", "Tell me a story").seconds > 12


def test_two_prompts_get_two_stories() -> None:
    titles = {ask("story", f"Tell me story {n}").message.text.splitlines()[0] for n in range(20)}
    assert len(titles) > 8


def test_a_seed_makes_another_story() -> None:
    assert ask("story", "A story", seed=1).message != ask("story", "A story", seed=2).message


@given(st.text(max_size=20), st.text(max_size=200), st.integers())
def test_a_story_can_be_told_of_anything(prompt: str, system: str, seed: int) -> None:
    turn = ask("story", prompt, system=system, seed=seed)
    assert turn.outcome == Completed("stop")
    assert "{" not in re.sub(r"```.*?```", "", turn.message.text.replace(prompt, ""), flags=re.DOTALL) or "{" in system


def test_a_story_shows_that_the_system_prompt_came_through() -> None:
    text = ask("story", "Hello", system="You are a pirate. " * 20).message.text
    assert "You are a pirate." in text
    assert "…" in text


# ------------------------------------------------------------------------------ think


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("What is 17 * 23?", "391"),
        ("17 × 20", "340"),
        ("7 times 8", "56"),
        ("12 + 30 please", "42"),
        ("from 100 minus 1", "99"),
        ("-3 - -5", "2"),
    ],
)
def test_think_can_do_sums(prompt: str, answer: str) -> None:
    turn = ask("think", prompt)
    assert turn.message.text.startswith(f"**{answer}**\n")
    assert answer in turn.message.reasoning


@pytest.mark.parametrize("prompt", ["On 2026-03-21 it rained", "1.5 + 2 is no sum of mine"])
def test_think_sees_no_sums_where_there_are_none(prompt: str) -> None:
    assert ask("think", prompt).message.text.startswith("Your message has")


def test_think_reasons_before_it_answers() -> None:
    kinds = [type(event) for event in ask("think", "Why is the sky blue?").events]
    assert kinds.index(TextDelta) > max(n for n, kind in enumerate(kinds) if kind is ReasoningDelta)


def test_what_think_says_of_the_words_is_true() -> None:
    turn = ask("think", "Why is the sky so blue?")
    assert "**6 words** and **17 letters**; the longest word is “blue”" in turn.message.text
    assert "a question" in turn.message.reasoning
    assert "**1 word**" in ask("think", "Hello").message.text
    assert "not a word" in ask("think", "?!").message.text


def test_an_effort_is_how_much_it_reasons() -> None:
    thoughts = [
        len(ask("think", "Why?", reasoning_effort=effort).message.reasoning) for effort in ("none", "low", "high")
    ]
    assert thoughts[0] == 0 < thoughts[1] < thoughts[2]


# ------------------------------------------------------------------------------ tools


def test_tools_calls_the_tool_that_fits() -> None:
    for prompt, name, arguments in [
        ("What is the weather in Paris", "get_weather", {"place": "Paris"}),
        ("Count the fish in the “Rhine”", "count_fish", {"river": "Rhine"}),
    ]:
        turn = ask("tools", prompt, tools=(FISH, WEATHER))
        assert turn.outcome == Completed("tool_calls")
        assert turn.message.text == f"Let me ask `{name}`."
        (call,) = turn.message.tool_calls
        assert (call.name, msgspec.json.decode(call.arguments)) == (name, arguments)


def test_two_tools_that_fit_are_called_in_parallel() -> None:
    turn = ask("tools", "Get the weather in Paris and count the fish in Rome", tools=(WEATHER, FISH))
    assert [call.name for call in turn.message.tool_calls] == ["count_fish", "get_weather"]
    assert len({call.id for call in turn.message.tool_calls}) == 2
    assert {int(index) for index in re.findall(rb'"tool_calls":\[{"index":(\d)', turn.bytes)} == {0, 1}
    assert turn.outcome == Completed("tool_calls")


def test_one_tool_may_be_called_twice() -> None:
    turn = ask("tools", "The weather, both in Paris and in Rome", tools=(WEATHER,))
    assert [msgspec.json.decode(call.arguments) for call in turn.message.tool_calls] == [
        {"place": "Paris"},
        {"place": "Rome"},
    ]
    assert "twice" in turn.message.text


def test_calls_come_one_at_a_time_where_that_was_asked_for() -> None:
    turn = ask("tools", "Both in Paris and in Rome", tools=(WEATHER, FISH), parallel_tool_calls=False)
    assert len(turn.message.tool_calls) == 1


def test_a_choice_of_tool_is_obeyed() -> None:
    named = ask("tools", "The weather in Paris", tools=(WEATHER, FISH), tool_choice=NamedTool("count_fish"))
    assert [call.name for call in named.message.tool_calls] == ["count_fish"]
    none = ask("tools", "The weather in Paris", tools=(WEATHER,), tool_choice="none")
    assert none.message.tool_calls == ()
    assert none.outcome == Completed("stop")


def test_without_tools_it_says_how_to_offer_one() -> None:
    assert '"type": "function"' in ask("tools", "The weather in Paris").message.text


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("Rain,\nthen sun", "> Rain,\n> then sun"),
        ('{"c": 21}', '```json\n{"c": 21}\n```'),
        ("", "> *(nothing at all)*"),
        ("x" * 3000, "> " + "x" * 2000 + "…"),
    ],
)
def test_it_answers_with_what_the_tool_said(result: str, shown: str) -> None:
    asked = User((Text("The weather in Paris"),))
    called = ask("tools", "The weather in Paris", tools=(WEATHER,)).message
    (call,) = called.tool_calls
    turn = turn_of(Request((asked, called, ToolOutput(call.id, (Text(result),))), tools=(WEATHER,)), "tools")
    assert turn.message.text.startswith(f"`get_weather` says:\n\n{shown}\n")
    assert turn.outcome == Completed("stop")


def test_all_results_are_told_in_order() -> None:
    asked = User((Text("The weather, both in Paris and in Rome"),))
    called = ask("tools", "The weather, both in Paris and in Rome", tools=(WEATHER,)).message
    outputs = [ToolOutput(call.id, (Text(f"Result {n}"),)) for n, call in enumerate(called.tool_calls)]
    text = turn_of(Request((asked, called, *outputs), tools=(WEATHER,)), "tools").message.text
    assert text.index("Result 0") < text.index("Result 1")


def test_the_next_question_is_a_new_one() -> None:
    said = Assistant((Text("It rains."),))
    turn = ask("tools", "And the fish in Rome?", User((Text("The weather?"),)), said, tools=(WEATHER, FISH))
    assert [call.name for call in turn.message.tool_calls] == ["count_fish"]


def test_an_answer_that_calls_is_gone_on_with_its_calls() -> None:
    turn = ask("tools", "The weather in Paris", begun="Let me ask `get_", tools=(WEATHER,))
    assert turn.message.text == "weather`."
    assert [call.name for call in turn.message.tool_calls] == ["get_weather"]
