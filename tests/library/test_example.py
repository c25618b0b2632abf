"""The FastAPI example, as a real process on a real socket: no word is lost or repeated, whatever happens to it."""

import asyncio
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headwater.client import follow
from headwater.conversation import Message
from headwater.events import (
    Completed,
    Entry,
    Incomplete,
    Interrupted,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    Stopped,
    TextDelta,
)
from headwater.streams import open_streams

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "fastapi_app"


class App:
    """The example under uvicorn, with its database in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = 0
        self.port = 0

    @asynccontextmanager
    async def started(self) -> AsyncIterator["subprocess.Popen[bytes]"]:
        self._starts += 1
        log = self._folder / f"log{self._starts}"
        with self._process(log) as process:
            try:
                while not (found := re.search(r"running on http://127\.0\.0\.1:(\d+)", log.read_text())):
                    assert process.poll() is None, log.read_text()
                    await asyncio.sleep(0.05)
                self.port = int(found[1])
                yield process
            finally:
                process.kill()
        assert "Traceback" not in log.read_text()

    def _process(self, log: Path) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "uvicorn", "app:app", "--app-dir", str(EXAMPLE), "--port", "0"]
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "STREAMS": f"sqlite:{self._folder / 'streams.db'}"}
        with log.open("wb") as written:
            return subprocess.Popen(command, stderr=written, stdout=written, env=variables)

    def ask(self, path: str, method: str = "POST", **headers: str) -> tuple[int, Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                body = answer.read()
                return answer.status, json.loads(body) if body else None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    async def start(self, question: str = "one two") -> str:
        status, answer = await asyncio.to_thread(self.ask, f"/runs?question={question.replace(' ', '+')}")
        assert status == 201
        return str(answer["id"])


class Line:
    """What is between a client and the app, and can be cut."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._app.port)
            self._open.add(there_writer)
            await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))
        except OSError:
            writer.transport.abort()

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    def url(self, run_id: str) -> str:
        return f"http://127.0.0.1:{self.port}/runs/{run_id}/events"


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@asynccontextmanager
async def line_to(app: App) -> AsyncIterator[Line]:
    line = Line(app)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    line.port = server.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        line.cut()
        server.close()


def words(entries: list[Entry]) -> list[str]:
    return [entry.event.text for entry in entries if isinstance(entry.event, TextDelta)]


def expected(count: int) -> list[str]:
    return [f"{n}:{'two' if n % 2 else 'one'} " for n in range(count)]


def check(entries: list[Entry], ending: RunEnded) -> None:
    """One beginning, every word once and in order, one ending."""
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    assert isinstance(entries[0].event, RunStarted)
    assert words(entries) == expected(len(entries) - 2)
    assert entries[-1].event == ending


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(tmp_path)


async def test_a_connection_that_is_cut_again_and_again_loses_nothing(app: App) -> None:
    """C50."""
    async with asyncio.timeout(60), app.started(), line_to(app) as line:
        run_id = await app.start()
        seen: list[Entry] = []
        async for entry in follow(line.url(run_id)):
            seen.append(entry)
            if entry.seq in (3, 4, 15):
                line.cut()
        check(seen, RunEnded(Completed("stop")))
        assert len(words(seen)) == 40
        # Who comes late, or comes back from somewhere in the midst, sees the same.
        assert [entry async for entry in follow(line.url(run_id))] == seen
        assert [entry async for entry in follow(line.url(run_id), after=17)] == seen[18:]
        assert [entry async for entry in follow(line.url(run_id), after=41)] == []


async def test_a_stop_ends_it_for_all_who_follow(app: App) -> None:
    """C42, C43, C47."""
    async with asyncio.timeout(60), app.started(), line_to(app) as line:
        run_id = await app.start()
        other = asyncio.create_task(_all(line.url(run_id)))
        seen: list[Entry] = []
        async for entry in follow(line.url(run_id)):
            seen.append(entry)
            if entry.seq == 5:
                answer = await asyncio.to_thread(app.ask, f"/runs/{run_id}/stop")
                assert answer == (200, {"outcome": "Stopped(reason='user')"})
        check(seen, RunEnded(Stopped("user")))
        assert await other == seen
        assert len(words(seen)) < 40
        assert await asyncio.to_thread(app.ask, f"/runs/{run_id}/stop") == answer


async def test_a_killed_process_takes_back_no_word_that_was_seen(app: App) -> None:
    """C51."""
    async with asyncio.timeout(90), line_to(app) as line:
        seen: list[Entry] = []
        async with app.started() as process:
            run_id = await app.start()
            following = asyncio.create_task(_all(line.url(run_id), seen))
            while len(seen) < 8:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
            process.kill()
        async with app.started():
            # The same follower, which has been asking all the while.
            await following
            check(seen, RunEnded(Interrupted("crash")))
            assert 7 <= len(words(seen)) < 40
            assert await _all(line.url(run_id)) == seen


async def test_what_is_not_there_is_said_by_its_status(app: App) -> None:
    async with asyncio.timeout(60), app.started():
        run_id = await app.start("one")
        await asyncio.to_thread(app.ask, f"/runs/{run_id}/stop")
        entries = await _all(f"http://127.0.0.1:{app.port}/runs/{run_id}/events")
        last = {"Last-Event-ID": str(entries[-1].seq)}
        ahead = {"Last-Event-ID": str(entries[-1].seq + 1)}
        assert app.ask(f"/runs/{run_id}/events", "GET", **last) == (204, None)
        assert app.ask(f"/runs/{run_id}/events", "GET", **ahead)[0] == 410
        assert app.ask("/runs/run_none/events", "GET")[0] == 404
        assert app.ask("/runs/run_none/stop")[0] == 404


async def _all(url: str, seen: list[Entry] | None = None) -> list[Entry]:
    seen = [] if seen is None else seen
    async for entry in follow(url):
        seen.append(entry)
    return seen


def shown() -> list[str]:
    """The code on the page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "library.md").read_text(), re.DOTALL)


def test_the_page_shows_the_example_as_it_is() -> None:
    assert (EXAMPLE / "app.py").read_text() in shown()


class Model:
    """What the page's agent asks."""

    cut_short = True

    def __init__(self) -> None:
        self.closed = 0

    async def __call__(self, messages: tuple[Message, ...]) -> AsyncIterator[str]:
        yield f"{len(messages)} message"

    async def close(self) -> None:
        self.closed += 1


async def test_the_agent_on_the_page_does_what_the_page_says() -> None:
    [code] = [code for code in shown() if "def agent" in code]
    model = Model()
    names: dict[str, Any] = {"my_model": model}
    exec(code, names)
    async with asyncio.timeout(20), open_streams("memory:") as streams:
        run = await streams.start(names["agent"], said="Rivers?")
        events = [entry.event async for entry in streams.follow(run.id)][1:]
    assert events == [
        ReasoningDelta("They ask about rivers."),
        TextDelta("1 message"),
        RunEnded(Incomplete("length")),
    ]
    assert model.closed == 1
