"""`headwater serve`, as a real process on a real socket."""

import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import headwater
from tests.commands import NOTHING_HERE, finished, start


@contextmanager
def served(
    *arguments: str, folder: Path = NOTHING_HERE, environ: Mapping[str, str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with start("serve", *arguments, folder=folder, environ=environ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.search(r"http://(?:127\.0\.0\.\d|0\.0\.0\.0):\d+", line)
            assert match, line
            yield match[0].replace("0.0.0.0", "127.0.0.1"), process
        finally:
            process.kill()


def test_it_serves_a_page() -> None:
    with served("--port", "0") as (url, process):
        page = urllib.request.urlopen(f"{url}/", timeout=60)
        assert "default-src 'none'" in page.headers["content-security-policy"]
        html = page.read().decode()
        assert "Headwater" in html
        assert "{{" not in html
        assert urllib.request.urlopen(f"{url}/healthz", timeout=60).read() == b"ok\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)


def test_a_port_in_use_is_said_in_words() -> None:
    with served("--port", "0") as (url, _), start("serve", "--port", url.rpartition(":")[2]) as second:
        _, err = second.communicate(timeout=60)
        assert second.returncode == 1
        assert "can't listen" in err
        assert "Traceback" not in err


def test_a_public_address_is_refused_without_a_key_with_what_to_do() -> None:
    code, out, err = finished("serve", "--host", "::", "--port", "0")
    assert (code, out) == (2, "")
    assert "only loopback is safe" in err
    assert "headwater keys create" in err


def test_a_name_that_is_not_this_machines_is_said_in_words() -> None:
    code, _, err = finished("serve", "--host", "example.invalid", "--port", "0")
    assert code == 1
    assert "can't listen on example.invalid" in err


def test_with_a_key_in_the_file_a_public_address_is_served_and_the_key_needed(tmp_path: Path) -> None:
    config = '[server]\nhost = "0.0.0.0"\n[[server.keys]]\nowner = "ann"\nkey = "env:A_KEY"\n'
    (tmp_path / "headwater.toml").write_text(config)
    with served("--port", "0", folder=tmp_path, environ={"A_KEY": "k" * 20}) as (url, _):
        assert status_of(url, "/api/me") == 401
        assert status_of(url, "/v1/models") == 401
        assert status_of(url, "/v1/models", "k" * 20) == 200


def test_with_a_key_in_the_store_a_public_address_is_served_and_the_key_needed(tmp_path: Path) -> None:
    environ = {"HEADWATER_STORE__URL": f"sqlite:{tmp_path / 'h.db'}"}
    code, key, _ = finished("keys", "create", "ann", environ=environ)
    assert code == 0
    with served("--host", "0.0.0.0", "--port", "0", environ=environ) as (url, _):
        assert status_of(url, "/v1/models") == 401
        assert status_of(url, "/v1/models", key.strip()) == 200
    [key_id] = [line.split()[0] for line in finished("keys", "list", environ=environ)[1].splitlines()]
    assert finished("keys", "revoke", key_id, environ=environ)[0] == 0
    with served("--host", "0.0.0.0", "--port", "0", environ=environ) as (url, _):
        assert status_of(url, "/v1/models", key.strip()) == 401


def status_of(url: str, path: str, key: str | None = None) -> int:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    try:
        return int(urllib.request.urlopen(urllib.request.Request(f"{url}{path}", headers=headers), timeout=60).status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_version() -> None:
    assert finished("--version") == (0, f"{headwater.__version__}\n", "")


def test_the_file_says_where_to_listen_and_flags_come_over_it(tmp_path: Path) -> None:
    file = tmp_path / "headwater.toml"
    file.write_text('[server]\nhost = "127.0.0.2"\nport = 0\n')
    with (
        served(folder=tmp_path) as (named, _),
        served("--config", str(file), "--host", "127.0.0.1") as (flagged, _),
    ):
        assert named.startswith("http://127.0.0.2:")
        assert flagged.startswith("http://127.0.0.1:")


def test_a_public_address_in_the_file_or_the_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text('[server]\nhost = "0.0.0.0"\n')
    assert finished("serve", folder=tmp_path)[0] == 2
    code, _, err = finished("serve", environ={"HEADWATER_SERVER__HOST": "0.0.0.0"})
    assert code == 2
    assert "only loopback is safe" in err


def test_with_a_wrong_configuration_nothing_is_served(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text("[server]\nprot = 1\nport = 99999\n")
    code, out, err = finished("serve", folder=tmp_path)
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        'headwater: headwater.toml:2: server.prot: is not a key that is known here. Did you mean "port"?',
        "headwater: headwater.toml:3: server.port: must be a whole number from 0 to 65535, not 99999.",
    ]
    assert "flag --port: server.port: must be" in finished("serve", "--port", "99999")[2]


def test_a_warning_keeps_nobody_from_serving() -> None:
    with served("--port", "0", environ={"HEADWATER_PORT": "1"}) as (_, process):
        assert process.stderr is not None
        assert "The setting is HEADWATER_SERVER__PORT" in process.stderr.readline()
