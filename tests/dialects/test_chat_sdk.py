"""The real `openai` SDK reads every ending that we write: it accepts success, and raises on all else (C60-C66)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from headwater.accumulate import Accumulator
from headwater.dialects import chat
from headwater.dialects.base import Head
from headwater.events import (
    AttemptStarted,
    Completed,
    Event,
    FailureStyle,
    Incomplete,
    Outcome,
    ProviderState,
    RunEnded,
    TextDelta,
    ToolArgsDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from tests.outcomes import DELIVERED, OUTCOMES, UNSUCCESSFUL, outcome_id
from tests.serving import serving

HEAD = Head("run_01", 1760000000, "fast")
USAGE = Usage(7, 2, 1, 0, "provider")
FINISH = {"turn_limit": "length"}

every_outcome = pytest.mark.parametrize("outcome", OUTCOMES, ids=outcome_id)
every_start = pytest.mark.parametrize("delivered", DELIVERED.values(), ids=DELIVERED)
every_style = pytest.mark.parametrize("style", ["error", "finish_reason"])


@contextmanager
def client(body: bytes, *, status: int = 200, content_type: str = "text/event-stream") -> Iterator[openai.OpenAI]:
    with (
        serving(body, status=status, content_type=content_type) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as sdk,
    ):
        yield sdk


def stream(sdk: openai.OpenAI) -> list[ChatCompletionChunk]:
    return list(sdk.chat.completions.create(model="fast", messages=[{"role": "user", "content": "Hi"}], stream=True))


def ask(sdk: openai.OpenAI) -> ChatCompletion:
    return sdk.chat.completions.create(model="fast", messages=[{"role": "user", "content": "Hi"}])


def encoded(events: list[Event], outcome: Outcome, style: FailureStyle, *, include_usage: bool = False) -> bytes:
    encoder = chat.encoder(HEAD, include_usage=include_usage, style=style)
    return b"".join(encoder.encode(event) for event in [*events, UsageReported(USAGE), RunEnded(outcome)])


@every_outcome
@every_start
@every_style
def test_streamed(outcome: Outcome, delivered: list[Event], style: FailureStyle) -> None:
    with client(encoded(delivered, outcome, style)) as sdk:
        if outcome in UNSUCCESSFUL:
            with pytest.raises(openai.APIError) as raised:
                stream(sdk)
            assert raised.value.message
            assert raised.value.code
            return
        chunks = stream(sdk)
    assert isinstance(outcome, Completed | Incomplete)
    assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == FINISH.get(outcome.reason, outcome.reason)
    text = "".join(event.text for event in delivered if isinstance(event, TextDelta))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text


@every_outcome
@every_start
def test_in_one_piece(outcome: Outcome, delivered: list[Event]) -> None:
    accumulator = Accumulator()
    for event in delivered:
        accumulator.apply(event)
    whole = chat.whole(HEAD, accumulator.message(), USAGE, outcome)
    with client(whole.body, status=whole.status, content_type="application/json") as sdk:
        if outcome in UNSUCCESSFUL:
            with pytest.raises(openai.APIStatusError) as raised:
                ask(sdk)
            assert raised.value.status_code == whole.status
            assert raised.value.code
            return
        answer = ask(sdk)
    assert answer.choices[0].finish_reason == FINISH.get(outcome.reason, outcome.reason)
    assert (answer.choices[0].message.content or "") == accumulator.text()
    assert answer.usage is not None
    assert answer.usage.total_tokens == 9


def test_the_sdks_own_accumulator_agrees_with_ours() -> None:
    events = [*DELIVERED["text"], *DELIVERED["tool_call"]]
    with (
        client(encoded(events, Completed("tool_calls"), "error", include_usage=True)) as sdk,
        sdk.chat.completions.stream(model="fast", messages=[{"role": "user", "content": "Hi"}]) as helper,
    ):
        answer = helper.get_final_completion()
    message = answer.choices[0].message
    assert message.content == "Hello"
    assert message.tool_calls is not None
    assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls] == [
        ("call_a", "look", '{"at":1}')
    ]
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 1


def accumulated(events: list[Event], outcome: Outcome = Completed()) -> dict[str, Any]:
    """The message that the SDK's own accumulator makes of a stream."""
    with (
        client(encoded(events, outcome, "error")) as sdk,
        sdk.chat.completions.stream(model="fast", messages=[{"role": "user", "content": "Hi"}]) as helper,
    ):
        return helper.get_final_completion().choices[0].message.to_dict()


def test_the_sdks_own_accumulator_takes_late_fields_of_a_call() -> None:
    call: list[Event] = [ToolCallStarted(0, "a", "f"), ToolArgsDelta(0, "{}"), ToolCallEnded(0, {"x": "1"})]
    made: Any = accumulated(call, Completed("tool_calls"))["tool_calls"]
    assert [(one["id"], one["x"], one["function"]["arguments"]) for one in made] == [("a", "1", "{}")]


def beside(name: str, entry: dict[str, Any]) -> ProviderState:
    if name == "reasoning_details":
        return ProviderState("chat", {name: [entry]}, of="reasoning")
    return ProviderState("chat", {"type": "message", name: [entry]})


@pytest.mark.parametrize("name", ["annotations", "images", "reasoning_details"])
@pytest.mark.parametrize("index", [{}, {"index": 0}], ids=["unnumbered", "numbered"])
def test_the_sdks_own_accumulator_keeps_what_stands_beside_the_text_apart(name: str, index: dict[str, Any]) -> None:
    first, second = beside(name, {"url": "one", **index}), beside(name, {"url": "two", **index})
    turns: list[Event] = [first, TextDelta("a"), AttemptStarted("up", "m", turn=1), second, TextDelta("b")]
    message = accumulated(turns)
    assert [entry["url"] for entry in message[name]] == ["one", "two"]
    assert message["content"] == "a\n\nb"
