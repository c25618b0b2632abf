"""Requests as a Responses upstream would get them."""

from typing import Any

import msgspec

from headwater.conversation import (
    Message,
    Request,
    Target,
    Text,
    ToolCall,
    User,
)
from headwater.dialects import responses

HI = User((Text("Hi"),))


def body(request: Request, **target: Any) -> dict[str, Any]:
    rendered: dict[str, Any] = msgspec.json.decode(responses.render(request, Target(model="up-1", **target)))
    return rendered


def items(*messages: Message, origin: str | None = "up") -> list[dict[str, Any]]:
    return list(body(Request(messages), origin=origin)["input"])


def call(id: str = "call_a", **fields: Any) -> ToolCall:
    return ToolCall(id, "look", "{}", **fields)
