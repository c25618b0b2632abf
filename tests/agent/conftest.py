from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.server_native.serving import Served, served, settings_of, store_url


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(settings_of(store_url("sqlite", tmp_path))) as server:
        yield server
