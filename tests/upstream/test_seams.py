"""Where an answer goes on: white space is written once; and what is played without a network."""

import asyncio

import pytest

from headwater.dialects import DIALECTS
from headwater.events import Event, ReasoningDelta, TextDelta
from headwater.judge import Evidence, Transport
from headwater.sse import Frame
from headwater.testing import ManualClock
from headwater.upstream.continuation import Seamed
from headwater.upstream.demo.steps import Send
from headwater.upstream.played import PlayedExchange, PlayedOpener

WHOLE = b'{"type":"message","role":"assistant","content":[{"type":"text","text":"\\n there"}],"stop_reason":"end_turn"}'


class Says:
    """A decoder whose every frame brings these events."""

    evidence = Evidence()

    def __init__(self, *events: Event) -> None:
        self._events = events

    def feed(self, frame: Frame, out: list[Event]) -> None:
        out += self._events

    def whole(self, body: bytes, out: list[Event]) -> None:
        out += self._events

    def end(self, out: list[Event]) -> None:
        """Nothing was held back."""

    def around_text(self, data: bytes) -> None:
        """Each frame is read."""


def test_an_answer_in_one_piece_joins_as_a_streamed_one_does() -> None:
    out: list[Event] = []
    Seamed(DIALECTS["messages"].decoder("call"), "\n\n").whole(WHOLE, out)
    assert "".join(event.text for event in out if isinstance(event, TextDelta)) == " there"


def test_what_is_no_text_is_left_as_it_is() -> None:
    out: list[Event] = []
    Seamed(Says(ReasoningDelta("\n"), TextDelta("\n"), TextDelta("x")), "\n").feed(Frame(b""), out)
    assert out == [ReasoningDelta("\n"), TextDelta("x")]


@pytest.mark.anyio
async def test_steps_may_end_without_a_word_and_be_closed_before_they_begin() -> None:
    PlayedExchange(iter([]), ManualClock()).close()
    exchange = await PlayedOpener(lambda _: iter([Send(b"x")]), ManualClock()).open(b"", None)
    heard: list[bytes | Transport] = []
    over = asyncio.Event()

    def ended(transport: Transport) -> None:
        heard.append(transport)
        over.set()

    exchange.listen(heard.append, ended)
    await asyncio.wait_for(over.wait(), 5)
    assert heard == [b"x", "clean"]
