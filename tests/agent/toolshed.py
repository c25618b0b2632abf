"""Servers of tools for tests: a rogue over either transport, and how they are called."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import uvicorn
from mcp.server.mcpserver import MCPServer

from headwater.agent.mcp.servers import Servers
from headwater.agent.tools import Returned, Tool, Toolbox
from headwater.clock import SystemClock
from headwater.config.secret import SecretUrl
from headwater.config.settings import McpSettings
from headwater.records import Run

ROOT: Final = Path(__file__).parents[2]
ROGUE: Final = str(Path(__file__).parent / "rogue.py")
TRANSPORTS: Final = ("stdio", "http")
SAFETY_S: Final = 30.0


def run_of(session_id: str | None = "s", id: str = "run_1") -> Run:
    return Run(id=id, owner="ann", model="m", created_at=0.0, session_id=session_id)


def rogue(journal: Path, **more: Any) -> McpSettings:
    return McpSettings(command=(sys.executable, ROGUE, str(journal)), **more)


@contextmanager
def rogue_over(transport: str, journal: Path, **more: Any) -> Iterator[McpSettings]:
    """Over HTTP it runs already."""
    if transport == "stdio":
        yield rogue(journal, **more)
        return
    command = [sys.executable, "-m", "tests.agent.rogue_http", str(journal)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield McpSettings(url=SecretUrl(f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"), **more)
        finally:
            process.kill()


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


@asynccontextmanager
async def over_http(server: MCPServer) -> AsyncIterator[str]:
    """The address of one of the official SDK, in this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(server.streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
        running = uvicorn.Server(config)
        task = asyncio.create_task(running.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            running.should_exit = True
            await task
