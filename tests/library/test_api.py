"""The native API asked from Python: what comes back, what is asked again, and what is raised."""

import asyncio

import msgspec
import pytest

from headwater.client import ApiError, Client, Persistence
from headwater.events import Completed, Event, RunEnded, TextDelta
from tests.library.scripted import STREAM, Answer, Server, Wire, chunk, frame, refusal, serving

pytestmark = pytest.mark.anyio

HURRIED = Persistence(attempts=3, backoff_s=0.0, backoff_cap_s=0.0)


def json_answer(value: object, status: bytes = b"200 OK") -> bytes:
    body = msgspec.json.encode(value)
    return b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


async def asked(server: Server, method: str = "GET", body: object = None, key: str | None = None) -> object:
    client = Client(server.url.partition("/api")[0], key, HURRIED)
    try:
        async with asyncio.timeout(20):
            return await client.ask(method, "/api/x", body)
    finally:
        client.close()


def headers_of(server: Server, n: int) -> dict[str, str]:
    lines = server.requests[n].split("\r\n")[1:]
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


async def test_json_bytes_or_nothing_come_back() -> None:
    text = b"HTTP/1.1 200 OK\r\ncontent-type: text/markdown\r\ncontent-length: 2\r\n\r\nhi"
    nothing = b"HTTP/1.1 204 No Content\r\n\r\n"
    async with serving(json_answer({"a": 1}), text, nothing) as server:
        assert await asked(server, key="hw_key") == {"a": 1}
        assert headers_of(server, 0)["authorization"] == "Bearer hw_key"
        assert await asked(server) == b"hi"
        assert await asked(server, "DELETE") is None


async def test_a_refusal_has_its_words_and_is_not_asked_again() -> None:
    no = json_answer({"error": {"code": "session_busy", "message": "It is busy."}}, b"409 Conflict")
    async with serving(no) as server:
        with pytest.raises(ApiError, match="It is busy") as caught:
            await asked(server, "POST", {})
        assert (caught.value.status, caught.value.code) == (409, "session_busy")
        assert len(server.requests) == 1
    async with serving(refusal(500, b"oh")) as server:
        with pytest.raises(ApiError, match="The server answered 500"):
            await asked(server)
    async with serving(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1\r\n\r\n{") as server:
        with pytest.raises(ApiError, match="can't be read"):
            await asked(server)


@pytest.mark.parametrize(
    "lost",
    [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", refusal(503, b"")],
    ids=["closed", "cut", "draining"],
)
async def test_a_lost_answer_is_asked_for_again_under_the_same_key(lost: Answer) -> None:
    async with serving(lost, json_answer({"run": 1})) as server:
        assert await asked(server, "POST", {"content": "x"}) == {"run": 1}
        first, second = (headers_of(server, n)["idempotency-key"] for n in (0, 1))
        assert first == second


async def test_it_gives_up_after_its_attempts() -> None:
    async with serving(b"", b"", b"") as server:
        with pytest.raises(ApiError, match="closed the connection") as caught:
            await asked(server)
        assert caught.value.status is None
        assert len(server.requests) == 3
    client = Client("http://127.0.0.1:9", persistence=HURRIED)
    with pytest.raises(ApiError, match="can't be reached"):
        await client.ask("GET", "/healthz", attempts=1)
    client.close()


async def test_silence_has_an_end() -> None:
    async def never(wire: Wire) -> None:
        await wire.gone()

    async with serving(never) as server:
        client = Client(server.url.partition("/api")[0])
        with pytest.raises(ApiError, match="did not answer within"):
            await client.ask("GET", "/x", timeout_s=0.2)
        client.close()


async def test_a_connection_that_was_closed_meanwhile_is_no_failure() -> None:
    async with serving(json_answer(1), json_answer(2)) as server:
        client = Client(server.url.partition("/api")[0], persistence=HURRIED)
        assert await client.ask("GET", "/1", attempts=1) == 1
        assert await client.ask("GET", "/2", attempts=1) == 2
        client.close()


async def test_a_connection_is_used_again() -> None:
    async def twice(wire: Wire) -> None:
        await wire.send(json_answer(1))
        await wire.request()
        await wire.send(json_answer(2))
        await wire.gone()

    async with serving(twice) as server:
        client = Client(server.url.partition("/api")[0], persistence=HURRIED)
        assert [await client.ask("GET", f"/{n}", attempts=1) for n in (1, 2)] == [1, 2]
        client.close()


async def test_a_run_is_followed_and_a_loss_is_told() -> None:
    log: list[Event] = [TextDelta("One "), TextDelta("two"), RunEnded(Completed())]
    frames = [frame(seq, event) for seq, event in enumerate(log)]
    lost: list[str] = []
    async with serving(STREAM + chunk(frames[0]), STREAM + chunk(b"".join(frames[1:]))) as server:
        client = Client(server.url.partition("/api")[0], persistence=HURRIED)
        async with asyncio.timeout(20):
            assert [entry.event async for entry in client.follow("run_1", on_lost=lost.append)] == log
        client.close()
        assert server.cursors == [None, "0"]
        assert server.requests[0].startswith("GET /api/runs/run_1/events ")
    assert lost == ["the connection was closed before the run had ended"]


async def test_bytes_are_put_as_they_are() -> None:
    async with serving(json_answer({"hash": "abc"}, b"201 Created")) as server:
        client = Client(server.url.partition("/api")[0], persistence=HURRIED)
        assert await client.put_blob(b"\x89PNG", "image/png") == "abc"
        assert headers_of(server, 0)["content-type"] == "image/png"
        client.close()


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ValueError, match="no http"):
        Client("ftp://x")
