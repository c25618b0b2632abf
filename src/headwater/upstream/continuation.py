"""How a turn that was cut off is asked to go on (C27). Pure."""

from typing import Final

import msgspec
from msgspec.structs import replace

from headwater.conversation import Assistant, Message, Reasoning, Request, Text, User
from headwater.dialects.base import Decoder
from headwater.events import Event, TextDelta
from headwater.judge import Evidence
from headwater.mould import Around
from headwater.policy import Prefill
from headwater.sse import Frame
from headwater.upstream.providers import PrefixFlag

INSTRUCTION: Final = (
    "Your last message was cut off by a technical fault. Go on exactly where it ended: repeat nothing of it, and do "
    "not mention the interruption."
)


def continued(request: Request, partial: Assistant, prefill: Prefill) -> Request:
    """The request that makes the model go on after `partial`."""
    # Reasoning of a message that is not whole has no seal, and no provider takes it back.
    said = replace(partial, parts=tuple(part for part in partial.parts if not isinstance(part, Reasoning)))
    if not partial.text.strip():
        return request
    if prefill == "none":
        asked: tuple[Message, ...] = (*request.messages, said, User((Text(INSTRUCTION),)))
        return replace(request, messages=asked)
    # In the midst of an answer there is no thinking: Anthropic refuses the two together.
    parameters = replace(request.parameters, reasoning_effort=None)
    return replace(request, messages=(*request.messages, said), parameters=parameters)


def with_prefix_flag(body: bytes, flag: PrefixFlag) -> bytes:
    """A chat request that ends with the answer that is to be gone on with, marked so."""
    asked = msgspec.json.decode(body)
    asked["messages"][-1] |= flag.message
    for name, value in flag.body.items():
        both = isinstance(value, dict) and isinstance(asked.get(name), dict)
        asked[name] = asked[name] | value if both else value
    return msgspec.json.encode(asked)


def trailing_space(text: str) -> str:
    return text[len(text.rstrip()) :]


class Seamed:
    """A decoder whose first text does not repeat the white space that the text before it ended with.

    A provider that takes no white space at the end of what it is to go on with was not sent it, and may write it again.
    """

    def __init__(self, decoder: Decoder, written: str) -> None:
        self._decoder = decoder
        self._written = written

    @property
    def evidence(self) -> Evidence:
        return self._decoder.evidence

    def feed(self, frame: Frame, out: list[Event]) -> None:
        self._decoder.feed(frame, out)
        self._join(out)

    def whole(self, body: bytes, out: list[Event]) -> None:
        self._decoder.whole(body, out)
        self._join(out)

    def end(self, out: list[Event]) -> None:
        self._decoder.end(out)
        self._join(out)

    def around_text(self, data: bytes) -> Around | None:
        return None if self._written else self._decoder.around_text(data)

    def _join(self, out: list[Event]) -> None:
        if not self._written:
            return
        for n, event in enumerate(out):
            if type(event) is TextDelta and self._written:
                out[n] = TextDelta(self._without_repeat(event.text), event.refusal)
        out[:] = [event for event in out if type(event) is not TextDelta or event.text]

    def _without_repeat(self, text: str) -> str:
        same = 0
        while same < min(len(text), len(self._written)) and text[same] == self._written[same]:
            same += 1
        self._written = self._written[same:] if same == len(text) else ""
        return text[same:]
