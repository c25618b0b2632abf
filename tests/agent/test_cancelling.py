"""A call that is cancelled: its server hears of it, once, and may still answer for a moment."""

import asyncio
from pathlib import Path

import pytest
from mcp.server.mcpserver import Context, MCPServer

from headwater.agent.tools import Returned
from headwater.config.secret import SecretUrl
from headwater.config.settings import McpSettings
from tests.agent.toolshed import SAFETY_S, TRANSPORTS, Heard, called, lines, over_http, rogue_over, run_of, servers

pytestmark = pytest.mark.anyio

OVER_BOTH = pytest.mark.parametrize("transport", TRANSPORTS)


async def cancelled(settings: McpSettings, name: str) -> Returned | None:
    """A call, cancelled once it is under way; None: it came to nothing. Its server has taken no harm."""
    async with servers(rogue=settings) as opened:
        box = opened.toolbox("rogue", run_of())
        heard = Heard()
        task = asyncio.create_task(called(box, name, heard, word="a"))
        await heard.first.wait()
        task.cancel()
        await asyncio.wait({task})
        assert (await called(box, "note", word="b")).text == "noted b"
        return None if task.cancelled() else task.result()


@OVER_BOTH
async def test_a_tool_that_answers_within_the_moment_has_answered(transport: str, tmp_path: Path) -> None:
    with rogue_over(transport, tmp_path / "j", cancel_timeout_s=3.0) as settings:
        assert await cancelled(settings, "late") == Returned("late a")
    assert await lines(tmp_path / "j", 3) == ["late a", "late a cancelled", "note b"]


@OVER_BOTH
async def test_one_that_says_no_more_than_that_it_was_cancelled_is_not_waited_for(
    transport: str, tmp_path: Path
) -> None:
    """Nothing says how far it had come."""
    with rogue_over(transport, tmp_path / "j", cancel_timeout_s=3.0) as settings:
        assert await cancelled(settings, "slow") is None
    assert await lines(tmp_path / "j", 3) == ["slow a", "slow a cancelled", "note b"]


@OVER_BOTH
async def test_one_that_never_answers_has_its_moment_and_no_more(transport: str, tmp_path: Path) -> None:
    """And hears of it once: the SDK's own word comes after ours."""
    with rogue_over(transport, tmp_path / "j", cancel_timeout_s=0.2) as settings:
        assert await cancelled(settings, "mute") is None
    found = await lines(tmp_path / "j", 3)
    assert sorted(found) == ["mute a", "mute a cancelled", "note b"]


async def test_no_moment_at_all(tmp_path: Path) -> None:
    with rogue_over("stdio", tmp_path / "j", cancel_timeout_s=0.0) as settings:
        assert await cancelled(settings, "late") is None
    assert sorted(await lines(tmp_path / "j", 3)) == ["late a", "late a cancelled", "note b"]


async def test_where_hanging_up_is_the_cancel_the_tool_hears_of_it_at_once() -> None:
    """The protocol of 2026 over HTTP, with a server of the official SDK."""
    begun, seen = asyncio.Event(), asyncio.Event()
    server = MCPServer("patient")

    @server.tool()
    async def wait(word: str, context: Context) -> str:
        begun.set()
        try:
            await asyncio.sleep(SAFETY_S)
        except asyncio.CancelledError:
            seen.set()
            raise
        return word

    async with over_http(server) as url, servers(rogue=McpSettings(url=SecretUrl(url))) as opened:
        box = opened.toolbox("rogue", run_of())
        task = asyncio.create_task(called(box, "wait", word="a"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(SAFETY_S):
            await seen.wait()
