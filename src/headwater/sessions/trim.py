"""Leaves the oldest exchanges out of a context that no longer fits.

An exchange is what somebody said and all that came of it, so a call and its result are never parted. The last one
always stays: if that alone is too much, the provider says so better than we could. Pure. Tokens are estimated: no
tokenizer is right for every model, and a context is only ever known to fit when it was taken.
"""

from collections.abc import Sequence
from typing import Final, assert_never

import msgspec
from msgspec import Struct

from headwater.conversation import Image, Message, Opaque, Reasoning, Request, Text, ToolCall

# English has about 4 bytes a token, code a little less; CJK, at 3 bytes a character, comes out near 1 a character.
_BYTES_PER_TOKEN: Final = 4
_MESSAGE_TOKENS: Final = 4
_IMAGE_TOKENS: Final = 1600
"""What a provider takes for a large one."""
_ANSWER_TOKENS: Final = 4096
"""Room for an answer whose length nobody has limited."""
_STEPS: Final = 4

Exchange = Sequence[Message]


class Trimmed(Struct, frozen=True):
    kept: tuple[Exchange, ...]
    left_out: int = 0
    """Messages."""


def tokens(message: Message) -> int:
    return _MESSAGE_TOKENS + sum(_part_tokens(part) for part in message.parts)


def _part_tokens(part: Text | Image | Reasoning | ToolCall | Opaque) -> int:
    match part:
        case Text(text=text) | Reasoning(text=text):
            return _text_tokens(text)
        case ToolCall(name=name, arguments=arguments):
            return _text_tokens(name) + _text_tokens(arguments)
        case Image():
            return _IMAGE_TOKENS
        case Opaque(data=data):
            return -(-len(msgspec.json.encode(data)) // _BYTES_PER_TOKEN)
        case unreachable:
            assert_never(unreachable)


def _text_tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def room(request: Request, window_tokens: int) -> int:
    """What is left for exchanges beside the request's own messages, its tools and the answer."""
    answer = request.parameters.max_tokens or min(_ANSWER_TOKENS, window_tokens // _STEPS)
    tools = -(-len(msgspec.json.encode(request.tools)) // _BYTES_PER_TOKEN) if request.tools else 0
    return window_tokens - answer - tools - sum(map(tokens, request.messages))


def trim(exchanges: Sequence[Exchange], room_tokens: int) -> Trimmed:
    costs = [sum(map(tokens, exchange)) for exchange in exchanges]
    excess = sum(costs) - room_tokens
    if excess <= 0:
        return Trimmed(tuple(exchanges))
    # In steps of a quarter, so that the beginning stays the same for some turns: providers cache it.
    step = max(1, room_tokens // _STEPS)
    surplus = -(-excess // step) * step
    first = 0
    while surplus > 0 and first < len(exchanges) - 1:
        surplus -= costs[first]
        first += 1
    return Trimmed(tuple(exchanges[first:]), sum(map(len, exchanges[:first])))
