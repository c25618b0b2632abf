"""Faults strike where the script says, and parts that are left out are missing and nothing else is."""

import asyncio

import pytest

from headwater.events import DialectName
from headwater.simulate.script import Answer, BadJson, Call, Cut, Fault, Fin, HugeFrame, Raw, Reset, Stall, StreamError
from headwater.testing import Simulator
from tests.simulate.test_faults import ENDINGS, FINISHES, tokens
from tests.simulate.wire import DIALECTS, PATHS, ask, body_for, connected, request

pytestmark = pytest.mark.anyio
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@pytest.mark.parametrize(
    ("fault", "end"),
    [(Reset(at="before_head"), "reset"), (Fin(at="before_head"), "fin"), (Cut(at="before_head"), "fin")],
)
async def test_before_the_head_nothing_is_sent(simulator: Simulator, fault: Fault, end: str) -> None:
    simulator.script("m", Answer(faults=(fault,)))
    received = await ask(simulator, "m")
    assert received.data == b""
    assert received.end == end
    assert simulator.requests[0].status == 0


@pytest.mark.parametrize("stream", [True, False])
async def test_half_a_head(simulator: Simulator, stream: bool) -> None:
    simulator.script("m", Answer(faults=(Fin(at="in_head"),)))
    received = await ask(simulator, "m", stream=stream)
    assert received.data.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\n\r\n" not in received.data


async def test_after_the_head_there_is_no_body(simulator: Simulator) -> None:
    simulator.script("m", Answer(faults=(Cut(at="after_head"),)))
    received = await ask(simulator, "m")
    assert received.status == 200
    assert received.body == b""


@every_dialect
@pytest.mark.parametrize("fragments", [0, 2])
async def test_in_the_arguments_of_a_call(simulator: Simulator, dialect: DialectName, fragments: int) -> None:
    call = Call(name="look", arguments="0123456789ab", fragments=6)
    simulator.script("m", Answer(calls=(call,), faults=(Cut(at="in_arguments", tokens=fragments),)))
    received = await ask(simulator, "m", dialect)
    sent = b"".join(piece.encode() for piece in ("01", "23", "45") if f'"{piece}"'.encode() in received.body)
    assert sent == (b"0123" if fragments else b"01")


@every_dialect
async def test_around_the_finish_and_the_terminator(simulator: Simulator, dialect: DialectName) -> None:
    # In Responses the two are one event.
    both = dialect == "responses"
    cases: tuple[Fault, ...] = (
        Cut(at="before_finish"),
        Cut(at="after_finish"),
        Cut(at="before_terminator"),
        Fin(at="after_terminator"),
    )
    expected = [(False, False), (True, both), (not both, False), (True, True)]
    for fault, (finish, terminator) in zip(cases, expected, strict=True):
        simulator.script("m", Answer(faults=(fault,)))
        received = await ask(simulator, "m", dialect)
        assert tokens(received) == 8
        assert (FINISHES[dialect] in received.data, ENDINGS[dialect] in received.data) == (finish, terminator), fault


@every_dialect
async def test_what_is_left_out_is_missing(simulator: Simulator, dialect: DialectName) -> None:
    both = dialect == "responses"
    simulator.script("finish", Answer(omit=("finish",)))
    simulator.script("terminator", Answer(omit=("terminator",)))
    simulator.script("start", Answer(omit=("start",)))
    without = await ask(simulator, "finish", dialect)
    assert FINISHES[dialect] not in without.body
    assert (ENDINGS[dialect] in without.body) != both
    without = await ask(simulator, "terminator", dialect)
    assert (FINISHES[dialect] in without.body) != both
    assert ENDINGS[dialect] not in without.body
    without = await ask(simulator, "start", dialect)
    assert ENDINGS[dialect] in without.body
    assert b'"role":"assistant","content":""' not in without.body
    assert b"message_start" not in without.body
    assert b"response.created" not in without.body


async def test_a_fault_beyond_the_last_token_never_strikes(simulator: Simulator) -> None:
    received = await ask(simulator, "sim/tokens-2,reset-after-3")
    assert ENDINGS["chat"] in received.body


