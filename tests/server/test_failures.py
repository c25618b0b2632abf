"""Every way that a stream can fail × every client dialect × every upstream dialect: no SDK reports success."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import openai
import pytest

from headwater.events import DialectName
from tests.server.house import DIALECTS, House, open_house, settings_for, with_upstream

pytestmark = pytest.mark.anyio

FAILURES = [
    "sim/tokens-5,cut-after-0",
    "sim/tokens-5,cut-after-2",
    "sim/tokens-5,fin-after-0",
    "sim/tokens-5,fin-after-2",
    "sim/tokens-5,reset-after-2",
    "sim/tokens-5,reset-at-before_head",
    "sim/tokens-5,fin-at-in_head",
    "sim/tokens-5,error-after-0",
    "sim/tokens-5,error-after-2",
    "sim/tokens-5,badchunk-after-2",
    "sim/tokens-5,badjson-after-2",
    "sim/tokens-5,stall-after-2",
    "sim/tokens-5,pings-after-2",
    "sim/tokens-5,fin-at-before_finish",
    "sim/tokens-5,omit-finish,omit-terminator",
    "sim/tokens-0",
    "sim/tokens-5,finish-network_error",
    "sim/status-400",
    "sim/status-401",
    "sim/status-429",
    "sim/status-500",
    "sim/status-529",
    "sim/portal",
    "sim/redirect",
]
ERRORS = (openai.OpenAIError, anthropic.AnthropicError)
MESSAGES: Any = [{"role": "user", "content": "Hi"}]


async def chat_streamed(house: House, model: str) -> object:
    stream = await house.openai.chat.completions.create(model=model, messages=MESSAGES, stream=True)
    return [chunk async for chunk in stream]


async def chat_whole(house: House, model: str) -> object:
    return await house.openai.chat.completions.create(model=model, messages=MESSAGES)


async def chat_helper(house: House, model: str) -> object:
    async with house.openai.chat.completions.stream(model=model, messages=MESSAGES) as stream:
        return await stream.get_final_completion()


async def responses_streamed(house: House, model: str) -> object:
    stream = await house.openai.responses.create(model=model, input="Hi", stream=True)
    return [event async for event in stream]


async def responses_whole(house: House, model: str) -> object:
    return await house.openai.responses.create(model=model, input="Hi")


async def messages_streamed(house: House, model: str) -> object:
    stream = await house.anthropic.messages.create(model=model, max_tokens=99, messages=MESSAGES, stream=True)
    return [event async for event in stream]


async def messages_whole(house: House, model: str) -> object:
    return await house.anthropic.messages.create(model=model, max_tokens=99, messages=MESSAGES)


async def messages_helper(house: House, model: str) -> object:
    async with house.anthropic.messages.stream(model=model, max_tokens=99, messages=MESSAGES) as stream:
        return await stream.get_final_message()


CLIENTS: list[Callable[[House, str], Awaitable[object]]] = [
    chat_streamed,
    chat_whole,
    chat_helper,
    responses_streamed,
    responses_whole,
    messages_streamed,
    messages_whole,
    messages_helper,
]


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_no_sdk_reports_success(client: Callable[[House, str], Awaitable[object]], upstream: DialectName) -> None:
    async with open_house() as house:
        settings = with_upstream(settings_for(house.simulator), upstream, idle_timeout_s=2, first_token_timeout_s=2)
        house.services.reload(settings)

        async def fails(model: str) -> None:
            try:
                answer = await client(house, f"{upstream}/{model}")
            except ERRORS:
                return
            raise AssertionError(f"{model} was reported as a success: {answer}")

        await asyncio.gather(*map(fails, FAILURES))
        # And none was tried again by the SDK: that would be billed.
        asked = [request.model for request in house.simulator.requests]
        assert sorted(asked) == sorted(FAILURES)


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_every_sdk_reports_success_where_there_is_one(
    house: House, client: Callable[[House, str], Awaitable[object]], upstream: DialectName
) -> None:
    assert "t2" in str(await client(house, f"{upstream}/sim/think,tokens-3"))
