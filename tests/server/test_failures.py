"""Every way that a stream can fail × every client dialect × every upstream dialect: no SDK reports success."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import openai
import pytest

from headwater.events import DialectName
from tests.server.house import DIALECTS, Clients, House, eventually, open_house, settings_for, with_upstream
from tests.server.test_metrics import Told

pytestmark = pytest.mark.anyio

# Every fault of the simulator's at every point at which it makes an answer less than whole.
BROKEN = [
    *(
        f"sim/tokens-5,{fault}-after-{number}"
        for fault in ("cut", "fin", "reset", "stall", "pings", "error", "badchunk", "badjson")
        for number in (0, 2)
    ),
    *(f"sim/tokens-5,{fault}-at-before_finish" for fault in ("cut", "fin", "reset", "stall", "error", "badchunk")),
    *(f"sim/tool,{fault}-at-in_arguments" for fault in ("cut", "fin", "reset", "stall", "error", "badchunk")),
    *(
        f"sim/tokens-5,{fault}-at-{point}"
        for fault in ("fin", "reset", "stall")
        for point in ("before_head", "in_head", "after_head")
    ),
]
# Those that end in good order, and are no answer.
WRONG = [
    "sim/tokens-5,omit-finish,omit-terminator",
    "sim/tokens-5,close,fin-after-2",
    "sim/tokens-0",
    "sim/think,tokens-0",
    "sim/tokens-5,finish-network_error",
    "sim/portal",
    "sim/redirect",
    "sim/speaks-{other}",
    *(f"sim/status-{status}" for status in (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529)),
]
FAILURES = [*BROKEN, *WRONG]
OTHER = {"chat": "messages", "responses": "chat", "messages": "responses"}
TOOL = {"name": "lookup", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}
CHAT_TOOLS: Any = [{"type": "function", "function": TOOL}]
RESPONSES_TOOLS: Any = [{"type": "function", "strict": False, **TOOL}]
MESSAGES_TOOLS: Any = [{"name": "lookup", "input_schema": TOOL["parameters"]}]
ERRORS = (openai.OpenAIError, anthropic.AnthropicError)
MESSAGES: Any = [{"role": "user", "content": "Hi"}]
Asking = Callable[[Clients, str], Awaitable[object]]


async def chat_streamed(house: Clients, model: str) -> object:
    stream = await house.openai.chat.completions.create(model=model, messages=MESSAGES, tools=CHAT_TOOLS, stream=True)
    return [chunk async for chunk in stream]


async def chat_whole(house: Clients, model: str) -> object:
    return await house.openai.chat.completions.create(model=model, messages=MESSAGES, tools=CHAT_TOOLS)


async def chat_helper(house: Clients, model: str) -> object:
    async with house.openai.chat.completions.stream(model=model, messages=MESSAGES) as stream:
        return await stream.get_final_completion()


async def responses_streamed(house: Clients, model: str) -> object:
    stream = await house.openai.responses.create(model=model, input="Hi", tools=RESPONSES_TOOLS, stream=True)
    return [event async for event in stream]


async def responses_whole(house: Clients, model: str) -> object:
    return await house.openai.responses.create(model=model, input="Hi", tools=RESPONSES_TOOLS)


async def responses_helper(house: Clients, model: str) -> object:
    async with house.openai.responses.stream(model=model, input="Hi") as stream:
        return await stream.get_final_response()


async def responses_in_background(house: Clients, model: str) -> object:
    """Whoever comes back for it: by looking, and by following it from the beginning."""
    begun = await house.openai.responses.create(model=model, input="Hi", background=True)
    with pytest.raises(openai.OpenAIError):
        _ = [event async for event in await house.openai.responses.retrieve(begun.id, stream=True)]
    looked_at = await house.openai.responses.retrieve(begun.id)
    assert looked_at.status == "failed", looked_at
    assert looked_at.error is not None
    raise openai.OpenAIError(looked_at.error.message)


async def messages_streamed(house: Clients, model: str) -> object:
    stream = await house.anthropic.messages.create(
        model=model, max_tokens=99, messages=MESSAGES, tools=MESSAGES_TOOLS, stream=True
    )
    return [event async for event in stream]


async def messages_whole(house: Clients, model: str) -> object:
    return await house.anthropic.messages.create(model=model, max_tokens=99, messages=MESSAGES, tools=MESSAGES_TOOLS)


async def messages_helper(house: Clients, model: str) -> object:
    async with house.anthropic.messages.stream(
        model=model, max_tokens=99, messages=MESSAGES, tools=MESSAGES_TOOLS
    ) as stream:
        return await stream.get_final_message()


CLIENTS: list[Asking] = [
    chat_streamed,
    chat_whole,
    chat_helper,
    responses_streamed,
    responses_whole,
    responses_helper,
    messages_streamed,
    messages_whole,
    messages_helper,
]


HELPERS = (chat_helper, responses_helper, messages_helper, responses_in_background)
"""Other ways to read the same bytes."""


def failures(client: Asking) -> list[tuple[DialectName, str]]:
    """Each of every upstream dialect; for those that get what another client gets, of one of them, in turn."""
    # Two of the helpers take only tools that are strict, which these torn calls need not be.
    strict = client in (chat_helper, responses_helper)
    names = [name for name in FAILURES if not (strict and "sim/tool" in name)]
    if client in HELPERS:
        asked = [(DIALECTS[number % len(DIALECTS)], name) for number, name in enumerate(names)]
    else:
        asked = [(upstream, name) for upstream in DIALECTS for name in names]
    return [(upstream, name.format(other=OTHER[upstream])) for upstream, name in asked]


@pytest.mark.parametrize("client", [*CLIENTS, responses_in_background])
async def test_no_sdk_reports_success(client: Asking) -> None:
    """All at once."""
    async with open_house() as house:
        settings = settings_for(house.simulator)
        for upstream in DIALECTS:
            settings = with_upstream(settings, upstream, idle_timeout_s=1, first_token_timeout_s=1)
        house.services.reload(settings)

        async def fails(upstream: DialectName, model: str) -> None:
            try:
                answer = await client(house, f"{upstream}/{model}")
            except ERRORS:
                return
            raise AssertionError(f"{upstream}/{model} was reported as a success: {answer}")

        asked = failures(client)
        await asyncio.gather(*(fails(upstream, name) for upstream, name in asked))
        # And none was tried again by the SDK: that would be billed, and be another run.
        await eventually(lambda: house.services.runs.running() == 0)
        told = Told(house.services.metrics_text().decode())
        assert told.value("headwater_runs_total") == told.value("headwater_runs_total", outcome="failed") == len(asked)


async def test_every_sdk_reports_success_where_there_is_one(house: House) -> None:
    asked = [(client, upstream) for client in CLIENTS for upstream in DIALECTS]
    answers = await asyncio.gather(*(client(house, f"{upstream}/sim/think,tokens-3") for client, upstream in asked))
    for one, answer in zip(asked, answers, strict=True):
        assert "t2" in str(answer), one
