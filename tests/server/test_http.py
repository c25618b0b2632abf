"""What any HTTP client may do to a server: too much, nonsense, one thing after the other."""

import pytest

from headwater.dialects import DIALECTS as SPOKEN
from headwater.errors import StoreError
from tests.server.house import DIALECTS, PATHS, House, asking, open_house

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_body_past_the_limit_is_refused_announced_or_not(dialect: str) -> None:
    async with open_house(max_body_bytes=1000) as house:
        path = PATHS[dialect]  # type: ignore[index]
        announced = await house.line()
        announced.ask(path, b"x" * 1001)
        head = await announced.rest()
        assert head.startswith(b"HTTP/1.1 413 ")
        assert b"body_too_large" in head
        chunked = await house.line()
        chunked.writer.write(f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        chunked.writer.write(b"3e8\r\n%b\r\n1\r\nx\r\n" % (b"x" * 1000))
        assert (await chunked.rest()).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"model": 1}', b'{"nonsense": 1}'])
async def test_nonsense_is_a_400_in_the_dialects_own_shape(house: House, dialect: str, body: bytes) -> None:
    answer = await house.http.post(PATHS[dialect], content=body)  # type: ignore[index]
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


async def test_another_method_is_405_and_another_path_404(house: House) -> None:
    for path in PATHS.values():
        assert (await house.http.get(path)).status_code == 405
    assert (await house.http.get("/v1/nothing")).status_code == 404


async def test_a_connection_is_good_for_many_streams(house: House) -> None:
    line = await house.line()
    for n in range(5):
        line.ask(PATHS["chat"], asking("chat", "chat/sim/echo", f"word{n}", stream=n % 2 == 0))
        assert f"word{n}".encode() in await line.answer()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_connection_that_is_to_be_closed_is_closed_after_the_whole_answer(house: House, stream: bool) -> None:
    line = await house.line()
    line.ask(PATHS["chat"], asking("chat", "chat/sim/echo", "word", stream=stream), "connection: close")
    answer = await line.rest()
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"content-length: " in head:
        # Also a stream, if all of it was there before its head was sent.
        assert b"connection: close" in head
        assert f"content-length: {len(body)}".encode() in head
        assert body.endswith(b"[DONE]\n\n" if stream else b"}")
    else:
        assert body.endswith(b"[DONE]\n\n\r\n0\r\n\r\n")
    assert b"word" in body


async def test_a_stream_is_closed_and_never_said_to_be(house: House) -> None:
    """Where that is said, a client may take a connection that breaks for the end."""
    line = await house.line()
    line.ask(PATHS["chat"], asking("chat", "chat/sim/tokens-5@50", stream=True), "connection: close")
    head, _, body = (await line.rest()).partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    assert b"connection:" not in head
    assert body.endswith(b"[DONE]\n\n\r\n0\r\n\r\n")


async def test_requests_in_a_pipeline_are_answered_one_after_the_other(house: House) -> None:
    line = await house.line()
    for n in range(3):
        line.ask(PATHS["chat"], asking("chat", "chat/sim/echo", f"word{n}", stream=True))
    for n in range(3):
        answer = await line.answer()
        assert f"word{n}".encode() in answer
        assert b"[DONE]" in answer


async def test_a_head_is_answered_without_a_body(house: House) -> None:
    answer = await house.post("responses", "demo/echo", stream=True, background=True)
    path = f"/v1/responses/{answer.headers['x-run-id'].replace('run_', 'resp_')}"
    looked = await house.http.head(f"{path}?stream=true")
    assert (looked.status_code, looked.content) == (200, b"")


async def test_one_that_is_shutting_down_begins_nothing(house: House) -> None:
    house.services.drain()
    for dialect in DIALECTS:
        answer = await house.post(dialect, "demo/echo")
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "x-should-retry" not in answer.headers
    assert (await house.http.get("/readyz")).status_code == 503
    assert (await house.http.get("/healthz")).status_code == 200


async def test_readiness_is_that_the_store_can_be_written_to(house: House) -> None:
    assert (await house.http.get("/readyz")).text == "ready\n"


def test_a_refusal_of_ours_above_500_is_not_the_clients_fault() -> None:
    from headwater.server.dialect_routes import out_of_order

    error = out_of_order(StoreError("no room is left", trouble="full"))
    for dialect in SPOKEN.values():
        assert dialect.error(error).status == 503
