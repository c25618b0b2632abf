"""Model turns over real sockets, against the simulator: attempts and connections as the upstream saw them (C20-C30)."""

from typing import Any

import pytest

from headwater.events import Completed, DialectName, Failed, Incomplete, Notice
from headwater.simulate.script import (
    Answer,
    BadChunk,
    BadJson,
    Call,
    Cut,
    Fin,
    Http,
    Pace,
    Reset,
    Stall,
    StreamError,
    Writes,
)
from tests.upstream.turns import GOOD, asking, each_dialect

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """As the server has it."""
    return "asyncio", {"use_uvloop": True}


@each_dialect
@pytest.mark.parametrize(
    "writes", [Writes(), Writes(every_bytes=1), Writes(seed=7), Writes(tokens=100), Writes(framing="close")]
)
async def test_an_answer_however_it_is_cut(dialect: DialectName, writes: Writes) -> None:
    async with asking(dialect) as up:
        assert await up.outcome(Answer(text="Hi there, you.", writes=writes)) == Completed("stop")
        assert up.heard.fold.message().text == "Hi there, you."
        [request] = up.simulator.requests
        assert request.complaints == []


@each_dialect
async def test_connections_are_used_again(dialect: DialectName) -> None:
    async with asking(dialect) as up:
        for _ in range(5):
            assert await up.outcome(GOOD) == Completed("stop")
        assert len(up.simulator.connections) == 1


async def test_a_connection_is_used_again_also_if_the_end_of_the_body_comes_late() -> None:
    async with asking() as up:
        late = Answer(text="Hi there", faults=(Stall(at="after_terminator", seconds=0.1),))
        assert await up.outcome(late) == Completed("stop")
        assert up.simulator.requests[0].ending is None
        await up.simulator.wait_for_end(0)
        assert await up.outcome(late) == Completed("stop")
        assert len(up.simulator.connections) == 1


@pytest.mark.parametrize("at", ["before_head", "after_head"])
async def test_a_request_on_a_kept_connection_is_not_sent_twice_in_secret(at: Any) -> None:
    """C20: it may have been taken, and be paid for. `retries = 0` is one attempt."""
    async with asking(retries=0) as up:
        assert await up.outcome(GOOD) == Completed("stop")
        assert isinstance(await up.outcome(Answer(faults=(Fin(at=at),))), Failed)
        assert len(up.simulator.requests) == 2
        assert len(up.simulator.connections) == 1


async def test_a_body_that_never_ends_does_not_keep_its_connection() -> None:
    async with asking() as up:
        assert await up.outcome(Answer(faults=(Stall(at="after_terminator"),))) == Completed("stop")
        assert (await up.simulator.wait_for_close(0)).closed in ("client_fin", "client_reset")


@each_dialect
@pytest.mark.parametrize(
    "fault",
    [
        Reset(at="before_head"),
        Cut(at="before_head"),
        Reset(at="after_head"),
        Fin(at="after_head"),
        Cut(at="after_head"),
        BadChunk(at="after_head"),
        BadJson(at="after_head"),
        StreamError(at="after_head", message="Connection lost", type="api_connection_error"),
    ],
    ids=lambda fault: f"{fault.__struct_config__.tag} {fault.at}",
)
async def test_a_fault_before_the_first_token_is_tried_again(dialect: DialectName, fault: Any) -> None:
    """C20, C24: each attempt on a connection of its own, none left open."""
    async with asking(dialect) as up:
        assert await up.outcome(Answer(faults=(fault,), times=2), GOOD) == Completed("stop")
        assert len(up.simulator.requests) == 3
        assert up.heard.reasons == ["first", "retry", "retry"]
        assert up.heard.fold.message().text == "Hi there"
        # A body that came to its end is no reason to give up its connection.
        if isinstance(fault, Reset | Fin | BadChunk):
            for n in range(2):
                await up.simulator.wait_for_close(n)


@each_dialect
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_status_that_may_pass_is_tried_again(dialect: DialectName, status: int) -> None:
    """C22."""
    async with asking(dialect) as up:
        busy = Answer(http=Http(status=status, headers={"retry-after": "0"}), times=2)
        assert await up.outcome(busy, GOOD) == Completed("stop")
        assert len(up.simulator.requests) == 3


@each_dialect
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_status_that_will_not_pass_is_told_at_once(dialect: DialectName, status: int) -> None:
    """C21."""
    async with asking(dialect) as up:
        failed = await up.failure(Answer(http=Http(status=status, message="You may not.")), GOOD)
        assert (failed.reason, failed.status) == ("refused", status)
        assert failed.message.startswith("You may not.")
        assert len(up.simulator.requests) == 1


@each_dialect
async def test_an_upstream_that_cannot_stream(dialect: DialectName) -> None:
    """C23."""
    async with asking(dialect, retries=0) as up:
        assert await up.outcome(Answer(text="Hi there", streaming="refused")) == Completed("stop")
        assert up.heard.reasons == ["first", "not_streaming"]
        assert up.heard.fold.message().text == "Hi there"


@each_dialect
@pytest.mark.parametrize(
    "fault",
    [Cut(tokens=3), Fin(tokens=3), Reset(tokens=3), BadChunk(tokens=3), BadJson(tokens=3), StreamError(tokens=3)],
    ids=lambda fault: fault.__struct_config__.tag,
)
async def test_what_was_delivered_before_a_fault_is_kept(dialect: DialectName, fault: Any) -> None:
    """C25, C11."""
    async with asking(dialect) as up:
        paced = Pace(delays_s=(0.02, 0.02, 0.02, 0.02))
        failed = await up.failure(Answer(text="one two three four five", faults=(fault,), pace=paced))
        assert failed.reason in ("upstream_truncated", "upstream_error")
        text = up.heard.fold.message().text
        # A reset may overtake what was sent just before it.
        assert "one two three".startswith(text.strip()) or fault.__struct_config__.tag == "bad_json"
        assert text or isinstance(fault, Reset)
        assert len(up.simulator.requests) == 1 or not text
        if isinstance(fault, Reset | Fin | BadChunk):
            await up.simulator.wait_for_close(0)


@each_dialect
@pytest.mark.parametrize("fault", [Cut(at="in_arguments", tokens=1), Fin(at="in_arguments", tokens=1)])
async def test_a_torn_call_is_dropped_and_named(dialect: DialectName, fault: Any) -> None:
    """C26."""
    async with asking(dialect) as up:
        failed = await up.failure(Answer(calls=(Call(arguments={"path": "a" * 50}),), faults=(fault,)))
        assert "Not called: write" in failed.message
        assert [notice.code for notice in up.heard.of(Notice)] == ["tool_call_dropped"]
        assert len(up.simulator.requests) == 1


@each_dialect
async def test_an_unknown_finish_is_never_success(dialect: DialectName) -> None:
    """C14."""
    async with asking(dialect) as up:
        assert "network_error" in (await up.failure(Answer(finish="network_error"))).message


@each_dialect
async def test_a_length_is_no_failure(dialect: DialectName) -> None:
    async with asking(dialect) as up:
        assert await up.outcome(Answer(finish="length")) == Incomplete("length")
