"""A server of tools as a process of ours: its pipes as the streams that the SDK talks through.

Not the SDK's own, which reads a line of any length and as many of them as come. Here a message has a limit, a flood is
read at a pace, what is no message is passed over, and the process ends with all that it has started.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from headwater.agent.mcp.pace import Pace
from headwater.agent.mcp.underway import Streams
from headwater.clock import Clock

_log = logging.getLogger("headwater.agent")

TAIL_BYTES: Final = 2000
"""Of what it says on stderr, for whoever asks why it did not start."""
_LEAVE_S: Final = 1.0
"""For so long it may go by itself once its input is closed, and once more after SIGTERM."""


class Stdio:
    """`open` it once."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        *,
        clock: Clock,
        limit_bytes: int,
    ) -> None:
        self._name = name
        self._command = command
        self._env = env
        self._cwd = cwd
        self._clock = clock
        self._limit_bytes = limit_bytes
        self._garbage = 0
        self.stderr_tail = b""
        self.why = ""
        """What ended it, if that was us."""
        self.gone = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """Raises `OSError`."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=get_default_environment() | dict(self._env),
            cwd=self._cwd,
            limit=self._limit_bytes,
            # What it has started goes when it goes; and our Ctrl-C is not its own.
            start_new_session=os.name == "posix",
        )
        heard, hearing = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        saying, said = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(process, heard)),
            asyncio.create_task(self._write(process, said)),
            asyncio.create_task(self._listen(process)),
        ]
        try:
            yield hearing, saying
        finally:
            for stream in (heard, hearing, saying, said):
                stream.close()
            try:
                await _end(process)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(
        self, process: asyncio.subprocess.Process, heard: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        assert process.stdout is not None
        pace = Pace(self._clock.now_s())
        try:
            while line := await process.stdout.readline():
                if (message := self._parsed(line)) is not None:
                    await heard.send(message)
                wait_s = pace.wait_s(len(line), self._clock.now_s())
                if wait_s > 0:
                    await self._clock.sleep(wait_s)
        except ValueError:
            self.why = f"It sent a message of more than {self._limit_bytes} bytes (mcp.{self._name}.limit_bytes)."
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            self.gone.set()
            heard.close()

    def _parsed(self, line: bytes) -> SessionMessage | None:
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            # Many a server prints what it should log. Once is enough to know it.
            if not self._garbage and line.strip():
                _log.warning("mcp %s: what it writes to stdout is no message: %r", self._name, line[:200])
            self._garbage += 1
            return None

    async def _write(
        self, process: asyncio.subprocess.Process, said: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        assert process.stdin is not None
        try:
            async for message in said:
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(line.encode() + b"\n")
                await process.stdin.drain()
        except (OSError, anyio.ClosedResourceError):
            self.gone.set()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """To stderr: unread, it would fill up and hold up the server."""
        assert process.stderr is not None
        while piece := await process.stderr.read(4096):
            self.stderr_tail = (self.stderr_tail + piece)[-TAIL_BYTES:]


async def _end(process: asyncio.subprocess.Process) -> None:
    """By closing its input, as the protocol wants it; then less politely, and all that it has started."""
    assert process.stdin is not None
    try:
        with contextlib.suppress(OSError):
            process.stdin.close()
        await _gone(process)
        _signal(process, signal.SIGTERM)
        if process.returncode is None:
            await _gone(process)
    finally:
        # Also if nobody has the time to wait, and if it is gone: what it has left behind may not be.
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        if process.returncode is None:
            await _gone(process)
        # Somebody who inherited a pipe may keep it open: the transport would stay, and nothing public closes it.
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:  # pragma: no cover - Windows
            process.kill()


async def _gone(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LEAVE_S):
            await process.wait()
