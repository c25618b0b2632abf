"""A call on its way to a server of tools. One that is given up may still answer, for a moment.

The SDK does both at once: it tells the server, and looks away. So its call is left waiting here, the server is told by
us, and what the SDK would tell it a second time is held back. Which request is whose is seen where it is written.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final

from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.message import SessionMessage
from mcp_types import (
    CallToolResult,
    CancelledNotification,
    CancelledNotificationParams,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
)

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

_LAST_WORD_S: Final = 1.0
"""For so long the SDK may take to tell a server what we have not told it."""


class Underway:
    def __init__(self, client: Client, name: str, arguments: dict[str, Any], on_progress: ProgressFnT) -> None:
        self._client = client
        self.id: RequestId | None = None
        """On the wire; None: it is not there yet."""
        self.is_cancelled = False
        """Its server was told."""
        self.answer = asyncio.create_task(self._ask(name, arguments, on_progress), name=f"mcp call {name}")

    async def _ask(self, name: str, arguments: dict[str, Any], on_progress: ProgressFnT) -> CallToolResult:
        _CURRENT.set(self)
        return await self._client.call_tool(name, arguments, progress_callback=on_progress)

    async def give_up(self, moment_s: float) -> CallToolResult | None:
        """None: nothing is known of it. An error for an answer only says that it was cancelled, not how far it came."""
        try:
            if moment_s:
                async with asyncio.timeout(moment_s):
                    await self._cancel()
                    await asyncio.wait({self.answer})
        except TimeoutError:
            pass
        if not self.answer.done():
            self.answer.cancel()
            await asyncio.wait({self.answer}, timeout=_LAST_WORD_S)
        if not self.answer.done() or self.answer.cancelled() or self.answer.exception() is not None:
            return None
        return self.answer.result()

    async def _cancel(self) -> None:
        if self.id is not None:
            params = CancelledNotificationParams(request_id=self.id, reason="given up")
            await self._client.session.send_notification(CancelledNotification(params=params))
            self.is_cancelled = True


_CURRENT: Final[ContextVar[Underway | None]] = ContextVar("underway", default=None)


@asynccontextmanager
async def watched(transport: AbstractAsyncContextManager[Streams]) -> AsyncIterator[tuple[Any, Any]]:
    """A transport whose requests are known to whoever has made them."""
    async with transport as (hearing, saying):
        yield hearing, _Watched(saying)


class _Watched:
    """A write stream. What is written comes from the task that has something to say."""

    def __init__(self, stream: MemoryObjectSendStream[SessionMessage]) -> None:
        self._stream = stream

    async def send(self, item: SessionMessage) -> None:
        call, message = _CURRENT.get(), item.message
        if call is not None and isinstance(message, JSONRPCRequest) and message.method == "tools/call":
            call.id = message.id
        is_cancel = isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled"
        if not (is_cancel and call is not None and call.is_cancelled):
            await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> "_Watched":
        return self

    async def __aexit__(
        self, type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
