"""Requests of Responses clients, read."""

from typing import Any

import msgspec

from headwater.conversation import (
    Ask,
    Message,
)
from headwater.dialects import responses


def parse(**fields: Any) -> Ask:
    return responses.parse(msgspec.json.encode({"input": "Hi", **fields}))


def messages(*input: dict[str, Any]) -> tuple[Message, ...]:
    return parse(input=list(input)).request.messages


LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}
