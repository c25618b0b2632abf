"""A demo model's answer, read as any other upstream's."""

from typing import Any

from msgspec import Struct

from headwater.accumulate import Accumulator
from headwater.conversation import Assistant, Message, Parameters, Request, System, Target, Text, Tool, User
from headwater.dialects import DIALECTS
from headwater.dialects.chat.render import render_request
from headwater.events import Event, Outcome, Usage
from headwater.turn import TurnReader
from headwater.upstream import demo
from headwater.upstream.demo.steps import Cut, Pause, Send, Step

WEATHER = Tool(
    "get_weather",
    "The weather of a place",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)
FISH = Tool(
    "count_fish",
    "How many fish swim in a river",
    {
        "type": "object",
        "properties": {"river": {"type": "string"}, "least": {"type": "integer"}},
        "required": ["river"],
    },
)


class Turn(Struct):
    steps: list[Step]
    events: list[Event]
    message: Assistant
    outcome: Outcome
    usage: Usage

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps if isinstance(step, Pause))

    @property
    def bytes(self) -> bytes:
        return b"".join(step.data for step in self.steps if isinstance(step, Send))


def turn_of(request: Request, model: str) -> Turn:
    body = render_request(request, Target(model=model, max_tokens_field="max_completion_tokens"))
    steps = list(demo.answer(body))
    accumulator = Accumulator()
    reader = TurnReader(DIALECTS["chat"].decoder("call"), accumulator, think_tags=False)
    events = [event for step in steps if isinstance(step, Send) for event in reader.feed(step.data)]
    end = reader.end("broken" if isinstance(steps[-1], Cut) else "clean")
    return Turn(steps, events + end.events, accumulator.message(), end.outcome, accumulator.usage)


def ask(model: str, prompt: str, *history: Message, system: str = "", begun: str = "", **rest: Any) -> Turn:
    """`history` comes before the prompt, `begun` is what the model is to go on with."""
    parameters = {name: rest.pop(name) for name in list(rest) if name in Parameters.__struct_fields__}
    messages: list[Message] = [System((Text(system),))] if system else []
    messages += [*history, User((Text(prompt),))]
    messages += [Assistant((Text(begun),))] if begun else []
    return turn_of(Request(tuple(messages), parameters=Parameters(**parameters), **rest), model)
