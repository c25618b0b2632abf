"""Going on after a cut, falling back and leaving late words behind, over real sockets, in every dialect (C27, C29, C30)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headwater.clock import SystemClock
from headwater.config.settings import ModelSettings, Settings, UpstreamSettings
from headwater.conversation import Request, Text, User
from headwater.events import AttemptStarted, Completed, DialectName, Failed, Notice, Outcome
from headwater.policy import Prefill
from headwater.simulate.script import Answer, Cut, Http, Stall
from headwater.testing import Simulator
from headwater.testing.upstream import Heard
from headwater.upstream.upstreams import Upstreams

pytestmark = pytest.mark.anyio

HELLO = Request((User((Text("Hello"),)),))
each_dialect = pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])


class Asked:
    def __init__(self, simulator: Simulator, upstreams: Upstreams) -> None:
        self.simulator = simulator
        self.heard = Heard()
        self._upstreams = upstreams

    async def outcome(self, **options: Any) -> Outcome:
        model = await self._upstreams.model("first")
        turn = model.turn(HELLO, call_id_prefix="call_", **options)
        return (await asyncio.wait_for(self.heard.all_of(turn), 30)).outcome


@asynccontextmanager
async def asking(dialect: DialectName, prefill: Prefill = "none", **more: Any) -> AsyncIterator[Asked]:
    """A model `first`, whose fallback is `second`, at another upstream."""
    async with Simulator() as simulator:
        up = UpstreamSettings(
            base_url=f"{simulator.url}/v1", dialect=dialect, list_models=False, backoff_s=0, prefill=prefill, **more
        )
        models = (
            ModelSettings(name="first", upstream="a", fallbacks=("second",)),
            ModelSettings(name="second", upstream="b"),
        )
        upstreams = Upstreams(Settings(upstreams={"a": up, "b": up}, models=models), SystemClock(), Path("unused"))
        try:
            yield Asked(simulator, upstreams)
        finally:
            await upstreams.close()


CUT = Answer(text="one two three", faults=(Cut(tokens=2),))


@each_dialect
async def test_a_cut_answer_is_gone_on_with(dialect: DialectName) -> None:
    """C27: within the message where the dialect can be prefilled, else in a new one, which is said."""
    prefill: Prefill = "none" if dialect == "responses" else "assistant"
    async with asking(dialect, prefill) as asked:
        asked.simulator.script("first", CUT, Answer(text="three"))
        assert await asked.outcome(may_continue=True) == Completed("stop")
        assert asked.heard.fold.text().replace(" ", "") == "onetwothree"
        seam = asked.heard.of(AttemptStarted)[1]
        assert seam.reason == "continue"
        said = [notice.code for notice in asked.heard.of(Notice)]
        assert (seam.stands, said) == (("everything", []) if prefill == "assistant" else ("nothing", ["continued"]))
        assert all(request.complaints == [] for request in asked.simulator.requests)


@each_dialect
@pytest.mark.parametrize("status", [401, 404, 503])
async def test_another_upstream_answers(dialect: DialectName, status: int) -> None:
    """C29."""
    async with asking(dialect, retries=0) as asked:
        asked.simulator.script("first", Answer(http=Http(status=status, message="Not here.")))
        asked.simulator.script("second", Answer(text="Hi"))
        assert await asked.outcome() == Completed("stop")
        answering = asked.heard.of(AttemptStarted)[-1]
        assert (answering.upstream, answering.reason) == ("b", "fallback")
        assert answering.because.startswith("Not here.")
        assert [request.model for request in asked.simulator.requests] == ["first", "second"]


@each_dialect
async def test_no_fallback_answers_for_what_was_begun(dialect: DialectName) -> None:
    """C25, C29."""
    async with asking(dialect, retries=0) as asked:
        asked.simulator.script("first", CUT)
        assert isinstance(await asked.outcome(), Failed)
        assert len(asked.simulator.requests) == 1


@each_dialect
async def test_words_that_come_late_reach_nobody(dialect: DialectName) -> None:
    """C30: the first attempt is given up in its silence, and would have gone on."""
    async with asking(dialect, first_token_timeout_s=0.3) as asked:
        late = Answer(text="too late", faults=(Stall(at="after_head", seconds=0.8),))
        slow = Answer(text="in time", faults=(Stall(at="before_finish", seconds=1.0),))
        asked.simulator.script("first", late, slow)
        assert await asked.outcome() == Completed("stop")
        assert asked.heard.fold.text() == "in time"
        assert asked.heard.failures == ["stalled", None]
        await asyncio.wait_for(asked.simulator.wait_for_close(0), 10)
