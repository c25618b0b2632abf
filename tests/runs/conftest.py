from pathlib import Path

import pytest

from tests.runs.puppets import MakeStore, memory, sqlite


@pytest.fixture(params=["memory", "sqlite"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    return memory() if request.param == "memory" else sqlite(tmp_path)
