"""Requests that get no task: begun when their body is there, answered from the upstream's own callbacks to the end."""

import asyncio
from contextvars import ContextVar
from typing import Any, Final

import pytest

from headwater.config.secret import Secret
from headwater.config.settings import KeySettings
from headwater.events import DialectName
from headwater.server.direct import HELD_BYTES
from tests.server.house import DIALECTS, PATHS, House, Line, asking, eventually, open_house

pytestmark = pytest.mark.anyio

ENDLESS: Final = "chat/sim/tokens-50000@50"
WHOSE: Final = ContextVar("whose", default="nobody's")


def unstored(dialect: DialectName, model: str) -> dict[str, Any]:
    more: dict[str, Any] = {"store": False} if dialect == "responses" else {}
    return asking(dialect, model, stream=True, **more)


async def known(house: House, *headers: str) -> Line:
    """A connection to a server that has looked up by now whether there are keys."""
    line = await house.line()
    line.ask(PATHS["chat"], asking("chat", "chat/sim/tokens-1"), *headers)
    assert b"200 OK" in await line.answer()
    return line


def tasks(house: House) -> int:
    return len(house.server.server_state.tasks)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_needs_no_store_needs_no_task(house: House, dialect: DialectName) -> None:
    line = await known(house)
    line.ask(PATHS[dialect], unstored(dialect, ENDLESS))
    await line.until(b"t3 ")
    assert tasks(house) == 0
    assert len(house.services.runs.unrecorded()) == 1


@pytest.mark.parametrize("more", [{"session_id": "s"}, {"on_disconnect": "continue"}])
async def test_what_a_store_keeps_has_one(house: House, more: dict[str, Any]) -> None:
    line = await known(house)
    line.ask(PATHS["chat"], asking("chat", ENDLESS, stream=True, **more))
    await line.until(b"t3 ")
    assert tasks(house) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_body_that_comes_later_and_in_pieces_is_waited_for(house: House, dialect: DialectName) -> None:
    line = await known(house)
    sent = len(house.simulator.requests)
    request = line.request(PATHS[dialect], unstored(dialect, "chat/sim/tokens-3"))
    for start in range(0, len(request), 40):
        line.writer.write(request[start : start + 40])
        await line.writer.drain()
        await asyncio.sleep(0.001)
        assert tasks(house) == 0
    answer = await line.answer()
    assert b"t2 " in answer
    assert len(house.simulator.requests) == sent + 1


async def test_a_long_body_has_a_task_that_reads_it(house: House) -> None:
    line = await known(house)
    body = asking("chat", ENDLESS, "word " * (HELD_BYTES // 5), stream=True)
    line.ask(PATHS["chat"], body)
    await line.until(b"t3 ")
    assert tasks(house) == 1


async def test_who_leaves_with_half_a_body_has_begun_nothing(house: House) -> None:
    line = await known(house)
    sent = len(house.simulator.requests)
    line.writer.write(line.request(PATHS["chat"], asking("chat", ENDLESS))[:-5])
    await line.writer.drain()
    await line.leave()
    await eventually(lambda: not house.server.server_state.connections)
    assert (len(house.simulator.requests), house.services.runs.running(), tasks(house)) == (sent, 0, 0)


async def test_who_is_behind_holds_the_run_up_and_gets_all_of_it_once_they_read() -> None:
    async with open_house(behind_limit_bytes=50_000) as house:
        await known(house)
        line = await house.line(receive_bytes=4096)
        line.ask(PATHS["chat"], asking("chat", "chat/sim/tokens-50000", stream=True), "connection: close")
        await eventually(lambda: house.buffered_bytes() > 50_000)
        assert (tasks(house), house.services.runs.running()) == (0, 1)
        body = await line.rest()
        assert b"t49999 " in body
        assert body.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


async def test_a_request_counts_once_whichever_way_it_goes() -> None:
    keys = (KeySettings(owner="a", key=Secret("one"), requests_per_minute=5),)
    async with open_house(keys=keys) as house:
        line = await house.line()
        found = []
        for model in ["chat/sim/tokens-1"] * 3 + ["no/such", "chat/sim/tokens-1", "chat/sim/tokens-1"]:
            line.ask(PATHS["chat"], asking("chat", model), "authorization: Bearer one")
            found.append((await line.answer())[9:12])
        assert found == [b"200", b"200", b"200", b"404", b"200", b"429"]


async def test_a_stranger_is_refused_before_the_body_is_looked_at() -> None:
    keys = (KeySettings(owner="a", key=Secret("one")),)
    async with open_house(keys=keys) as house:
        line = await known(house, "authorization: Bearer one")
        line.ask(PATHS["chat"], b"{", "authorization: Bearer two")
        assert b" 401 " in await line.answer()
        line.ask(PATHS["chat"], b"{", "authorization: Bearer one")
        assert b" 400 " in await line.answer()


async def test_one_that_is_shutting_down_begins_nothing_at_once(house: House) -> None:
    line = await known(house)
    house.services.accepting = False
    line.ask(PATHS["chat"], asking("chat", ENDLESS))
    assert b" 503 " in await line.answer()


async def test_a_pipeline_of_both_kinds_is_answered_in_its_order(house: House) -> None:
    line = await known(house)
    for n in range(1, 7):
        more = {"on_disconnect": "continue"} if n % 2 else {}
        line.ask(PATHS["chat"], asking("chat", f"chat/sim/tokens-{n}", stream=True, **more))
    for n in range(1, 7):
        answer = await line.answer()
        assert b"t%d " % (n - 1) in answer
        assert b"t%d " % n not in answer
