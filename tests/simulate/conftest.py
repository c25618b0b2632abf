"""A simulator for each test."""

from collections.abc import AsyncIterator

import pytest

from headwater.testing import Simulator


@pytest.fixture
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator() as simulator:
        yield simulator
