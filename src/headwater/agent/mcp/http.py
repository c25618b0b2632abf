"""A server of tools that somebody else runs, over streamable HTTP, within the same limits as one of ours."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from headwater.agent.mcp.pace import Pace
from headwater.agent.mcp.underway import Streams
from headwater.clock import Clock

_CONNECT_S: Final = 10.0


class TooMuch(httpx2.StreamError):
    """More came than we are willing to hold."""


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, limit_bytes: int) -> None:
        self._stream = stream
        self._limit_bytes = limit_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit_bytes
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise TooMuch(f"It sent more than {self._limit_bytes} bytes in one answer.")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Limited(httpx2.AsyncHTTPTransport):
    """The SDK holds an answer that is no stream as a whole."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__()
        self._limit_bytes = limit_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        response.stream = _Counted(response.stream, self._limit_bytes)
        return response


@asynccontextmanager
async def over_http(
    url: str, headers: Mapping[str, str], *, clock: Clock, silent_s: float, limit_bytes: int
) -> AsyncIterator[Streams]:
    """`silent_s`: how long an answer may say nothing."""
    timeout = httpx2.Timeout(_CONNECT_S, read=silent_s)
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=timeout, transport=_Limited(limit_bytes)) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=limit_bytes) as (raw, saying),
    ):
        heard, hearing = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pump() -> None:
            pace = Pace(clock.now_s())
            try:
                async for message in raw:
                    await heard.send(message)
                    wait_s = pace.wait_s(0, clock.now_s())
                    if wait_s > 0:
                        await clock.sleep(wait_s)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                pass
            finally:
                heard.close()

        pumping = asyncio.create_task(pump())
        try:
            yield hearing, saying  # type: ignore[misc]
        finally:
            pumping.cancel()
            await asyncio.gather(pumping, return_exceptions=True)
            heard.close()
            hearing.close()
