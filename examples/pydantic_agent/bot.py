"""An agent of pydantic-ai behind Headwater: its answers outlive their connections, and its tools are seen at work.

    pip install headwater 'pydantic-ai-slim[openai]'
    cd examples/pydantic_agent && headwater serve

with this in headwater.toml, and a key for whatever model the agent asks:

    [agents.dice]
    python = "bot:dice"
"""

import os
import random
from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)

from headwater.agent.own import Context, Said
from headwater.conversation import Assistant, Message, Text, User
from headwater.events import ToolArgsDelta, ToolCallEnded, ToolCallStarted, ToolResult, ToolRunStarted

agent = Agent(
    os.environ.get("DICE_MODEL", "openai-chat:gpt-5-mini"),
    instructions="You roll dice for people.",
    defer_model_check=True,
)


@agent.tool_plain
def roll(sides: int) -> int:
    """Roll a die."""
    return random.randint(1, sides)


async def dice(context: Context) -> AsyncIterator[Said]:
    *before, asked = context.messages
    calls = 0
    async with agent.run_stream_events(text_of(asked), message_history=history(before)) as events:
        async for event in events:
            match event:
                case PartStartEvent(part=TextPart(content=text)) if text:
                    yield text
                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                    yield text
                case FunctionToolCallEvent(part=call):
                    yield ToolCallStarted(calls, call.tool_call_id, call.tool_name)
                    yield ToolArgsDelta(calls, call.args_as_json_str())
                    yield ToolCallEnded(calls)
                    yield ToolRunStarted(call.tool_call_id)
                    calls += 1
                case FunctionToolResultEvent(part=result):
                    yield ToolResult(result.tool_call_id, str(result.content))
                case _:
                    pass


def history(messages: list[Message]) -> list[ModelMessage]:
    """What was said before, as pydantic-ai keeps it."""
    said: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, User):
            said.append(ModelRequest(parts=[UserPromptPart(text_of(message))]))
        elif isinstance(message, Assistant) and message.text:
            said.append(ModelResponse(parts=[TextPart(message.text)]))
    return said


def text_of(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))
