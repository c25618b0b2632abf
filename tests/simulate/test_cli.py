"""`headwater simulate`, as a real process."""

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headwater.recording import write_end, write_head, write_piece
from tests.simulate.wire import body_for


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from headwater.cli import main; main()", "simulate", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def simulated(*arguments: str) -> Iterator[tuple[str, str]]:
    """Its URL, and what it says that it knows."""
    with start("--port", "0", *arguments) as process:
        try:
            assert process.stdout is not None
            url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert url is not None
            process.stdout.readline()
            yield url[0], process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
        finally:
            process.kill()


def post(url: str, model: str, **fields: Any) -> bytes:
    body = json.dumps(body_for("chat", model, **fields)).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"content-type": "application/json"})
    answer: bytes = urllib.request.urlopen(request, timeout=10).read()
    return answer


def test_it_answers_and_tells_what_was_asked() -> None:
    with simulated() as (url, names):
        assert "sim/echo" in names
        assert b'"Hello "' in post(url, "sim/echo")
        with pytest.raises(urllib.error.HTTPError, match="400"):
            post(url, "sim/echo", temperature=9)
        told = json.loads(urllib.request.urlopen(f"{url}/simulate/requests", timeout=10).read())
        assert [request["status"] for request in told["requests"]] == [200, 400]


def test_it_follows_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text('[models.mine]\nanswers = [{ text = "Well." }]')
    with simulated(str(script), "--lenient") as (url, names):
        assert "models: mine, " in names
        assert b'"Well."' in post(url, "mine", temperature=9)


def test_it_plays_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    head = write_head(
        dialect="chat", upstream="u", model="old", request={}, at_unix_s=0, t_ms=1, status=200, headers=[]
    )
    path.write_bytes(head + write_piece(60_000, b"as it was") + write_end(60_001, "complete"))
    with simulated("--replay", str(path), "--speed", "60000") as (url, names):
        assert "models: old, " in names
        assert post(url, "any") == b"as it was"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("[models.m]\nanswer = []", "did you mean `answers`"), (None, "No such file"), ("\udcff", "utf-8")],
)
def test_a_script_that_can_t_be_read_is_said_in_words(tmp_path: Path, content: str | None, complaint: str) -> None:
    script = tmp_path / "script.toml"
    if content is not None:
        script.write_bytes(content.encode("utf-8", "surrogateescape"))
    with start(str(script)) as process:
        _, err = process.communicate(timeout=10)
        assert process.returncode == 2
        assert complaint in err
        assert "script.toml" in err
        assert "Traceback" not in err


def test_a_port_in_use_is_said_in_words() -> None:
    with simulated() as (url, _), start("--port", url.rpartition(":")[2]) as second:
        _, err = second.communicate(timeout=10)
        assert second.returncode == 1
        assert "can't listen" in err
        assert "Traceback" not in err
