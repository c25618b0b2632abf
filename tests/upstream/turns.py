"""Model turns over real sockets, as a test asks for them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headwater.clock import SystemClock
from headwater.config.settings import UpstreamSettings
from headwater.conversation import Request, Target, Text, Tool, User
from headwater.events import DialectName, Failed, Outcome
from headwater.simulate.script import (
    Answer,
)
from headwater.testing import Simulator
from headwater.upstream.endpoint import Endpoint, Route
from headwater.upstream.http import HttpOpener
from headwater.upstream.model import Model
from headwater.upstream.sweep import Sweep
from tests.upstream.asking import Heard

PATHS: dict[DialectName, str] = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
HEADERS = {
    "content-type": "application/json",
    "authorization": "Bearer k",
    "x-api-key": "k",
    "anthropic-version": "2023-06-01",
}
TOOL = Tool("write", parameters={"type": "object", "properties": {"path": {"type": "string"}}})
HELLO = Request((User((Text("Hello"),)),), tools=(TOOL,))

each_dialect = pytest.mark.parametrize("dialect", PATHS)


class Asking:
    def __init__(self, simulator: Simulator, dialect: DialectName, **settings: Any) -> None:
        self.simulator = simulator
        self.sweep = Sweep(SystemClock())
        self.heard = Heard()
        base_url = settings.pop("base_url", f"{simulator.url}/v1")
        self._max_connections = settings.get("max_connections", 1000)
        config = UpstreamSettings(base_url=base_url, dialect=dialect, **({"backoff_s": 0.0} | settings))
        self.opener = HttpOpener(
            base_url + PATHS[dialect],
            lambda _: HEADERS,
            connect_s=config.connect_timeout_s,
            max_connections=config.max_connections,
        )
        endpoint = Endpoint("up", config, self.opener, needs_finish_reason=True)
        route = Route(endpoint=endpoint, model="m", target=Target(model="m", origin="up"))
        self.model = Model([route], SystemClock(), self.sweep)

    def start(self, heard: Heard | None = None) -> asyncio.Task[Any]:
        turn = self.model.turn(HELLO, call_id_prefix="call_")
        return asyncio.create_task((heard or self.heard).all_of(turn))

    async def outcome(self, *answers: Answer) -> Outcome:
        self.simulator.script("m", *answers)
        ended = await asyncio.wait_for(self.start(), 20)
        return ended.outcome  # type: ignore[no-any-return]

    async def failure(self, *answers: Answer) -> Failed:
        outcome = await self.outcome(*answers)
        assert isinstance(outcome, Failed)
        return outcome


@asynccontextmanager
async def asking(dialect: DialectName = "chat", **settings: Any) -> AsyncIterator[Asking]:
    async with Simulator() as simulator:
        asking = Asking(simulator, dialect, **settings)
        try:
            yield asking
        finally:
            await asking.sweep.close()
            asking.opener.close()


GOOD = Answer(text="Hi there")
