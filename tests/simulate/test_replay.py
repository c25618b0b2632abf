"""A recording is played back as it was: status, headers, bytes, timing and end."""

import pytest

from headwater.recording import HowEnded, Recording, read, write_end, write_head, write_piece
from headwater.simulate.replay import Replays
from headwater.testing import ManualClock, Simulator
from tests.simulate.wire import PATHS, ask, body_for, connected, request, send

pytestmark = pytest.mark.anyio

PIECES = [(100.0, b"data: {\n"), (100.0, b""), (350.0, b"\n\xff"), (300.0, b"data: [DONE]\n\n")]


def recorded(
    end: HowEnded | None = "complete", *, status: int = 200, text: bytes = b"", model: str = "gpt-x"
) -> Recording:
    head = write_head(
        dialect="chat",
        upstream="u",
        model=model,
        request={},
        at_unix_s=0,
        t_ms=50,
        status=status,
        headers=[("content-type", "text/event-stream"), ("x-a", "1"), ("x-a", "2")],
    )
    pieces = [(60.0, text)] if text else PIECES
    lines = [head, *(write_piece(t, data) for t, data in pieces)]
    return read(b"".join(lines) + (write_end(400, end) if end else b""))


async def test_bytes_head_and_pieces_are_the_recordings() -> None:
    async with Simulator(replays=Replays([recorded()], speed=1000)) as simulator:
        received = await ask(simulator, "whatever")
        assert received.status == 200
        assert received.head.count("x-a: ") == 2
        assert received.chunks == [b"data: {\n", b"\n\xff", b"data: [DONE]\n\n", b""]
        assert simulator.requests[0].ending == "answered"
        assert (await send(simulator, request("/v1/models", method="GET"))).json["data"][0]["id"] == "gpt-x"


async def test_the_timing_is_the_recordings_at_the_speed_that_was_asked_for() -> None:
    for speed, steps in ((1.0, (0.049, 0.002, 0.05, 0.24, 0.02, 0.05)), (0.5, (0.098, 0.004, 0.1, 0.48, 0.04, 0.1))):
        clock = ManualClock()
        async with (
            Simulator(replays=Replays([recorded()], speed=speed), clock=clock) as simulator,
            connected(simulator) as (_, writer),
        ):
            writer.write(request(PATHS["chat"], body_for("chat", "m")))
            await simulator.wait_for_requests(1)
            sent = []
            for step in steps:
                await clock.advance(step)
                sent.append(simulator.requests[0].sent_bytes)
            head = sent[1]
            # What was read in one turn comes in one turn, also if its time stands still or goes back.
            assert [count - head for count in sent] == [-head, 0, 13, 13, 39, 44]


@pytest.mark.parametrize(("end", "closed"), [("closed", "fin"), ("reset", "reset"), (None, "fin")])
async def test_the_end_is_the_recordings(end: HowEnded | None, closed: str) -> None:
    async with Simulator(replays=Replays([recorded(end)], speed=1000)) as simulator:
        received = await ask(simulator, "m")
        assert received.end == closed
        assert received.chunks[-1] == b"data: [DONE]\n\n"


async def test_what_was_abandoned_stays_silent() -> None:
    async with (
        Simulator(replays=Replays([recorded("abandoned")], speed=1000)) as simulator,
        connected(simulator) as (reader, writer),
    ):
        writer.write(request(PATHS["chat"], body_for("chat", "m")))
        await reader.readuntil(b"[DONE]\n\n\r\n")
        assert simulator.requests[0].ending is None


async def test_where_there_was_no_head_there_is_none() -> None:
    nothing = Recording(recorded(status=0).head, (), recorded("reset").end)
    async with Simulator(replays=Replays([nothing], speed=1000)) as simulator:
        received = await ask(simulator, "m")
        assert (received.data, received.end) == (b"", "reset")
        assert simulator.requests[0].status == 0


async def test_several_are_played_one_after_the_other() -> None:
    replays = Replays([recorded(text=b"a"), recorded(text=b"b", model="other")], speed=1000)
    async with Simulator(replays=replays) as simulator:
        assert [(await ask(simulator, "m")).body for _ in range(3)] == [b"a", b"b", b"b"]
        simulator.clear()
        assert (await ask(simulator, "m")).body == b"a"


async def test_what_was_recorded_in_another_dialect_is_not_played() -> None:
    async with Simulator(replays=Replays([recorded()])) as simulator:
        received = await ask(simulator, "m", "messages")
        assert received.status == 404
        assert "but in: chat" in received.json["error"]["message"]
