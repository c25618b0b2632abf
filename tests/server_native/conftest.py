from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.server_native.serving import TWO_OWNERS, Served, served, settings_of, store_url


@pytest.fixture(params=["memory", "sqlite"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    """No keys, and whoever asks is at this machine."""
    async with served(settings_of(store_url(request.param, tmp_path))) as server:
        yield server


@pytest.fixture
async def keyed(tmp_path: Path) -> AsyncIterator[Served]:
    """With keys of two owners: ann and bob."""
    async with served(settings_of(store_url("memory", tmp_path), keys=TWO_OWNERS)) as server:
        yield server
