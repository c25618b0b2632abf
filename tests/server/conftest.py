import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.house import House, open_house


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """The loop that serves."""
    return "asyncio", {"use_uvloop": sys.platform != "win32"}


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house() as opened:
        yield opened
