"""`headwater serve`, as a real process on a real socket."""

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import headwater


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from headwater.cli import main; main()", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def served() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with start("serve", "--port", "0") as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.search(r"http://127\.0\.0\.1:\d+", line)
            assert match, line
            yield match[0], process
        finally:
            process.kill()


def test_it_serves_a_page_that_says_what_is_there() -> None:
    with served() as (url, process):
        page = urllib.request.urlopen(f"{url}/", timeout=10)
        assert "default-src 'none'" in page.headers["content-security-policy"]
        html = page.read().decode()
        assert headwater.__version__ in html
        assert "chat" in html
        assert "{{" not in html
        assert urllib.request.urlopen(f"{url}/healthz", timeout=10).read() == b"ok\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) in (0, -signal.SIGTERM)


def test_a_port_in_use_is_said_in_words() -> None:
    with served() as (url, _), start("serve", "--port", url.rpartition(":")[2]) as second:
        _, err = second.communicate(timeout=10)
        assert second.returncode == 1
        assert "can't listen" in err
        assert "Traceback" not in err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.com"])
def test_a_public_address_is_refused(host: str) -> None:
    with start("serve", "--host", host) as process:
        _, err = process.communicate(timeout=10)
        assert process.returncode == 2
        assert "only loopback is safe" in err


def test_the_version() -> None:
    with start("--version") as process:
        out, _ = process.communicate(timeout=10)
        assert out == f"{headwater.__version__}\n"
