"""Upstreams that can say what models they have."""

import asyncio
from typing import Any

import msgspec

from headwater.errors import HeadwaterError


class Upstreams:
    """Answers for the upstreams' lists, or fails, and counts how often it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, upstream: str, path: str) -> bytes:
        self.asked.append((upstream, path))
        await asyncio.sleep(0)
        answer = self.answers[upstream]
        if isinstance(answer, str):
            raise HeadwaterError(answer)
        return msgspec.json.encode(answer)
