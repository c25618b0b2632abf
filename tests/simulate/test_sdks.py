"""The real SDKs read the simulator's good answers, and what goes wrong looks to them as it does with the provider."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import openai
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from headwater.simulate.script import Answer, Call, Reasoning, Usage
from headwater.testing import Simulator
from tests.simulate.wire import ask

pytestmark = pytest.mark.anyio

USER: Any = [{"role": "user", "content": "Hello there"}]
CHAT_TOOL: Any = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}  # fmt: skip
RESPONSES_TOOL: Any = {"type": "function"} | CHAT_TOOL["function"]
MESSAGES_TOOL: Any = {"name": "weather", "input_schema": CHAT_TOOL["function"]["parameters"]}

EVERYTHING = Answer(
    text="Let me look.",
    reasoning=Reasoning(text="Where is Oslo?"),
    calls=(Call(arguments={"city": "Oslo"}), Call(name="time", arguments={"zone": 1}, id="call_mine")),
    usage=Usage(send="always", input_tokens=20, cached_tokens=5),
)


@pytest.fixture
async def chat(simulator: Simulator) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{simulator.url}/v1", api_key="k", max_retries=0) as sdk:
        yield sdk


@pytest.fixture
async def claude(simulator: Simulator) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=simulator.url, api_key="k", max_retries=0) as sdk:
        yield sdk


# ------------------------------------------------------------------------- chat


async def test_chat_everything_streamed(simulator: Simulator, chat: openai.AsyncOpenAI) -> None:
    simulator.script("m", EVERYTHING)
    async with chat.chat.completions.stream(model="m", messages=USER, tools=[CHAT_TOOL]) as stream:
        answer = await stream.get_final_completion()
    check_chat_answer(answer)


async def test_chat_everything_in_one_piece(simulator: Simulator, chat: openai.AsyncOpenAI) -> None:
    simulator.script("m", EVERYTHING)
    check_chat_answer(await chat.chat.completions.create(model="m", messages=USER, tools=[CHAT_TOOL]))


def check_chat_answer(answer: Any) -> None:
    message = answer.choices[0].message
    assert message.content == "Let me look."
    assert message.reasoning_content == "Where is Oslo?"
    calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls]
    assert calls == [("call_sim0_0", "weather", '{"city":"Oslo"}'), ("call_mine", "time", '{"zone":1}')]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.usage.prompt_tokens == 20
    assert answer.usage.prompt_tokens_details.cached_tokens == 5
    assert answer.usage.completion_tokens == 12
    assert answer.usage.completion_tokens_details.reasoning_tokens == 3


async def test_chat_begins_with_the_role_and_tells_usage_when_asked(chat: openai.AsyncOpenAI) -> None:
    options: Any = {"include_usage": True}
    for asked, last in (({}, 1), ({"stream_options": options}, 0)):
        stream = await chat.chat.completions.create(model="sim/tokens-2", messages=USER, stream=True, **asked)
        chunks = [chunk async for chunk in stream]
        assert chunks[0].choices[0].delta.role == "assistant"
        assert chunks[0].choices[0].delta.content == ""
        assert len(chunks[-1].choices) == last
        assert (chunks[-1].usage is None) == bool(last)


async def test_chat_errors_are_raised(chat: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.APIError, match="The server had an error"):
        await drain(await chat.chat.completions.create(model="sim/error-after-1", messages=USER, stream=True))
    with pytest.raises(openai.RateLimitError) as raised:
        await chat.chat.completions.create(model="sim/status-429,retry-7", messages=USER)
    assert raised.value.response.headers["retry-after"] == "7"
    assert raised.value.request_id == "req_sim00000001"
    with pytest.raises(openai.NotFoundError, match="sim/echo"):
        await chat.chat.completions.create(model="gpt-99", messages=USER)
    with pytest.raises(openai.BadRequestError) as refused:
        await chat.chat.completions.create(model="sim/echo", messages=USER, temperature=3)
    assert refused.value.param == "temperature"


async def drain(stream: Any) -> list[Any]:
    return [event async for event in stream]


# -------------------------------------------------------------------- responses


async def test_responses_everything_streamed(simulator: Simulator, chat: openai.AsyncOpenAI) -> None:
    simulator.script("m", EVERYTHING)
    async with chat.responses.stream(model="m", input="Hello there", tools=[RESPONSES_TOOL]) as stream:
        check_response(await stream.get_final_response())


async def test_responses_everything_in_one_piece(simulator: Simulator, chat: openai.AsyncOpenAI) -> None:
    simulator.script("m", EVERYTHING)
    check_response(await chat.responses.create(model="m", input="Hello there", tools=[RESPONSES_TOOL]))


def check_response(response: Any) -> None:
    thought, said, *calls = response.output
    assert thought.summary[0].text == "Where is Oslo?"
    assert thought.encrypted_content
    assert said.content[0].text == response.output_text == "Let me look."
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [
        ("call_sim0_0", "weather", '{"city":"Oslo"}'),
        ("call_mine", "time", '{"zone":1}'),
    ]
    assert response.status == "completed"
    assert response.usage.input_tokens == 20
    assert response.usage.total_tokens == 32


async def test_every_event_of_responses_is_one_of_the_sdks_types(simulator: Simulator) -> None:
    simulator.script("m", EVERYTHING)
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    events = (await ask(simulator, "m", "responses")).frames
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        # The SDK now wants a count of cache writes that the provider does not always give.
        (event.get("response") or {}).pop("usage", None)
        assert adapter.validate_python(event).type == event["type"]


async def test_responses_that_are_incomplete_say_why(chat: openai.AsyncOpenAI) -> None:
    for word, reason in (("length", "max_output_tokens"), ("network_error", "network_error")):
        response = await chat.responses.create(model=f"sim/finish-{word}", input="Hi")
        assert response.status == "incomplete"
        assert response.incomplete_details is not None
        assert response.incomplete_details.reason == reason


async def test_responses_errors_are_raised(chat: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.APIError, match="The server had an error"):
        await drain(await chat.responses.create(model="sim/error-after-1", input="Hi", stream=True))
    with pytest.raises(openai.InternalServerError):
        await chat.responses.create(model="sim/error-after-1", input="Hi")


# --------------------------------------------------------------------- messages


async def test_messages_everything_streamed(simulator: Simulator, claude: anthropic.AsyncAnthropic) -> None:
    simulator.script("m", EVERYTHING)
    async with claude.messages.stream(model="m", max_tokens=99, messages=USER, tools=[MESSAGES_TOOL]) as stream:
        check_message(await stream.get_final_message())


async def test_messages_everything_in_one_piece(simulator: Simulator, claude: anthropic.AsyncAnthropic) -> None:
    simulator.script("m", EVERYTHING)
    check_message(await claude.messages.create(model="m", max_tokens=99, messages=USER, tools=[MESSAGES_TOOL]))


def check_message(message: Any) -> None:
    thought, said, *calls = message.content
    assert thought.thinking == "Where is Oslo?"
    assert thought.signature
    assert said.text == "Let me look."
    assert [(call.id, call.name, call.input) for call in calls] == [
        ("call_sim0_0", "weather", {"city": "Oslo"}),
        ("call_mine", "time", {"zone": 1}),
    ]
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (15, 5)
    assert message.usage.output_tokens == 12


async def test_messages_redacted_thinking(simulator: Simulator, claude: anthropic.AsyncAnthropic) -> None:
    simulator.script("m", Answer(text="So.", reasoning=Reasoning(redacted=True, signature="c2VhbA==")))
    async with claude.messages.stream(model="m", max_tokens=99, messages=USER) as stream:
        streamed = await stream.get_final_message()
    for message in (streamed, await claude.messages.create(model="m", max_tokens=99, messages=USER)):
        assert message.content[0].type == "redacted_thinking"
        assert message.content[0].data == "c2VhbA=="


async def test_messages_errors_are_raised(claude: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.APIStatusError, match="The server had an error"):
        await drain(await claude.messages.create(model="sim/error-after-1", max_tokens=9, messages=USER, stream=True))
    with pytest.raises(anthropic.BadRequestError, match="messages"):
        await claude.messages.create(model="sim/echo", max_tokens=9, messages=[])


# ------------------------------------------------------------------ both of them


async def test_a_tool_is_called_by_its_schema_and_its_result_is_told(chat: openai.AsyncOpenAI) -> None:
    first = await chat.chat.completions.create(model="sim/tool-2", messages=USER, tools=[CHAT_TOOL])
    message: Any = first.choices[0].message
    assert [call.function.arguments for call in message.tool_calls] == ['{"city":"x"}'] * 2
    results = [{"role": "tool", "tool_call_id": call.id, "content": "17 degrees"} for call in message.tool_calls]
    history: Any = [*USER, message.model_dump(exclude_none=True, include={"role", "tool_calls"}), *results]
    second = await chat.chat.completions.create(model="sim/tool-2", messages=history, tools=[CHAT_TOOL])
    assert second.choices[0].message.content == "17 degrees"


async def test_models_are_listed_in_the_callers_dialect(
    simulator: Simulator, chat: openai.AsyncOpenAI, claude: anthropic.AsyncAnthropic
) -> None:
    simulator.script("mine", Answer())
    for listed in (
        [model.id async for model in chat.models.list()],
        [model.id async for model in claude.models.list()],
    ):
        assert listed[0] == "mine"
        assert "sim/echo" in listed
    assert (await chat.models.retrieve("mine")).id == "mine"
    assert (await claude.models.retrieve("sim/tokens-3")).id == "sim/tokens-3"
    with pytest.raises(openai.NotFoundError):
        await chat.models.retrieve("other")
