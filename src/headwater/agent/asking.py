"""A model asked by a user's own agent, through our upstreams: with their retries, fallbacks and limits.

What the model says is the agent's to pass on, or not: nothing of it is in the run's log but what it cost. An answer
that did not complete raises, so that an agent that looks away does not end as a success.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Message, Parameters, Request, Text, User
from headwater.conversation import Tool as Declared
from headwater.errors import HeadwaterError
from headwater.events import Completed, Event, Interrupted, Outcome, Stopped, TextDelta, Usage
from headwater.source import Ended, Sink, Straight
from headwater.upstream.upstreams import Upstreams


class ModelError(HeadwaterError):
    """The model did not complete its answer. Unless the agent catches it, the run ends as the answer did."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"The model's answer did not complete: {outcome}")
        self.outcome = outcome


class Ear:
    """A `Sink` of what one model says."""

    def __init__(self, of: Sink) -> None:
        self.fold = Accumulator()
        self.straight: Straight | None = None
        self.heard: list[Event] = []
        self.news = asyncio.Event()
        self._of = of

    @property
    def stopping(self) -> Stopped | Interrupted | None:
        return self._of.stopping

    def take(self, events: Sequence[Event]) -> None:
        self.heard += events
        self.news.set()

    async def kept(self) -> None:
        """At once: it is in no log."""


class Asking:
    """`async for text in …`, or `await ….whole()`. It begins with that, and can be asked once."""

    def __init__(
        self, upstreams: Upstreams, model: str, request: Request, sink: Sink, spent: Callable[[Usage], None]
    ) -> None:
        self._upstreams = upstreams
        self._model = model
        self._request = request
        self._ear = Ear(sink)
        self._spent = spent

    async def __aiter__(self) -> AsyncIterator[str]:
        async for event in self.events():
            if isinstance(event, TextDelta):
                yield event.text

    async def whole(self) -> Assistant:
        """The message, with its text, its reasoning and its tool calls. Raises `ModelError`."""
        async for _ in self.events():
            pass
        return self._ear.fold.message()

    async def events(self) -> AsyncIterator[Event]:
        """All that happens, as it does. Raises `ModelError`, `CallerError`."""
        ear = self._ear
        model = await self._upstreams.model(self._model)
        turn = model.turn(self._request, call_id_prefix="call_", may_continue=True)
        asking = asyncio.create_task(turn.run(ear))
        asking.add_done_callback(lambda _: ear.news.set())
        try:
            while ear.heard or not asking.done():
                heard, ear.heard = ear.heard, []
                for event in heard:
                    yield event
                if not ear.heard:
                    await ear.news.wait()
                    ear.news.clear()
            ended: Ended = asking.result()
            for event in ended.last:
                yield event
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            self._spent(ear.fold.usage)
        if not isinstance(ended.outcome, Completed):
            raise ModelError(ended.outcome)


def request_of(messages: Sequence[Message] | str, tools: Sequence[Declared], parameters: dict[str, Any]) -> Request:
    said = (User((Text(messages),)),) if isinstance(messages, str) else tuple(messages)
    return Request(said, tools=tuple(tools), parameters=Parameters(**parameters))
