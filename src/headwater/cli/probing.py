"""Asks an upstream one thing from the outside, and keeps what came with its times. Judges nothing."""

import asyncio
import re
import time
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from headwater.conversation import Assistant, Message, NamedTool, Request, Text, Tool, User
from headwater.errors import UpstreamError
from headwater.events import Failed
from headwater.judge import Transport
from headwater.upstream.continuation import continued, with_prefix_flag
from headwater.upstream.endpoint import Route

QUESTION = "Write the numbers from 1 to 60 in words, with commas between them, and nothing else."
TOOL = Tool(
    name="weather",
    description="The weather of a place.",
    parameters={"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)
_ALIVE = re.compile(rb"(\s*(:[^\n]*|event: ping|data: \{\s*\"type\":\s*\"ping\"\s*\})\s*\n)+\s*")
BEGUN = "one, two, three, four, five, six, seven,"


class Heard(Struct, frozen=True, kw_only=True):
    """An answer, as the network brought it."""

    failed: Failed | None = None
    """There was none."""
    status: int = 0
    headers: Mapping[str, str] = {}
    pieces: tuple[tuple[float, bytes], ...] = ()
    """Seconds since the request, and what was read then."""
    ended: Transport | None = None
    """None: it fell silent, and we left."""
    was_reset: bool = False
    took_s: float = 0.0

    @property
    def body(self) -> bytes:
        return b"".join(data for _, data in self.pieces)


def said() -> Request:
    return Request((User((Text(QUESTION),)),))


def called() -> Request:
    message: Message = User((Text("What is the weather in Oslo?"),))
    return Request((message,), tools=(TOOL,), tool_choice=NamedTool(TOOL.name))


async def ask(route: Route, request: Request, patience_s: float) -> Heard:
    return await _heard(route, route.endpoint.dialect.render(request, replace(route.target, stream=True)), patience_s)


async def ask_to_go_on(route: Route, patience_s: float) -> Heard:
    """With an answer that has begun."""
    request = continued(said(), Assistant((Text(BEGUN),)), route.prefill)
    body = route.endpoint.dialect.render(request, replace(route.target, stream=True))
    if route.prefill == "prefix_flag":
        body = with_prefix_flag(body, route.prefix_flag)
    return await _heard(route, body, patience_s)


async def _heard(route: Route, body: bytes, patience_s: float) -> Heard:
    endpoint = route.endpoint
    key = endpoint.keys.take(time.monotonic())
    began_s = time.monotonic()
    try:
        async with asyncio.timeout(patience_s):
            exchange = await endpoint.opener.open(body, key)
    except UpstreamError as error:
        return Heard(failed=error.failed)
    except TimeoutError:
        silent = Failed("stalled", f"It did not begin to answer within {patience_s:g} s.")
        return Heard(failed=silent, took_s=time.monotonic() - began_s)
    pieces: list[tuple[float, bytes]] = []
    ended: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()
    news = asyncio.Event()

    def on_bytes(data: bytes) -> None:
        pieces.append((time.monotonic() - began_s, data))
        # A server that says nothing but that it lives is silent.
        if not _ALIVE.fullmatch(data):
            news.set()

    def on_end(transport: Transport) -> None:
        if not ended.done():
            ended.set_result(transport)
        news.set()

    exchange.listen(on_bytes, on_end)
    try:
        while not ended.done():
            news.clear()
            async with asyncio.timeout(patience_s):
                await news.wait()
    except TimeoutError:
        pass
    finally:
        exchange.close()
    return Heard(
        status=exchange.status,
        headers=dict(exchange.headers),
        pieces=tuple(pieces),
        ended=ended.result() if ended.done() else None,
        was_reset=exchange.was_reset,
        took_s=time.monotonic() - began_s,
    )
