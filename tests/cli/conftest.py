"""A simulator, and a server over it, as processes of their own; one of each for a module."""

import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.commands import finished, start

STORY = Path(__file__).parent / "story.toml"


class House:
    """A server on a database, and what a command needs to know to find it."""

    def __init__(self, folder: Path, upstream: str) -> None:
        self.folder = folder
        self.environ = {
            "HEADWATER_STORE__URL": f"sqlite:{folder}/headwater.db",
            "HEADWATER_UPSTREAMS__SIM__BASE_URL": f"{upstream}/v1",
            "HEADWATER_UPSTREAMS__SIM__LIST_MODELS": "false",
            "XDG_STATE_HOME": str(folder),
        }
        self.url = ""
        self.server: subprocess.Popen[str] | None = None

    def start(self, port: str = "0") -> None:
        with (self.folder / "server.log").open("a") as log:
            self.server = start("serve", "--port", port, environ=self.environ, stderr=log)
        assert self.server.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", self.server.stdout.readline())
        assert found
        self.url = found[0]

    def kill(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.communicate(timeout=120)

    def stop(self) -> None:
        assert self.server is not None
        self.server.send_signal(signal.SIGTERM)
        self.server.send_signal(signal.SIGTERM)
        self.server.communicate(timeout=120)

    def run(self, *arguments: str, environ: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        return finished(*arguments, environ={**self.environ, **(environ or {})})


@pytest.fixture(scope="session")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    with (tmp_path_factory.mktemp("simulator") / "log").open("w") as log:
        process = start("simulate", str(STORY), "--port", "0", stderr=log)
    with process:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert found
        try:
            yield found[0]
        finally:
            process.kill()


@pytest.fixture(scope="module")
def house(simulator: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """With a server that runs."""
    house = House(tmp_path_factory.mktemp("house"), simulator)
    house.start()
    try:
        yield house
    finally:
        house.kill()


@pytest.fixture
def empty(simulator: str, tmp_path: Path) -> House:
    """With none."""
    return House(tmp_path, simulator)
