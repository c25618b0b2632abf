"""Servers of tools that are slow, crash, flood, talk nonsense or say nothing: none harms more than its own call."""

import asyncio
from pathlib import Path

import pytest

from headwater.agent.mcp.pace import AT_ONCE, PER_S, Pace
from headwater.dialects.history import UNKNOWN
from tests.agent.toolshed import TRANSPORTS, called, lines, rogue, rogue_over, run_of, servers

pytestmark = [pytest.mark.anyio]

OVER_BOTH = pytest.mark.parametrize("transport", TRANSPORTS)
COMES_TO = {
    "garbage": ("unknown", UNKNOWN),
    "never": ("unknown", "no answer within 2 s"),
    "stubborn": ("unknown", "no answer within 2 s"),
    "slow": ("unknown", "no answer within 2 s"),
    "wrong": ("unknown", "its answer could not be read"),
    "refuse": ("failed", "Not with me."),
    "late": ("done", "late a"),
    "note": ("done", "noted a"),
}
"""Of all calls at once: the state, and words of the text."""


@OVER_BOTH
async def test_what_a_bad_answer_comes_to(transport: str, tmp_path: Path) -> None:
    with rogue_over(transport, tmp_path / "j", timeout_s=2.0, cancel_timeout_s=0.5) as settings:
        async with servers(rogue=settings) as opened:
            box = opened.toolbox("rogue", run_of())
            results = await asyncio.gather(*(called(box, name, word="a") for name in COMES_TO))
            for (name, (state, said)), result in zip(COMES_TO.items(), results, strict=True):
                assert (result.state, said in result.text) == (state, True), (name, result)
            # The same process, which has taken no harm.
            assert (await called(box, "note", word="b")).text == "noted b"
            found = await lines(tmp_path / "j", len(COMES_TO) + 3)
            assert sorted(found) == sorted(
                [*(f"{name} a" for name in COMES_TO), "slow a cancelled", "late a cancelled", "note b"]
            )


async def test_a_server_that_crashes_is_started_again_and_its_call_is_not_repeated(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    async with servers(rogue=rogue(journal)) as opened:
        box = opened.toolbox("rogue", run_of())
        lost = await called(box, "crash", word="a")
        assert (lost.state, "the connection to its server was lost" in lost.text) == ("unknown", True)
        assert (await called(box, "note", word="b")).text == "noted b"
        assert await lines(journal, 2) == ["crash a", "note b"]


async def test_a_server_that_crashes_and_is_not_ours_to_start_is_missing(tmp_path: Path) -> None:
    with rogue_over("http", tmp_path / "j") as settings:
        async with servers(rogue=settings) as opened:
            box = opened.toolbox("rogue", run_of())
            lost = await called(box, "crash", word="a")
            assert lost.state == "unknown", lost
            assert (await called(box, "note", word="b")).state != "done"
            assert await lines(tmp_path / "j", 1) == ["crash a"]


@OVER_BOTH
@pytest.mark.parametrize("name", ["flood", "endless"])
async def test_a_flood_harms_only_its_own_call(name: str, transport: str, tmp_path: Path) -> None:
    limits = {"timeout_s": 1.0, "cancel_timeout_s": 0.1, "limit_bytes": 1_000_000}
    with rogue_over(transport, tmp_path / "j", **limits) as settings:
        async with servers(rogue=settings, other=rogue(tmp_path / "k")) as opened:
            other = opened.toolbox("other", run_of())
            assert (await called(other, "note", word="a")).text == "noted a"
            flooding = asyncio.create_task(called(opened.toolbox("rogue", run_of()), name, word="a"))
            turns = 0
            while not flooding.done():
                assert (await called(other, "note", word="b")).text == "noted b"
                turns += 1
            assert turns >= 1
            assert flooding.result().state == "unknown"
            # Another session has a connection of its own.
            assert (await called(opened.toolbox("rogue", run_of("t")), "note", word="c")).text == "noted c"


def test_a_flood_is_read_at_its_pace() -> None:
    pace = Pace(0.0)
    assert pace.wait_s(0, 0.0) == 0.0
    waits = [pace.wait_s(4096, 0.0) for _ in range(int(AT_ONCE))]
    assert waits[0] == 0.0
    assert waits[-1] == pytest.approx((AT_ONCE + 1) / PER_S)
    assert pace.wait_s(0, 100.0) == 0.0
