"""The simulator inside a test: on a free loopback port of this process, scripted and questioned from Python."""

import asyncio
from types import TracebackType
from typing import Self

from headwater.clock import Clock
from headwater.simulate.journal import Connected, Exchange
from headwater.simulate.replay import Replays
from headwater.simulate.script import Answer, Scenario, Script
from headwater.simulate.serve import listen
from headwater.simulate.simulation import Simulation


class Simulator:
    """`async with Simulator() as simulator:` serves at `simulator.url` until the block ends.

    `sim/…` names work at once; `script` gives a model a script of its own.
    """

    def __init__(
        self, scenario: Scenario = Scenario(), *, clock: Clock | None = None, replays: Replays | None = None
    ) -> None:
        self._simulation = Simulation(scenario, clock, replays)
        self._server: asyncio.Server | None = None
        self.url = ""
        """E.g. `http://127.0.0.1:41234`; OpenAI's clients want `/v1` after it."""

    async def __aenter__(self) -> Self:
        self._server, self.url = await listen(self._simulation)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self._simulation.close()
        # The transports tell that they are closed in the loop's next turn.
        await self.wait_for_connections(0)
        await self._server.wait_closed()

    def script(self, model: str, *answers: Answer | Script) -> None:
        """What `model` answers from now on: these answers, or this script."""
        match answers:
            case (Script() as script,):
                self._simulation.set_script(model, script)
            case _:
                given = tuple(answer for answer in answers if isinstance(answer, Answer))
                self._simulation.set_script(model, Script(answers=given))

    def clear(self) -> None:
        """Forget what was asked, and begin every script anew."""
        self._simulation.clear()

    @property
    def requests(self) -> list[Exchange]:
        """All that was asked, in order."""
        return self._simulation.journal.exchanges

    @property
    def connections(self) -> list[Connected]:
        return list(self._simulation.journal.connections.values())

    async def wait_for_requests(self, count: int) -> None:
        """Until so many have come in all."""
        await self._simulation.journal.wait(lambda: len(self.requests) >= count)

    async def wait_for_end(self, n: int) -> Exchange:
        """Until request `n` (from 0) has come and is over: answered, or one side has gone."""
        await self._simulation.journal.wait(lambda: len(self.requests) > n and self.requests[n].ending is not None)
        return self.requests[n]

    async def wait_for_close(self, n: int) -> Connected:
        """Until request `n` (from 0) has come and its connection is closed."""
        await self._simulation.journal.wait(lambda: len(self.requests) > n and self._connection(n).closed is not None)
        return self._connection(n)

    async def wait_for_connections(self, count: int) -> None:
        """Until just so many are open."""
        await self._simulation.journal.wait(lambda: sum(record.closed is None for record in self.connections) == count)

    def _connection(self, n: int) -> Connected:
        return self._simulation.journal.connections[self.requests[n].connection]
