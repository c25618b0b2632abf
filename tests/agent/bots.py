"""Agents of one's own, as a configuration names them: what they do is what their tests say."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from headwater.agent.asking import ModelError
from headwater.agent.own import Context, Said
from headwater.events import Failed, Incomplete, Outcome, ReasoningDelta, Stopped, ToolCallEnded, ToolCallStarted

heard: list[object] = []
"""What they have learned of their ends."""
NO_AGENT = 7


async def streams(context: Context) -> AsyncIterator[Said]:
    yield ReasoningDelta("Hm.")
    for word in ("one ", "two ", "three"):
        yield word


async def returns(context: Context) -> str:
    return "in one piece"


async def says_and_returns(context: Context) -> str:
    context.say("said once")
    return "said once"


async def raises(context: Context) -> AsyncIterator[Said]:
    yield "so far "
    raise RuntimeError("a secret of the server's own log")


async def raises_at_once(context: Context) -> str:
    raise RuntimeError("a secret of the server's own log")


async def is_cut(context: Context) -> AsyncIterator[Said]:
    yield "so far "
    yield Incomplete("length")


async def names_a_failure(context: Context) -> Outcome:
    return Failed("too_large", "That is too much for me.")


async def waits(context: Context) -> AsyncIterator[Said]:
    yield "so far "
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        heard.append(context.stop_cause)
        raise
    finally:
        heard.append("cleaned up")


async def ignores(context: Context) -> AsyncIterator[Said]:
    """The first cancel, not the one with which the event loop ends."""
    yield "so far "
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(3600)
    await asyncio.sleep(3600)


async def blocks(context: Context) -> str:
    time.sleep(1.6)  # noqa: ASYNC251
    return "at last"


async def asks(context: Context) -> AsyncIterator[Said]:
    async for text in context.ask("chat/m"):
        yield text.upper()
    answer = await context.ask("chat/m", "Again", max_tokens=9).whole()
    yield f" / {answer.text}"


async def looks_away(context: Context) -> AsyncIterator[Said]:
    async for text in context.ask("chat/m"):
        yield text


async def copes(context: Context) -> str:
    try:
        await context.ask("chat/m").whole()
    except ModelError as error:
        return f"It said {type(error.outcome).__name__}."
    return "It was well."


async def is_stopped_while_it_asks(context: Context) -> str:
    answer = await context.ask("chat/m").whole()
    return answer.text


async def uses_tools(context: Context) -> str:
    names = [tool.full_name for tool in await context.tools()]
    assert "rogue.note" in names
    results = await asyncio.gather(
        context.call("rogue.note", {"word": "a"}),
        context.call("rogue__note", {"word": "b"}),
        context.call("rogue.note", {}),
        context.call("rogue.missing", {}),
    )
    return ", ".join(f"{result.state}: {result.text[:30]}" for result in results)


async def leaves_a_call(context: Context) -> AsyncIterator[Said]:
    """One that it has run itself, and one for its client."""
    yield "Please: "
    await context.call("rogue.note", {"word": "mine"})
    yield ToolCallStarted(1, "call_yours", "yours")
    yield ToolCallEnded(1)


async def remembers(context: Context) -> str:
    assert context.stop_cause is None or isinstance(context.stop_cause, Stopped)
    return f"{context.session_id is not None} {len(context.messages)}"


async def is_held_up_by_its_tool(context: Context) -> str:
    return (await context.call("rogue.slow", {"word": "own"})).text
