"""What is told of requests, connections, and clients that went away."""

import asyncio
import json
import socket
import struct

import pytest

from headwater.simulate.journal import mask
from headwater.testing import Simulator
from tests.simulate.wire import PATHS, ask, body_for, connected, request, send

pytestmark = pytest.mark.anyio


async def journal(simulator: Simulator, method: str = "GET") -> dict[str, list[dict[str, object]]]:
    received = await send(simulator, request("/simulate/requests", method=method))
    assert received.status == 200
    told: dict[str, list[dict[str, object]]] = received.json
    return told


async def test_what_was_asked_is_told(simulator: Simulator) -> None:
    await ask(simulator, "sim/tokens-3", "responses")
    await send(simulator, request("/v1/chat/completions", b"{"))
    first, second = (await journal(simulator))["requests"]
    assert first["method"] == "POST"
    assert first["path"] == "/v1/responses"
    assert first["model"] == "sim/tokens-3"
    assert first["body"] == body_for("responses", "sim/tokens-3")
    assert (first["number"], first["connection"]) == (0, 0)
    assert (first["status"], first["ending"], first["sent_tokens"], first["complaints"]) == (200, "answered", 3, [])
    assert isinstance(first["sent_bytes"], int)
    assert first["sent_bytes"] > 1000
    assert isinstance(first["came_unix_s"], float)
    assert (second["status"], second["body"]) == (400, "{")


async def test_the_journal_is_not_in_the_journal_and_can_be_cleared(simulator: Simulator) -> None:
    await ask(simulator, "sim/echo")
    told = await journal(simulator)
    assert len(told["requests"]) == 1
    assert [connection["closed"] for connection in told["connections"]] == ["simulator_fin", None]
    told = await journal(simulator, "DELETE")
    assert told["requests"] == []
    assert len(told["connections"]) == 1
    await ask(simulator, "sim/echo")
    assert [exchange.number for exchange in simulator.requests] == [0]


async def test_keys_are_masked_and_can_be_told_apart(simulator: Simulator) -> None:
    for key in ("sk-one", "sk-two", "sk-one"):
        headers = {"Authorization": f"Bearer {key}", "X-Api-Key": key}
        await send(simulator, request("/v1/models", method="GET", headers=headers))
    told = await journal(simulator)
    assert "sk-" not in json.dumps(told)
    first, second, third = (exchange.headers["authorization"] for exchange in simulator.requests)
    assert first == third != second
    assert first == mask("Bearer sk-one")
    assert first.startswith("Bearer ***")


async def test_a_client_that_closes_is_seen_at_once(simulator: Simulator) -> None:
    async with connected(simulator) as (reader, writer):
        writer.write(request(PATHS["chat"], body_for("chat", "sim/stall-after-2")))
        await reader.readuntil(b'"t1 "')
        await reader.read(2**16)
    exchange = await simulator.wait_for_end(0)
    assert exchange.ending == "client_fin"
    assert exchange.ended_after_s is not None
    assert exchange.sent_tokens == 2
    assert (await simulator.wait_for_close(0)).closed == "client_fin"


@pytest.mark.parametrize(
    "model", ["sim/stall-after-2", "sim/stall-at-before_head", "sim/tokens-1000@100", "sim/tokens-200000"]
)
async def test_a_client_that_resets_is_seen_at_once(simulator: Simulator, model: str) -> None:
    async with connected(simulator) as (_, writer):
        writer.write(request(PATHS["chat"], body_for("chat", model)))
        await simulator.wait_for_requests(1)
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()
        assert (await simulator.wait_for_end(0)).ending == "client_reset"
    assert (await simulator.wait_for_close(0)).closed == "client_reset"


async def test_a_client_that_goes_before_it_has_asked_is_noted_too(simulator: Simulator) -> None:
    async with connected(simulator) as (_, writer):
        await simulator.wait_for_connections(1)
        writer.write(b"POST /v1/cha")
    await simulator.wait_for_connections(0)
    assert simulator.connections[0].closed == "client_fin"
    assert simulator.connections[0].requests == 0


async def test_waiting_can_be_given_up(simulator: Simulator) -> None:
    waiting = asyncio.create_task(simulator.wait_for_requests(2))
    also = asyncio.create_task(simulator.wait_for_requests(1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await ask(simulator, "sim/echo")
    await also
    assert waiting.cancelled()


async def test_the_simulators_end_ends_all_streams() -> None:
    async with Simulator() as simulator, connected(simulator) as (_, writer):
        writer.write(request(PATHS["chat"], body_for("chat", "sim/tokens-100@1")))
        await simulator.wait_for_requests(1)
        await simulator.__aexit__(None, None, None)
        assert simulator.requests[0].ending == "simulator_fin"
