"""Servers of tools: real ones over both transports, and one that does all that it should not."""

import asyncio
import runpy
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult

from headwater.agent.mcp.connection import Connection
from headwater.agent.mcp.results import returned, words
from headwater.agent.mcp.servers import RUN_IDLE_S, Servers
from headwater.agent.tools import Returned
from headwater.config.secret import Secret, SecretUrl
from headwater.config.settings import McpSettings
from headwater.testing import ManualClock
from tests.agent.toolshed import ROGUE, SAFETY_S, TRANSPORTS, Heard, called, over_http, rogue, run_of, servers

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
FILES = str(ROOT / "examples" / "mcp_files" / "server.py")


# ------------------------------------------------------------------------ real ones


@asynccontextmanager
async def files_over(transport: str, folder: Path, **more: Any) -> AsyncIterator[McpSettings]:
    if transport == "stdio":
        yield McpSettings(command=(sys.executable, FILES, str(folder)), **more)
        return
    async with over_http(runpy.run_path(FILES)["build"](folder)) as url:
        yield McpSettings(url=SecretUrl(url), **more)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_our_file_server_over_both_transports(transport: str, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("a river")
    (folder / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "big.txt").write_text("x" * 100_000)
    async with files_over(transport, folder, limit_bytes=50_000) as settings, servers(files=settings) as opened:
        box = opened.toolbox("files", run_of())
        offer = await box.offer()
        assert [tool.name for tool in offer.tools] == ["list_files", "read_file", "write_file", "find_text"]
        assert offer.tools[2].schema["required"] == ["path", "text"]
        assert (await called(box, "write_file", path="c/d.txt", text="no water")).state == "done"
        assert (folder / "c" / "d.txt").read_text() == "no water"
        picture = (await called(box, "read_file", path="b.png")).pictures[0]
        assert (picture.media_type, picture.data[:4]) == ("image/png", b"\x89PNG")
        outside = await called(box, "read_file", path="../../etc/passwd")
        assert (outside.state, "outside of the folder" in outside.text) == ("failed", True)
        heard = Heard()
        assert (await called(box, "find_text", heard, words="river")).text == "a.txt"
        assert ("a.txt", 1.0, 4.0) in heard.progress
        too_much = await called(box, "read_file", path="big.txt")
        assert (too_much.state, too_much.pictures) == ("unknown", ())


async def test_one_from_pypi_that_is_not_ours() -> None:
    async with servers(time=McpSettings(command=(sys.executable, "-m", "mcp_server_time"))) as opened:
        box = opened.toolbox("time", run_of())
        assert {tool.name for tool in (await box.offer()).tools} >= {"get_current_time", "convert_time"}
        told = await called(box, "get_current_time", timezone="Europe/Lisbon")
        assert (told.state, "Europe/Lisbon" in told.text) == ("done", True)
        wrong = await called(box, "get_current_time", timezone="Nowhere")
        assert (wrong.state, "Nowhere" in wrong.text) == ("failed", True)


# ----------------------------------------------------------------------- how they are had


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (McpSettings(command=("there-is-no-such-program",)), "No such file"),
        (McpSettings(command=(sys.executable, "-c", "raise SystemExit('I will not.')")), "Its last words: I will not."),
        (
            McpSettings(command=(sys.executable, "-c", "input(); input()"), start_timeout_s=0.5),
            "not ready within 0.5 s",
        ),
        (McpSettings(url=SecretUrl("http://127.0.0.1:9/mcp")), "failed"),
    ],
)
async def test_one_that_does_not_start_is_missing_with_its_reason(settings: McpSettings, words: str) -> None:
    async with servers(bad=settings) as opened:
        box = opened.toolbox("bad", run_of())
        offer = await box.offer()
        assert offer.tools == ()
        assert words in offer.missing["bad"]
        refused = await called(box, "note")
        assert (refused.state, refused.text.startswith("The tool was not run: ")) == ("failed", True)


async def test_one_that_keeps_failing_rests_longer_each_time() -> None:
    clock = ManualClock()
    connection = Connection("bad", McpSettings(command=("there-is-no-such-program",)), clock, jitter=lambda: 1.0)
    for _ in range(5):
        offering = asyncio.create_task(connection.offer())
        while not offering.done():
            await clock.advance(0.5)
            await asyncio.sleep(0.01)
    assert connection.starts == 5
    # After 0.5, 1, 2, 4 and 8 seconds: this one is too long to be waited for.
    assert "It is tried again in 8 s." in (await connection.offer()).missing["bad"]
    assert connection.starts == 5
    await clock.advance(8)
    await connection.offer()
    assert connection.starts == 6
    await connection.close()


