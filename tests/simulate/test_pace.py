"""Tokens come when they are due, by whatever clock."""

import asyncio
import gc

import pytest

from headwater.events import DialectName
from headwater.simulate.pacer import Pacer
from headwater.simulate.script import Answer, Pace, Stall
from headwater.testing import ManualClock, Simulator
from tests.simulate.test_faults import ENDINGS, tokens
from tests.simulate.wire import DIALECTS, PATHS, Received, ask, body_for, connected, request

pytestmark = pytest.mark.anyio


async def sent_after(answer: Answer, *seconds: float, dialect: DialectName = "chat", stream: bool = True) -> list[int]:
    """How many tokens had been sent after each of these."""
    clock = ManualClock()
    counts = []
    async with Simulator(clock=clock) as simulator, connected(simulator) as (reader, writer):
        simulator.script("m", answer)
        writer.write(request(PATHS[dialect], body_for(dialect, "m", stream=stream)))
        await simulator.wait_for_requests(1)
        for step in seconds:
            await clock.advance(step)
            counts.append(simulator.requests[0].sent_tokens)
        if simulator.requests[0].ending:
            assert ENDINGS[dialect] in await reader.read(-1)
    return counts


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_so_many_tokens_a_second(dialect: DialectName) -> None:
    answer = Answer(tokens=20, pace=Pace(tokens_per_s=10))
    assert await sent_after(answer, 0.05, 0.06, 0.1, 0.8, 1.1, dialect=dialect) == [0, 1, 2, 10, 20]


async def test_a_slow_head_and_a_slow_first_token() -> None:
    answer = Answer(tokens=3, pace=Pace(tokens_per_s=1, head_s=5, first_token_s=3))
    assert await sent_after(answer, 4.9, 3, 0.2, 1, 1) == [0, 0, 1, 2, 3]


async def test_delays_one_by_one() -> None:
    answer = Answer(tokens=4, pace=Pace(tokens_per_s=10, delays_s=(1, 0, 2)))
    assert await sent_after(answer, 0.9, 0.2, 1.9, 0.1) == [0, 2, 3, 4]


async def test_a_silence_is_as_long_as_it_is_said_to_be() -> None:
    answer = Answer(tokens=4, faults=(Stall(tokens=2, seconds=60),))
    assert await sent_after(answer, 0, 59.9, 0.2) == [2, 2, 4]


async def test_a_head_may_come_in_two_halves() -> None:
    answer = Answer(tokens=4, faults=(Stall(at="in_head", seconds=60),))
    assert await sent_after(answer, 59.9, 0.2) == [0, 4]


async def test_an_answer_in_one_piece_takes_as_long_as_its_stream() -> None:
    clock = ManualClock()
    async with Simulator(clock=clock) as simulator, connected(simulator) as (reader, writer):
        simulator.script("m", Answer(tokens=10, pace=Pace(tokens_per_s=10, head_s=1, first_token_s=1, delays_s=(3,))))
        writer.write(request(PATHS["chat"], body_for("chat", "m", stream=False)))
        await simulator.wait_for_requests(1)
        await clock.advance(5.8)
        assert simulator.requests[0].sent_bytes == 0
        await clock.advance(0.2)
        assert b"t9 " in await reader.read(-1)
        assert simulator.requests[0].ended_after_s == pytest.approx(5.9, abs=0.01)


async def test_one_timer_wakes_what_is_due_in_its_order() -> None:
    clock = ManualClock()
    pacer = Pacer(clock)
    order: list[str] = []
    now_s = clock.now_s()

    def add_between() -> None:
        pacer.at(now_s + 1.8, lambda: order.append("between"))

    pacer.at(now_s + 2, lambda: order.append("second"))
    pacer.at(now_s + 1, lambda: order.append("first"))
    pacer.at(now_s + 1.5, lambda: order.append("never")).cancel()
    pacer.at(now_s + 2.5, lambda: order.append("third"))
    # From inside a callback, earlier than what was next.
    pacer.at(now_s + 1.6, add_between)
    await asyncio.sleep(0)
    await clock.advance(1)
    assert order == ["first"]
    await clock.advance(5)
    assert order == ["first", "between", "second", "third"]
    assert clock.sleepers == 0
    pacer.at(clock.now_s() + 1, lambda: order.append("again"))
    await asyncio.sleep(0)
    await clock.advance(1)
    assert order[-1] == "again"
    pacer.at(clock.now_s() + 1, lambda: order.append("not any more"))
    pacer.close()
    pacer.close()
    await clock.advance(2)
    assert order[-1] == "again"


async def test_a_callback_that_raises_holds_up_no_other() -> None:
    clock = ManualClock()
    pacer = Pacer(clock)
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context.get("exception")))

    def fail() -> None:
        raise RuntimeError("so")

    done: list[str] = []
    pacer.at(clock.now_s() + 1, fail)
    pacer.at(clock.now_s() + 2, lambda: done.append("due before"))
    await asyncio.sleep(0)
    await clock.advance(1)
    pacer.at(clock.now_s() + 3, lambda: done.append("due after"))
    await asyncio.sleep(0)
    await clock.advance(3)
    assert done == ["due before", "due after"]
    # It is told when the task is forgotten.
    gc.collect()
    assert [str(error) for error in raised] == ["so"]


async def test_a_thousand_paced_streams_at_once(simulator: Simulator) -> None:
    async def one() -> Received:
        return await ask(simulator, "sim/tokens-10@100")

    for received in await asyncio.gather(*(one() for _ in range(1000))):
        assert tokens(received) == 10
        assert ENDINGS["chat"] in received.body
    assert len(simulator.requests) == 1000
    await simulator.wait_for_connections(0)


async def test_a_client_that_reads_slowly_holds_its_own_answer_only(simulator: Simulator) -> None:
    async with connected(simulator) as (reader, writer):
        writer.write(request(PATHS["chat"], body_for("chat", "sim/tokens-100000")))
        await reader.readuntil(b'"t0 "')
        sent = -1
        while sent != simulator.requests[0].sent_tokens:
            sent = simulator.requests[0].sent_tokens
            await asyncio.sleep(0.02)
        assert tokens(await ask(simulator, "sim/tokens-5")) == 5
        assert simulator.requests[0].ending is None
        assert simulator.requests[0].sent_tokens < 100_000
        rest = await reader.read(-1)
    assert rest.count(b'"content":"t') == 99_999
