from collections.abc import AsyncIterator

import pytest

from tests.server.house import House, open_house


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house() as opened:
        yield opened
