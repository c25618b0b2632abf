from collections.abc import AsyncIterator

import pytest

from headwater.testing.postgres import PostgresServer
from tests.store.postgres_backend import BehindProxy, behind_proxy


@pytest.fixture
async def behind(postgres: PostgresServer) -> AsyncIterator[BehindProxy]:
    async with behind_proxy(postgres) as backend:
        yield backend
