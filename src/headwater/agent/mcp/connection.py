"""One connection to a server of tools: started when it is needed, and again, after a while, when it was lost.

A `Toolbox`. Owns what a failure means: a call that never reached the server has failed, one that did and was not
answered is unknown. No call is made twice, whatever becomes of the connection.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    PARSE_ERROR,
    Implementation,
    ServerNotification,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

import headwater
from headwater.agent.mcp.http import over_http
from headwater.agent.mcp.results import returned, words
from headwater.agent.mcp.stdio import Stdio
from headwater.agent.mcp.underway import Streams, Underway, watched
from headwater.agent.tools import Offer, Progress, Returned, Tool
from headwater.clock import Clock
from headwater.config.settings import McpSettings
from headwater.dialects.history import UNKNOWN
from headwater.errors import HeadwaterError
from headwater.policy import backoff

_log = logging.getLogger("headwater.agent")
# What it has to say of a server is said here, once, in words of ours; it would say it for every message.
logging.getLogger("mcp").setLevel(logging.CRITICAL)

_PAGES: Final = 100
"""Of a list of tools: one that never ends must not keep us."""
_FIRST_REST_S: Final = 0.5
_LONGEST_REST_S: Final = 60.0
_PATIENCE_S: Final = 5.0
"""A rest that is over so soon is waited for."""
_CLOSE_S: Final = 5.0
_BROKEN: Final = (ValidationError, ValueError, RuntimeError, OSError, httpx2.HTTPError, httpx2.StreamError)
_CUT: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)


_UNREAD: Final = (PARSE_ERROR, INTERNAL_ERROR)
"""Over HTTP also: a gateway's 502, or an answer that is too large. The tool may well have run."""
_ODD_ANSWER: Final = "Unexpected content type"
_FORGOTTEN: Final = "Session terminated"
"""The server has been started again, and knows nothing of us: so shall we."""


