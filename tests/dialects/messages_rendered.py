"""Requests as a Messages upstream would get them, and parts of them."""

from typing import Any

import msgspec

from headwater.conversation import (
    Message,
    Reasoning,
    Request,
    Target,
    Text,
    Tool,
    ToolCall,
    ToolOutput,
    User,
)
from headwater.dialects import carry, messages
from headwater.dialects.base import Note
from headwater.testing import check_messages

TARGET = Target(model="claude", origin="anthropic")
BUDGET = Target(model="claude", origin="anthropic", thinking="budget")
HI = User((Text("Hi"),))
SIGNED = Reasoning("Hm.", "messages", {"signature": "c2ln"})
SIGNED_BLOCK = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
CALL = ToolCall("call_a", "look", "{}")
CALL_BLOCK = {"type": "tool_use", "id": "call_a", "name": "look", "input": {}}
RESULT = ToolOutput("call_a", (Text("7"),))
RESULT_BLOCK = {"type": "tool_result", "tool_use_id": "call_a", "content": "7"}
LOOK = Tool("look", "It looks.", {"type": "object", "properties": {}})
MARK = {"type": "ephemeral"}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def render(*said: Message, target: Target = TARGET, **fields: Any) -> dict[str, Any]:
    request = Request(said or (HI,), **fields)
    body: dict[str, Any] = msgspec.json.decode(messages.render(request, target))
    assert check_messages(body) == []
    return body


def notes(*said: Message, target: Target = TARGET, **fields: Any) -> list[Note]:
    return carry.notes(Request(said or (HI,), **fields), target, "messages")


def turns(*said: Message, **fields: Any) -> list[Any]:
    return [(turn["role"], turn["content"]) for turn in render(*said, **fields)["messages"]]