async def test_several_faults_strike_one_after_the_other(simulator: Simulator) -> None:
    simulator.script("m", Answer(faults=(BadJson(tokens=1), Raw(text=": so\n\n", tokens=1), Reset(tokens=2))))
    received = await ask(simulator, "m")
    assert tokens(received) == 2
    assert received.data.index(b"torn") < received.data.index(b": so")
    assert received.end == "reset"


async def test_tokens_that_wait_for_others_are_sent_before_a_fault(simulator: Simulator) -> None:
    assert tokens(await ask(simulator, "sim/writes-5,cut-after-3")) == 3
    assert tokens(await ask(simulator, "sim/writes-5,tokens-20,reset-after-7")) == 7


async def test_reasoning_counts_as_tokens(simulator: Simulator) -> None:
    received = await ask(simulator, "sim/think-2,tokens-5,cut-after-3")
    assert tokens(received) == 1
    assert b'"r1 "' in received.data


@pytest.mark.parametrize("keep_alive_s", [None, 0.01])
async def test_a_silence_that_ends_is_followed_by_the_rest(simulator: Simulator, keep_alive_s: float | None) -> None:
    simulator.script("m", Answer(faults=(Stall(tokens=2, seconds=0.03, keep_alive_s=keep_alive_s),)))
    received = await ask(simulator, "m")
    assert tokens(received) == 8
    assert received.body.count(b": keep-alive\n\n") == (3 if keep_alive_s else 0)


@every_dialect
async def test_a_silence_for_ever_may_have_keep_alives(simulator: Simulator, dialect: DialectName) -> None:
    simulator.script("m", Answer(faults=(Stall(tokens=2, keep_alive_s=0.001),)))
    ping = b"event: ping" if dialect == "messages" else b": keep-alive"
    async with connected(simulator) as (reader, writer):
        writer.write(request(PATHS[dialect], body_for(dialect, "m")))
        await reader.readuntil(b'"t1 "')
        for _ in range(5):
            await reader.readuntil(ping)
    assert (await simulator.wait_for_end(0)).ending in ("client_fin", "client_reset")


async def test_an_error_may_have_any_body(simulator: Simulator) -> None:
    for dialect in DIALECTS:
        simulator.script(dialect, Answer(faults=(StreamError(body={"oops": 1}),)))
        assert (await ask(simulator, dialect, dialect)).frames[-1] == {"oops": 1}
        assert (await ask(simulator, dialect, dialect, stream=False)).json == {"oops": 1}
    simulator.script("named", Answer(faults=(StreamError(type="overloaded_error", code="busy"),)))
    for dialect in DIALECTS:
        body = (await ask(simulator, "named", dialect)).body
        assert b"overloaded_error" in body
        assert b'"code":"busy"' in body


# ------------------------------------------------------------------ in one piece


async def test_in_one_piece_a_fault_strikes_half_way(simulator: Simulator) -> None:
    whole = (await ask(simulator, "sim/tokens-8", stream=False)).body
    simulator.script("m", *(Answer(faults=(fault,)) for fault in (Cut(tokens=3), Fin(at="in_arguments"), Reset())))
    cut = await ask(simulator, "m", stream=False)
    assert cut.chunks[-1] == b""
    assert len(cut.body) == pytest.approx(len(whole) // 2, abs=10)
    torn = await ask(simulator, "m", stream=False)
    with pytest.raises(ValueError, match="torn"):
        assert torn.chunks
    assert (await ask(simulator, "m", stream=False)).end == "reset"


async def test_in_one_piece_what_is_added_spoils_the_json(simulator: Simulator) -> None:
    simulator.script("m", Answer(faults=(HugeFrame(size_bytes=100_000),)), Answer(faults=(BadJson(),)))
    for _ in range(2):
        received = await ask(simulator, "m", stream=False)
        assert received.chunks[-1] == b""
        with pytest.raises(ValueError, match=r"Expecting|Invalid|control"):
            assert received.json


@pytest.mark.parametrize("stream", [True, False])
async def test_a_silence_for_ever_ends_with_the_client(simulator: Simulator, stream: bool) -> None:
    async with connected(simulator) as (reader, writer):
        writer.write(request(PATHS["chat"], body_for("chat", "sim/stall-after-2", stream=stream)))
        await reader.readuntil(b'"t1 "' if stream else b"chatcmpl")
        await asyncio.sleep(0)
        assert simulator.requests[0].ending is None
    assert (await simulator.wait_for_end(0)).ending in ("client_fin", "client_reset")
