"""C41, C67: a client that goes away, in each phase and each way; the simulator tells when its own connection closed."""

import asyncio
import gc
import itertools
import logging
import weakref
from collections.abc import MutableMapping
from typing import Any

import msgspec
import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from headwater.events import Completed, DialectName, Outcome, Stopped
from headwater.runs.follow import Follower
from headwater.runs.live import LiveRun
from headwater.server.encoding import Gathered, Streamed
from headwater.server.http import Open
from headwater.server.responses_routes import ResponseRoute, ResponsesRoutes
from headwater.server.streams import Stream
from headwater.store.results import Page
from headwater.upstream.connection import Connection
from tests.server.house import (
    DIALECTS,
    PATHS,
    SAFETY_S,
    House,
    Line,
    asking,
    eventually,
    frames,
    open_house,
    texts,
    with_upstream,
)

pytestmark = pytest.mark.anyio

# What the upstream does, and what the client has seen when it leaves.
PHASES = {
    "before the upstream's head": ("sim/stall-at-before_head", b""),
    "after the head, before a token": ("sim/stall-at-after_head", b""),
    # A quarter of an hour: what is cut here must not have ended by itself, however busy the machine is.
    "between tokens": ("sim/tokens-50000@50", b"t3 "),
    "in a silence after tokens": ("sim/tokens-9,stall-after-4", b"t3 "),
    "in a tool call": ("sim/tool,stall-at-in_arguments", b"lookup"),
}
TOOLS = {
    "chat": [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}}],
    "responses": [{"type": "function", "name": "lookup", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}],
    "messages": [{"name": "lookup", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}],
}  # fmt: skip


async def outcome_of(house: House, run_id: str) -> Outcome:
    """Once its row is there: an unrecorded run's is written behind."""
    async with asyncio.timeout(SAFETY_S):
        while (run := await house.services.store.run("local", run_id)) is None or run.outcome is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return run.outcome


async def the_run(house: House) -> str:
    """The only one that is live."""
    await eventually(lambda: len(house.services.runs._live) == 1)
    return next(iter(house.services.runs._live))


