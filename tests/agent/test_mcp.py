"""Servers of tools: real ones over both transports, and one that does all that it should not."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult

from headwater.agent.mcp.connection import Connection
from headwater.agent.mcp.pace import AT_ONCE, PER_S, Pace
from headwater.agent.mcp.results import returned, words
from headwater.agent.mcp.servers import RUN_IDLE_S, Servers
from headwater.agent.tools import Returned, Tool, Toolbox
from headwater.clock import SystemClock
from headwater.config.secret import Secret, SecretUrl
from headwater.config.settings import McpSettings
from headwater.records import Run
from headwater.testing import ManualClock

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
FILES = str(ROOT / "examples" / "mcp_files" / "server.py")
ROGUE = str(Path(__file__).parent / "rogue.py")
SAFETY_S = 30.0


def run_of(session_id: str | None = "s", id: str = "run_1") -> Run:
    return Run(id=id, owner="ann", model="m", created_at=0.0, session_id=session_id)


def rogue(journal: Path, **more: Any) -> McpSettings:
    return McpSettings(command=(sys.executable, ROGUE, str(journal)), **more)


@asynccontextmanager
async def servers(**settings: McpSettings) -> AsyncIterator[Servers]:
    opened = Servers(settings, SystemClock())
    try:
        async with asyncio.timeout(SAFETY_S * 2):
            yield opened
    finally:
        await opened.close()


class Heard:
    def __init__(self) -> None:
        self.progress: list[tuple[str, float | None, float | None]] = []
        self.first = asyncio.Event()

    def __call__(self, text: str, done: float | None, total: float | None) -> None:
        self.progress.append((text, done, total))
        self.first.set()


async def called(box: Toolbox, name: str, heard: Heard | None = None, **arguments: Any) -> Returned:
    return await box.call(Tool(server="any", name=name), arguments, heard or Heard())


async def lines(journal: Path, count: int) -> list[str]:
    """Once there are so many."""
    async with asyncio.timeout(SAFETY_S):
        while not journal.exists() or len(journal.read_text().splitlines()) < count:  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.01)
    return journal.read_text().splitlines()  # noqa: ASYNC240


@contextmanager
def web(folder: Path) -> Iterator[str]:
    """The file server, over HTTP."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, FILES, str(folder), "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


# ------------------------------------------------------------------------ real ones


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_our_file_server_over_both_transports(transport: str, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("a river")
    (folder / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with web(folder) as url:
        stdio = McpSettings(command=(sys.executable, FILES, str(folder)))
        async with servers(files=stdio if transport == "stdio" else McpSettings(url=SecretUrl(url))) as opened:
            box = opened.toolbox("files", run_of())
            offer = await box.offer()
            while offer.missing:
                # It takes a moment to listen.
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
            assert ("a.txt", 1.0, 3.0) in heard.progress
        if transport == "http":
            (folder / "big.txt").write_text("x" * 100_000)
            async with servers(files=McpSettings(url=SecretUrl(url), limit_bytes=20_000)) as opened:
                too_much = await called(opened.toolbox("files", run_of()), "read_file", path="big.txt")
                assert (too_much.state, too_much.pictures) == ("unknown", ())


async def test_one_from_pypi_that_is_not_ours() -> None:
    async with servers(time=McpSettings(command=(sys.executable, "-m", "mcp_server_time"))) as opened:
        box = opened.toolbox("time", run_of())
        assert {tool.name for tool in (await box.offer()).tools} >= {"get_current_time", "convert_time"}
        told = await called(box, "get_current_time", timezone="Europe/Lisbon")
        assert (told.state, "Europe/Lisbon" in told.text) == ("done", True)
        wrong = await called(box, "get_current_time", timezone="Nowhere")
        assert (wrong.state, "Nowhere" in wrong.text) == ("failed", True)


# ------------------------------------------------------------------------ bad ones


async def test_a_call_that_is_not_answered_ends_at_its_limit_and_is_cancelled(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    async with servers(rogue=rogue(journal, timeout_s=0.3)) as opened:
        box = opened.toolbox("rogue", run_of())
        heard = Heard()
        late = await called(box, "slow", heard, word="a")
        assert (late.state, "no answer within 0.3 s" in late.text) == ("unknown", True)
        assert heard.progress == [("began", 1.0, 9.0)]
        assert await lines(journal, 2) == ["slow a", "slow a cancelled"]
        # The same process, which has taken no harm.
        assert (await called(box, "note", word="b")).text == "noted b"


async def test_a_cancel_is_passed_on(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    async with servers(rogue=rogue(journal)) as opened:
        box = opened.toolbox("rogue", run_of())
        heard = Heard()
        task = asyncio.create_task(called(box, "slow", heard, word="a"))
        await heard.first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await lines(journal, 2) == ["slow a", "slow a cancelled"]


async def test_a_server_that_crashes_is_started_again_and_its_call_is_not_repeated(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    async with servers(rogue=rogue(journal)) as opened:
        box = opened.toolbox("rogue", run_of())
        lost = await called(box, "crash", word="a")
        assert (lost.state, "the connection to its server was lost" in lost.text) == ("unknown", True)
        assert (await called(box, "note", word="b")).text == "noted b"
        assert await lines(journal, 2) == ["crash a", "note b"]


@pytest.mark.parametrize(
    ("name", "state", "words"),
    [
        ("garbage", "unknown", "no answer within 0.4 s"),
        ("never", "unknown", "no answer within 0.4 s"),
        ("wrong", "unknown", "its answer could not be read"),
        ("refuse", "failed", "Not with me."),
        ("stubborn", "unknown", "no answer within 0.4 s"),
    ],
)
async def test_what_a_bad_answer_comes_to(name: str, state: str, words: str, tmp_path: Path) -> None:
    async with servers(rogue=rogue(tmp_path / "j", timeout_s=0.4)) as opened:
        box = opened.toolbox("rogue", run_of())
        bad, good = await asyncio.gather(called(box, name, word="a"), called(box, "note", word="b"))
        assert (bad.state, words in bad.text) == (state, True), bad
        assert good.text == "noted b"
        assert (await called(box, "note", word="c")).text == "noted c"


@pytest.mark.parametrize("name", ["flood", "endless"])
async def test_a_flood_harms_only_its_own_call(name: str, tmp_path: Path) -> None:
    settings = rogue(tmp_path / "j", timeout_s=2.0, limit_bytes=1_000_000)
    async with servers(rogue=settings, other=rogue(tmp_path / "k")) as opened:
        flooding = asyncio.create_task(called(opened.toolbox("rogue", run_of()), name, word="a"))
        other = opened.toolbox("other", run_of())
        turns = 0
        while not flooding.done():
            assert (await called(other, "note", word="b")).text == "noted b"
            turns += 1
        assert turns >= (5 if name == "flood" else 1)
        assert flooding.result().state == "unknown"
        # Another session has a process of its own.
        assert (await called(opened.toolbox("rogue", run_of("t")), "note", word="c")).text == "noted c"


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


# ----------------------------------------------------------------------- how they are had


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


def test_a_flood_is_read_at_its_pace() -> None:
    pace = Pace(0.0)
    assert pace.wait_s(0, 0.0) == 0.0
    waits = [pace.wait_s(4096, 0.0) for _ in range(int(AT_ONCE))]
    assert waits[0] == 0.0
    assert waits[-1] == pytest.approx((AT_ONCE + 1) / PER_S)
    assert pace.wait_s(0, 100.0) == 0.0
