"""Agents of one's own without a server: what they are made of, and what is left of them."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from headwater.agent.own import Agent, Context, Said
from headwater.events import Event, Outcome
from headwater.streams import Streams


async def ended(streams: Streams, run_id: str) -> Outcome:
    async with asyncio.timeout(10):
        return await streams.wait(run_id)


async def events(streams: Streams, run_id: str) -> list[Event]:
    """All but the beginning and the ending."""
    async with asyncio.timeout(10):
        return [entry.event async for entry in streams.follow(run_id)][1:-1]


def saying(*all_said: Any) -> Agent:
    async def agent(context: Context) -> AsyncGenerator[Said, None]:
        for said in all_said:
            yield said

    return agent