@pytest.mark.parametrize("how", ["FIN", "RST"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_its_upstream_is_closed(
    house: House, dialect: DialectName, phase: str, stream: bool, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    model, seen = PHASES[phase]
    line = await house.raw(dialect, f"chat/{model}", stream=stream, tools=TOOLS[dialect])
    await house.simulator.wait_for_requests(1)
    run_id = await the_run(house)
    if seen and stream:
        await line.until(seen)
    elif seen:
        await eventually(lambda: house.simulator.requests[0].sent_tokens >= 4 or "tool" in model)
    if how == "FIN":
        await line.leave()
    else:
        line.reset()
    async with asyncio.timeout(SAFETY_S):
        closed = await house.simulator.wait_for_close(0)
    assert closed.closed in ("client_fin", "client_reset")
    assert await outcome_of(house, run_id) == Stopped("disconnect")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("size", [70_000, 100_000, 200_000, 1_000_000])
async def test_one_that_has_sent_a_long_body_is_missed_too(house: House, size: int) -> None:
    """A server that has stopped reading, as uvicorn does after 64 kB, hears of no FIN."""
    line = await house.line()
    body = msgspec.json.encode(asking("chat", "chat/sim/stall-at-after_head", "x" * size, stream=True))
    head = f"POST {PATHS['chat']} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
    line.writer.write(head.encode())
    # So that somebody waits for the body when it comes, and takes all of it at once.
    await asyncio.sleep(0.1)
    line.writer.write(body)
    await house.simulator.wait_for_requests(1)
    await line.leave()
    async with asyncio.timeout(SAFETY_S):
        assert (await house.simulator.wait_for_close(0)).closed in ("client_fin", "client_reset")


async def test_one_that_leaves_before_its_body_is_whole_starts_nothing(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    line = await house.line()
    line.writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{")
    await line.writer.drain()
    await line.leave()
    assert (await house.post("chat", "demo/echo")).status_code == 200
    assert caplog.records == []


async def test_a_run_that_had_ended_stays_ended(house: House) -> None:
    """C49, C67"""
    line = await house.raw("chat", "chat/sim/tokens-3", stream=True)
    head = await line.until(b"\r\n\r\n")
    run_id = head.partition(b"x-run-id: ")[2].partition(b"\r\n")[0].decode()
    await line.until(b"[DONE]")
    line.reset()
    assert await outcome_of(house, run_id) == Completed("stop")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_with_continue_the_run_goes_on_and_all_of_it_is_kept(house: House, dialect: DialectName) -> None:
    """C40"""
    model = "chat/sim/tokens-20@50"
    line = await house.raw(dialect, model, stream=True, on_disconnect="continue", session_id="s")
    await line.until(b"t1 ")
    run_id = await the_run(house)
    line.reset()
    assert await outcome_of(house, run_id) == Completed("stop")
    transcript = await house.services.store.transcript("local", "s")
    assert transcript is not None
    said = transcript.messages[-1]
    assert said.status == "complete"
    assert getattr(said.message, "text", "") == "".join(f"t{n} " for n in range(20))


async def test_a_recorded_partial_is_saved_once(house: House) -> None:
    """C43"""
    line = await house.raw("chat", "chat/sim/tokens-9,stall-after-3", stream=True, session_id="s")
    await line.until(b"t2 ")
    run_id = await the_run(house)
    await line.leave()
    assert await outcome_of(house, run_id) == Stopped("disconnect")
    transcript = await house.services.store.transcript("local", "s")
    assert transcript is not None
    assert [getattr(m.message, "text", None) for m in transcript.messages[1:]] == ["t0 t1 t2 "]
    assert [notice.code for notice in transcript.notices] == ["stopped"]


@pytest.mark.parametrize("kept", [{}, {"on_disconnect": "continue"}], ids=["unrecorded", "recorded"])
async def test_what_an_answer_took_is_given_back_without_the_garbage_collector(
    house: House, kept: dict[str, str]
) -> None:
    """Else each pause of the collector is as long as what many answers have left behind."""
    await house.post("chat", "chat/sim/tokens-1")
    gc.collect()
    gc.disable()
    try:
        for dialect, stream in itertools.product(DIALECTS, (True, False)):
            await house.post(dialect, "chat/sim/tokens-3", stream=stream, **kept)
        for _ in range(10):
            line = await house.raw("chat", "chat/sim/tokens-40@50", stream=True, **kept)
            await line.until(b"t1 ")
            line.reset()
        await eventually(lambda: not house.services.runs._live)
        await eventually(lambda: left_in_memory() <= 3)
    finally:
        gc.enable()


def left_in_memory() -> int:
    """Of 16 answers. The last one on a connection that is still open may stay with it, and so does that."""
    kinds = {LiveRun, Follower, Stream, Streamed, Gathered, RequestResponseCycle, Connection}
    return len([one for one in gc.get_objects() if type(one) in kinds])


async def test_five_hundred_cut_in_every_phase_leave_nothing_behind(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """No connection to an upstream, no socket, no task, and nothing in memory; recorded and not, in every pairing."""
    await house.post("chat", "chat/sim/tokens-1")
    before = len(asyncio.all_tasks())
    lines: list[Line] = []
    models = [model for model, _ in PHASES.values()]
    for n in range(500):
        client, upstream, model = DIALECTS[n % 3], DIALECTS[n // 3 % 3], models[n % len(models)]
        kept = {"session_id": f"s-{n}"} if n % 4 == 0 else {}
        lines.append(await house.raw(client, f"{upstream}/{model}", stream=n % 7 != 0, tools=TOOLS[client], **kept))
    async with asyncio.timeout(SAFETY_S):
        await house.simulator.wait_for_requests(501)
    for n, line in enumerate(lines):
        if n % 2:
            line.reset()
        else:
            await line.leave()
    async with asyncio.timeout(SAFETY_S):
        await house.simulator.wait_for_connections(1)
        await eventually(lambda: not house.services.runs._live and not house.services.sweep._ticks)
        await eventually(lambda: len(house.server.server_state.connections) <= 1)
        await eventually(lambda: len(asyncio.all_tasks()) <= before)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    gc.collect()
    kinds = {LiveRun, Follower, Stream, Streamed, Gathered, RequestResponseCycle}
    # The last connection has its last request, and the last cancels have their tracebacks, until others come.
    assert len([one for one in gc.get_objects() if type(one) in kinds]) < 20
    for _ in range(400):
        # Those that are not recorded are written down behind.
        runs = await house.services.store.runs("local", status="stopped", page=Page(1000))
        if len(runs.runs) == 500:
            break
        await asyncio.sleep(0.05)
    assert len(runs.runs) == 500


@pytest.mark.parametrize("more", [{}, {"on_disconnect": "cancel", "session_id": "s"}], ids=["unrecorded", "recorded"])
async def test_who_leaves_while_the_model_is_looked_up_has_asked_nobody(more: dict[str, str]) -> None:
    """C41, C48."""
    looked, told, asked = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def list_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        (looked if head.startswith(b"GET ") else asked).set()
        await told.wait()
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    slow = await asyncio.start_server(list_slowly, "127.0.0.1", 0)
    async with slow, open_house() as house:
        url = f"http://127.0.0.1:{slow.sockets[0].getsockname()[1]}/v1"
        house.services.reload(with_upstream(house.services.settings, "chat", base_url=url, list_models=True))
        line = await house.raw("chat", "chat/any", stream=True, **more)
        await looked.wait()
        line.reset()
        await eventually(lambda: not house.server.server_state.connections)
        told.set()
        ended: list[Outcome | None] = []
        while not ended or ended[0] is None:
            await asyncio.sleep(0.02)
            ended = [run.outcome for run in (await house.services.store.runs("local", page=Page(10))).runs]
        assert ended == [Stopped("disconnect")]
        assert not asked.is_set()


async def test_who_leaves_while_their_response_is_looked_up_is_no_error(house: House) -> None:
    answer = await house.post("responses", "demo/echo", background=True)
    route = ResponseRoute(house.services, Open().caller, ResponsesRoutes.retrieve)
    # As the connection leaves it when it is lost.
    scope = {
        "path_params": {"response_id": answer.json()["id"]},
        "query_string": b"stream=true",
        "headers": [],
        "extensions": {},
    }
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    await route(scope, receive, send)
    assert sent == []


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_silence_is_kept_alive_by_what_every_client_ignores(dialect: DialectName) -> None:
    """C69; and a beat that has to be sent makes it a 200, whatever comes then (C64)."""
    async with open_house(heartbeat_s=0.3) as house:
        line = await house.raw(dialect, "chat/sim/tokens-9,stall-after-2", stream=True)
        beat = b"event: ping\n" if dialect == "messages" else b": keep-alive\n"
        assert b"t1 " in await line.until(beat)
        await line.until(beat)
        await line.leave()
        quiet = await house.raw(dialect, "chat/sim/head-1,status-429", stream=True)
        head = await quiet.until(beat)
        assert head.startswith(b"HTTP/1.1 200 ")
        rest = await quiet.until(b"0\r\n\r\n")
        assert b'"error"' in rest
        await quiet.leave()
        assert texts(dialect, frames(rest)) == ""


async def test_a_connection_that_is_reset_while_it_is_idle_is_not_held_by_its_timer() -> None:
    async with open_house() as house:
        line = await house.line()
        line.ask(PATHS["chat"], asking("chat", "chat/sim/tokens-1"))
        await line.answer()
        [connection] = map(weakref.ref, house.server.server_state.connections)
        line.reset()
        async with asyncio.timeout(SAFETY_S):
            while house.server.server_state.connections:  # noqa: ASYNC110 -- nobody tells of it
                await asyncio.sleep(0.01)
        gc.collect()
        assert connection() is None