async def test_it_gets_no_more_of_our_environment_than_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not for tools")
    async with servers(rogue=rogue(tmp_path / "j", env={"MINE": Secret("1")})) as opened:
        names = (await called(opened.toolbox("rogue", run_of()), "environment", word="")).text.split()
    assert "MINE" in names
    assert "PATH" in names
    assert "OPENAI_API_KEY" not in names


async def test_pictures_and_resources_are_taken_as_far_as_models_can(tmp_path: Path) -> None:
    async with servers(rogue=rogue(tmp_path / "j")) as opened:
        told = await called(opened.toolbox("rogue", run_of()), "picture", word="a")
    assert [(one.media_type, one.data[8:]) for one in told.pictures] == [("image/png", b"a"), ("image/tiff", b"a")]
    assert told.text.split("\n\n") == [
        "Look:",
        "[An image is left out: it is no base64.]",
        "[A sound of type audio/wav is left out: models take none.]",
        "[file:///a.txt]\nA.",
        "[file:///c.bin: 9 bytes of type unknown, left out]",
        "[A resource: d, at file:///d.txt. More.]",
    ]


async def test_a_process_for_each_session_or_one_for_all(tmp_path: Path) -> None:
    async with servers(own=rogue(tmp_path / "j"), all=rogue(tmp_path / "j", scope="shared")) as opened:
        for name, count in (("own", 3), ("all", 1)):
            for run in (run_of("s"), run_of("s", "run_2"), run_of("t"), run_of(None, "run_3")):
                assert (await called(opened.toolbox(name, run), "note", word="a")).state == "done"
            assert len([key for key in opened._connections if key[0] == name]) == count


async def test_what_it_lists_is_asked_for_once(tmp_path: Path) -> None:
    async with servers(rogue=rogue(tmp_path / "j")) as opened:
        first = await opened.toolbox("rogue", run_of("s")).offer()
        assert await opened.toolbox("rogue", run_of("t")).offer() is first
        # So nothing was started for the second.
        assert len(opened._connections) == 1


async def test_what_it_offers_is_asked_for_again_when_it_says_so(tmp_path: Path) -> None:
    async with servers(rogue=rogue(tmp_path / "j")) as opened:
        box = opened.toolbox("rogue", run_of())
        await box.offer()
        assert opened.listed("rogue") is not None
        await called(box, "note", word="changed")
        async with asyncio.timeout(SAFETY_S):
            while opened.listed("rogue") is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.005)


async def test_one_that_has_lost_its_list_is_missing(tmp_path: Path) -> None:
    settings = McpSettings(command=(sys.executable, ROGUE, str(tmp_path / "j"), "unlisted"))
    async with servers(rogue=settings) as opened:
        missing = (await opened.toolbox("rogue", run_of()).offer()).missing
    assert "could not be listed" in missing["rogue"]


def test_what_is_only_structured_is_told_as_json() -> None:
    result = CallToolResult(content=[], structured_content={"a": [1]})
    assert returned(result) == Returned('{"a":[1]}')
    assert words(ExceptionGroup("many", [ExceptionGroup("more", [OSError("this one")]), ValueError()])) == "this one"
    assert words(TimeoutError()) == "TimeoutError"


async def test_one_that_nobody_needs_any_more_is_ended(tmp_path: Path) -> None:
    clock = ManualClock()
    opened = Servers({"rogue": rogue(tmp_path / "j", idle_s=60.0)}, clock)
    for run in (run_of(), run_of(None)):
        await called(opened.toolbox("rogue", run), "note", word="a")
    assert len(opened._connections) == 2
    start_s = clock.now_s()
    ended: list[float] = []
    async with asyncio.timeout(SAFETY_S):
        while len(ended) < 2:
            await clock.advance(1)
            await asyncio.sleep(0.01)
            ended += [clock.now_s() - start_s] * (2 - len(ended) - len(opened._connections))
    assert RUN_IDLE_S < ended[0] < 60 < ended[1]
    await opened.close()
