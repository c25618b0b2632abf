"""Both ends of a model's turn, without a network: an upstream that answers as it is told, a sink that keeps all."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from headwater.accumulate import Accumulator
from headwater.clock import Clock
from headwater.errors import UpstreamError
from headwater.events import AttemptEnded, AttemptStarted, Event, Failed, Interrupted, Stopped, TextDelta
from headwater.source import Ended, Straight
from headwater.upstream.demo.steps import End, Send, Step
from headwater.upstream.exchange import Exchange
from headwater.upstream.model import ModelTurn
from headwater.upstream.played import PlayedExchange


class Answer(Struct, frozen=True):
    """A head, and then steps."""

    steps: Sequence[Step]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    head_after_s: float = 0.0


class Asked(Struct):
    """A request as it came."""

    body: dict[str, Any]
    key: str | None
    exchange: PlayedExchange | None = None
    gave_up: bool = False
    """Cancelled before the head had come."""


def refusal(status: int, message: str, **headers: str) -> Answer:
    """An answer whose status says no. `retry_after="2"` is the header."""
    body = msgspec.json.encode({"error": {"message": message}})
    return Answer([Send(body), End()], status, {name.replace("_", "-"): value for name, value in headers.items()})


class ScriptedUpstream:
    """Gives its answers one after the other, and the last one for ever. A `Failed` is a connection that never was."""

    def __init__(self, clock: Clock, *answers: Answer | Failed) -> None:
        self._clock = clock
        self._answers = list(answers)
        self.asked: list[Asked] = []

    async def open(self, body: bytes, key: str | None) -> Exchange:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        asked = Asked(msgspec.json.decode(body), key)
        self.asked.append(asked)
        if isinstance(answer, Failed):
            raise UpstreamError(answer)
        try:
            if answer.head_after_s:
                await self._clock.sleep(answer.head_after_s)
        except asyncio.CancelledError:
            asked.gave_up = True
            raise
        asked.exchange = PlayedExchange(iter(answer.steps), self._clock, answer.status, answer.headers)
        return asked.exchange


class Heard:
    """A sink that keeps all, and can be asked for parts of it."""

    def __init__(self) -> None:
        self.fold = Accumulator()
        self.straight: Straight | None = None
        self.events: list[Event] = []
        self.stopping: Stopped | Interrupted | None = None
        self.first = asyncio.Event()
        """The first word has come."""

    def take(self, events: Sequence[Event]) -> None:
        self.events += events
        if self.fold.delivered_anything:
            self.first.set()

    async def kept(self) -> None:
        """At once: there is no store."""

    async def all_of(self, turn: ModelTurn) -> Ended:
        """Run it, and hear it to its end."""
        end = await turn.run(self)
        self.take(end.last)
        return Ended(end.outcome)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if type(event) is kind]

    @property
    def words(self) -> list[str]:
        return [event.text for event in self.of(TextDelta)]

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self.of(AttemptStarted)]

    @property
    def failures(self) -> list[str | None]:
        return [event.failed and event.failed.reason for event in self.of(AttemptEnded)]