class UnavailableError(HeadwaterError):
    """The server can't be used; nothing was asked of it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Connection:
    def __init__(
        self,
        name: str,
        settings: McpSettings,
        clock: Clock,
        *,
        on_change: Callable[[], None] = lambda: None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`on_change`: what it offers is no longer what it was."""
        self._name = name
        self._settings = settings
        self._clock = clock
        self._on_change = on_change
        self._jitter = jitter
        self._client: Client | None = None
        self._starting: asyncio.Future[Client | UnavailableError] | None = None
        self._serving: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._failures = 0
        self._rests_until_s = float("-inf")
        self._why = ""
        self._busy = 0
        self._used_s = clock.now_s()
        self.starts = 0
        """How often it was started."""

    def idle_s(self, now_s: float) -> float:
        return 0.0 if self._busy else now_s - self._used_s

    # ----------------------------------------------------------------- as a toolbox

    async def offer(self) -> Offer:
        self._busy += 1
        try:
            return Offer(await self._list(await self._connected()))
        except UnavailableError as error:
            return Offer(missing={self._name: error.message})
        finally:
            self._unused()

    async def call(self, tool: Tool, arguments: dict[str, Any], progress: Progress) -> Returned:
        self._busy += 1
        try:
            client = await self._connected()
        except UnavailableError as error:
            return Returned(f"The tool was not run: {error.message}", "failed")
        else:
            return await self._call(client, tool, arguments, progress)
        finally:
            self._unused()

    async def close(self) -> None:
        self._ended.set()
        if self._serving is not None:
            await asyncio.wait({self._serving}, timeout=_CLOSE_S)
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)

    def _unused(self) -> None:
        self._busy -= 1
        self._used_s = self._clock.now_s()

    # ------------------------------------------------------------------- what is asked

    async def _list(self, client: Client) -> tuple[Tool, ...]:
        tools: list[Tool] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                for _ in range(_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    tools += [
                        Tool(server=self._name, name=one.name, description=one.description, schema=one.input_schema)
                        for one in page.tools
                    ]
                    if (cursor := page.next_cursor) is None:
                        break
        except (TimeoutError, MCPError, *_BROKEN, *_CUT) as error:
            raise UnavailableError(f"Its tools could not be listed: {words(error)}.") from error
        return tuple(tools)

    async def _call(self, client: Client, tool: Tool, arguments: dict[str, Any], report: Progress) -> Returned:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            report(message or "", progress, total)

        limit_s = self._settings.timeout_s
        call = Underway(client, tool.name, arguments, on_progress)
        try:
            async with asyncio.timeout(limit_s):
                result = await asyncio.shield(call.answer)
        except TimeoutError:
            late = await call.give_up(self._moment_s(client))
            if late is None:
                text = f"there was no answer within {limit_s:g} s. It was cancelled, and may have had an effect."
                return Returned(f"{UNKNOWN}: {text}", "unknown")
            result = late
        except asyncio.CancelledError:
            late = await call.give_up(self._moment_s(client))
            if late is None:
                raise
            result = late
        except MCPError as error:
            return self._refused(error)
        except _CUT as error:
            return self._lost(error)
        except _BROKEN as error:
            return Returned(f"{UNKNOWN}: its answer could not be read ({words(error)[:200]}).", "unknown")
        self._failures = 0
        return returned(result)

    def _moment_s(self, client: Client) -> float:
        """For how long one that is given up may still answer. Over HTTP the newest protocol has no word for giving up
        but to hang up, and who has hung up hears no answer."""
        hangs_up = not self._settings.command and client.protocol_version in MODERN_PROTOCOL_VERSIONS
        return 0.0 if hangs_up else self._settings.cancel_timeout_s

    def _refused(self, error: MCPError) -> Returned:
        """An error for an answer: the server's own, or one that the SDK has made of something else."""
        if error.code == CONNECTION_CLOSED:
            return self._lost(error)
        if error.code in _UNREAD or error.message.startswith(_ODD_ANSWER):
            return Returned(f"{UNKNOWN}: its answer could not be read ({error.message[:200]}).", "unknown")
        if error.message == _FORGOTTEN:
            self._ended.set()
        return Returned(f"The tool's server refused the call: {error.message}", "failed")

    def _lost(self, error: BaseException) -> Returned:
        why = self._why or words(error)
        self._ended.set()
        return Returned(f"{UNKNOWN}: the connection to its server was lost during the call. {why}", "unknown")

    # -------------------------------------------------------------------- being there

    async def _connected(self) -> Client:
        """Raises `UnavailableError`."""
        if self._client is not None and not self._ended.is_set():
            return self._client
        if self._starting is None:
            await self._rest()
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._serving, self._starting), name=f"mcp {self._name}")
        # Whoever gives up waiting does so for themselves.
        started = await asyncio.shield(self._starting)
        if isinstance(started, UnavailableError):
            raise started
        return started

    async def _rest(self) -> None:
        rest_s = self._rests_until_s - self._clock.now_s()
        if rest_s > _PATIENCE_S:
            raise UnavailableError(f"{self._why} It is tried again in {rest_s:.0f} s.")
        if rest_s > 0:
            await self._clock.sleep(rest_s)

    async def _serve(
        self, before: asyncio.Task[None] | None, started: "asyncio.Future[Client | UnavailableError]"
    ) -> None:
        """One life of the connection. All of it in one task: what the SDK begins in one must end there."""
        if before is not None:
            await asyncio.wait({before})
        self._ended.clear()
        self.starts += 1
        stdio = self._stdio()
        task = asyncio.current_task()
        assert task is not None
        waiting = asyncio.get_running_loop().call_later(self._settings.start_timeout_s, task.cancel)
        try:
            async with self._client_over(stdio.open() if stdio is not None else self._http()) as client:
                waiting.cancel()
                self._client, self._starting = client, None
                started.set_result(client)
                await self._until_over(stdio)
            self._why = "" if stdio is None else stdio.why or "Its process has ended."
        except asyncio.CancelledError:
            self._why = f"It was not ready within {self._settings.start_timeout_s:g} s.{_tail(stdio)}"
        except (MCPError, TimeoutError, *_BROKEN, *_CUT, BaseExceptionGroup) as error:
            self._why = f"It could not be {'reached' if stdio is None else 'started'}: {words(error)}.{_tail(stdio)}"
        finally:
            waiting.cancel()
            self._client = self._starting = None
            self._ended.set()
            self._failures += 1
            rest_s = backoff(self._failures, _FIRST_REST_S, _LONGEST_REST_S, self._jitter())
            self._rests_until_s = self._clock.now_s() + rest_s
            if not started.done():
                _log.warning("mcp %s: %s", self._name, self._why)
                started.set_result(UnavailableError(self._why))

    async def _until_over(self, stdio: Stdio | None) -> None:
        over = {asyncio.create_task(self._ended.wait())}
        if stdio is not None:
            over.add(asyncio.create_task(stdio.gone.wait()))
        try:
            await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in over:
                task.cancel()

    def _client_over(self, transport: AbstractAsyncContextManager[Streams]) -> Client:
        async def on_message(message: ServerNotification | Exception) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._on_change()

        info = Implementation(name="headwater", version=headwater.__version__)
        return Client(watched(transport), client_info=info, message_handler=on_message, cache=None)

    def _stdio(self) -> Stdio | None:
        settings = self._settings
        if not settings.command:
            return None
        return Stdio(
            self._name,
            settings.command,
            {name: value.reveal() for name, value in settings.env.items()},
            None if settings.cwd is None else str(Path(settings.cwd).expanduser()),
            clock=self._clock,
            limit_bytes=settings.limit_bytes,
        )

    def _http(self) -> AbstractAsyncContextManager[Streams]:
        assert self._settings.url is not None
        return over_http(
            self._settings.url.reveal(),
            {name: value.reveal() for name, value in self._settings.headers.items()},
            clock=self._clock,
            silent_s=self._settings.timeout_s + _CLOSE_S,
            limit_bytes=self._settings.limit_bytes,
        )


def _tail(stdio: Stdio | None) -> str:
    said = b"" if stdio is None else stdio.stderr_tail.strip()
    return f" Its last words: {said.decode(errors='replace').splitlines()[-1][:300]}" if said else ""
