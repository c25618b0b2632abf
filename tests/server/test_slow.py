"""A client that reads slowly: it holds up its own upstream, or nobody; and it gets every word."""

import asyncio
from typing import Any

import pytest

from headwater.events import DialectName
from headwater.simulate import Answer
from tests.server.house import DIALECTS, PATHS, SAFETY_S, House, Line, asking, frames, open_house, texts

pytestmark = pytest.mark.anyio

WORDS = [f"w{n:05}{'x' * 1000} " for n in range(8000)]
"""More than all buffers on the way can hold."""


async def behind(house: House, dialect: DialectName, **more: Any) -> Line:
    house.simulator.script("long", Answer(text="".join(WORDS)))
    line = await house.line(receive_bytes=4096)
    line.ask(PATHS[dialect], asking(dialect, "chat/long", stream=True, **more))
    return line


async def sent_no_more(house: House, number: int = 0) -> None:
    """Until the number of tokens that the upstream could get rid of does not grow any more."""
    before = -1
    async with asyncio.timeout(SAFETY_S):
        while before != (sent := house.simulator.requests[number].sent_tokens) or sent == 0:
            before = sent
            await asyncio.sleep(0.3)


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
        await sent_no_more(house)
        # The system may take all of it from the upstream; the server must not.
        assert house.services.runs.running() == 1
        assert house.buffered_bytes() < 1_000_000
        read = await all_of(line)
        assert WORDS[-1].rstrip().encode() in read
        assert b'"error"' not in read.replace(b'"error":null', b"")


async def test_one_that_begins_behind_an_answer_that_is_not_read_waits_as_well() -> None:
    """In a pipeline: its client is behind before it has said a word."""
    async with open_house() as house:
        house.simulator.script("long", Answer(text="".join(WORDS)))
        line = await house.line(receive_bytes=4096)
        line.ask(PATHS["chat"], asking("chat", "chat/long"))
        line.ask(PATHS["chat"], asking("chat", "chat/long", stream=True))
        await house.simulator.wait_for_requests(2)
        await sent_no_more(house, 1)
        [live] = map(house.services.runs.live, [run.id for run in house.services.runs.unrecorded()])
        assert live is not None
        assert len(live.fold.text()) < 1_000_000
        assert WORDS[-1].rstrip().encode() in await line.answer()
        assert WORDS[-1].rstrip().encode() in await all_of(line)


async def test_a_recorded_run_waits_for_nobody_and_the_client_is_a_cursor(house: House) -> None:
    """C50: what it missed is read back from the store."""
    line = await behind(house, "chat", session_id="s")
    async with asyncio.timeout(SAFETY_S):
        assert (await house.simulator.wait_for_end(0)).ending == "answered"
        await house.services.runs.settle()
    assert house.buffered_bytes() < 1_000_000
    read = await all_of(line)
    position = 0
    for word in WORDS:
        position = read.find(word[:6].encode(), position)
        assert position >= 0, word[:6]
    assert b"[DONE]" in read


async def test_a_log_that_is_read_in_many_pieces_is_told_whole(house: House) -> None:
    answer = await house.openai.responses.create(model="chat/sim/tokens-20000", input="Hi", background=True)
    async with asyncio.timeout(SAFETY_S):
        await house.services.runs.settle()
    stream = await house.http.get(f"/v1/responses/{answer.id}?stream=true")
    said = texts("responses", frames(stream.content))
    assert said == "".join(f"t{n} " for n in range(20_000))


async def test_a_log_that_vanishes_under_its_reader_is_broken_off(house: House) -> None:
    house.simulator.script("long", Answer(text="".join(WORDS)))
    answer = await house.openai.responses.create(model="chat/long", input="Hi", background=True)
    line = await house.line(receive_bytes=4096)
    line.ask(f"/v1/responses/{answer.id}?stream=true", b"", method="GET")
    await line.until(b"\r\n\r\n")
    async with asyncio.timeout(SAFETY_S):
        await house.services.runs.settle()
    assert await house.services.store.delete_run("local", answer.id.replace("resp_", "run_")) is None
    read = await all_of(line)
    assert b"run_interrupted" in read
    assert b"response.completed" not in read
