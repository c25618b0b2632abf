"""Hypothesis profiles. CI takes more examples; both are deterministic, so that a red run stays red."""

import os

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("headwater.testing.store_suite")

settings.register_profile(
    "fast", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("fast"), max_examples=300)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "fast")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
