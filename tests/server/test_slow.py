"""A client that reads slowly: it holds up its own upstream, or nobody; and it gets every word."""

import asyncio
from typing import Any

import pytest

from headwater.events import DialectName
from tests.server.house import DIALECTS, PATHS, SAFETY_S, House, Line, asking, open_house

pytestmark = pytest.mark.anyio

MANY = 60_000


async def behind(house: House, dialect: DialectName, **more: Any) -> Line:
    line = await house.line(receive_bytes=4096)
    line.ask(PATHS[dialect], asking(dialect, f"chat/sim/tokens-{MANY}", stream=True, **more))
    return line


async def sent_no_more(house: House) -> int:
    """How many tokens the upstream could get rid of, once that does not grow any more."""
    before = -1
    async with asyncio.timeout(SAFETY_S):
        while before != (sent := house.simulator.requests[0].sent_tokens) or sent == 0:
            before = sent
            await asyncio.sleep(0.3)
    return before


async def all_of(line: Line) -> bytes:
    pieces: list[bytes] = []
    async with asyncio.timeout(SAFETY_S):
        while not pieces or b"0\r\n\r\n" not in (pieces[-2] if len(pieces) > 1 else b"") + pieces[-1]:
            pieces.append(await line.reader.read(65536))
    return b"".join(pieces)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_unrecorded_run_waits_for_it(dialect: DialectName) -> None:
    more = {"store": False} if dialect == "responses" else {}
    async with open_house() as house:
        line = await behind(house, dialect, **more)
        await house.simulator.wait_for_requests(1)
        assert await sent_no_more(house) < MANY
        read = await all_of(line)
        assert f"t{MANY - 1} ".encode() in read
        assert b'"error"' not in read.replace(b'"error":null', b"")


async def test_a_recorded_run_waits_for_nobody_and_the_client_is_a_cursor(house: House) -> None:
    """C50: what it missed is read back from the store."""
    line = await behind(house, "chat", session_id="s")
    async with asyncio.timeout(SAFETY_S):
        assert (await house.simulator.wait_for_end(0)).ending == "answered"
        await house.services.runs.settle()
    read = await all_of(line)
    position = 0
    for n in range(0, MANY, 97):
        position = read.find(f'"t{n} "'.encode(), position)
        assert position >= 0, n
    assert b"[DONE]" in read
