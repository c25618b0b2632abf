"""A model's turn against scripted upstreams, by a clock that the test moves."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from headwater.config.secret import Secret
from headwater.config.settings import UpstreamSettings
from headwater.conversation import Request, Target, Text, User
from headwater.events import DialectName, Outcome
from headwater.policy import Prefill
from headwater.source import Ended
from headwater.testing import ManualClock
from headwater.testing.upstream import Answer, Heard, ScriptedUpstream
from headwater.upstream.demo.steps import Cut, End, Hang, Pause, Send, Step
from headwater.upstream.endpoint import Endpoint, Route
from headwater.upstream.model import Model, ModelTurn
from headwater.upstream.sweep import Sweep

HELLO = Request((User((Text("Hello"),)),), model="fast")


def chunk(delta: dict[str, Any], finish: str | None = None) -> Send:
    body = msgspec.json.encode({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    return Send(b"data: %b\n\n" % body)


def text(*words: str) -> list[Step]:
    return [chunk({"content": word}) for word in words]


def call(arguments: str) -> Step:
    function = {"name": "write", "arguments": arguments}
    return chunk({"tool_calls": [{"index": 0, "id": "c1", "function": function}]})


DONE: list[Step] = [chunk({}, "stop"), Send(b"data: [DONE]\n\n"), End()]
GOOD = Answer([*text("Hi", " there"), *DONE])
CUT_AT_ONCE = Answer([Cut()])
CUT = Answer([*text("Hi", " the"), Cut()])
SILENT = Answer([Hang()])


class Stage:
    """Upstreams `a`, `b`, … with their scripts; the first is the model's, the others its fallbacks."""

    def __init__(
        self,
        *scripts: Sequence[Answer | Any],
        dialect: DialectName = "chat",
        prefill: Prefill = "none",
        keys: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        self.clock = ManualClock()
        self.sweep = Sweep(self.clock)
        self.heard = Heard()
        self.upstreams = [ScriptedUpstream(self.clock, *script) for script in scripts]
        routes = []
        for name, upstream in zip("abcd", self.upstreams, strict=False):
            api_key = tuple(Secret(key) for key in keys)
            config = UpstreamSettings(base_url="http://127.0.0.1", dialect=dialect, api_key=api_key, **settings)
            endpoint = Endpoint(name, config, upstream, needs_finish_reason=True)
            target = Target(model=f"{name}-1", origin=name)
            routes.append(Route(endpoint=endpoint, model=f"{name}-1", target=target, prefill=prefill))
        self.model = Model(routes, self.clock, self.sweep, jitter=lambda: 1.0)

    @property
    def asked(self) -> list[int]:
        """How often each upstream was asked."""
        return [len(upstream.asked) for upstream in self.upstreams]

    def turn(self, request: Request = HELLO, **options: Any) -> ModelTurn:
        return self.model.turn(request, call_id_prefix="call_", **options)

    def start(self, request: Request = HELLO, **options: Any) -> asyncio.Task[Ended]:
        return asyncio.create_task(self.heard.all_of(self.turn(request, **options)))

    async def outcome(self, request: Request = HELLO, *, within_s: float = 60, **options: Any) -> Outcome:
        task = self.start(request, **options)
        for _ in range(int(within_s * 4)):
            await self.clock.advance(0.25)
            if task.done():
                break
        assert task.done(), f"not done after {within_s} s"
        return task.result().outcome


__all__ = ["CUT", "CUT_AT_ONCE", "DONE", "GOOD", "HELLO", "SILENT", "Heard", "Pause", "Stage", "call", "chunk", "text"]
