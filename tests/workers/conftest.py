import pytest


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One loop for all tests of a module: they share the processes that it has begun."""
    return "asyncio"
