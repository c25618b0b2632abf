"""The Dockerfile and compose.yaml, step by step, on a machine that need not have Docker."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

import headwater
from headwater.config.settings import ServerSettings
from tests.commands import finished

ROOT = Path(__file__).parent.parent
KEY = "k" * 20

if not (ROOT / "Dockerfile").exists():  # pragma: no cover - the package alone
    pytest.skip("there is no Dockerfile here", allow_module_level=True)


def steps(stage: str | None = None) -> list[tuple[str, str]]:
    """The instructions of a stage (the last has no name), or of all."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    found: list[tuple[str, str]] = []
    name = ""
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            name = rest.partition(" AS ")[2]
        elif line and not line.startswith("#") and stage in (None, name):
            found.append((word, rest))
    return found


def copied(stage: str | None = None) -> Iterator[str]:
    """What comes from the repository."""
    for word, rest in steps(stage):
        if word == "COPY" and not rest.startswith("--from"):
            yield from shlex.split(rest)[:-1]


def test_all_that_is_copied_is_there_and_not_ignored() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*"
    for source in copied():
        assert (ROOT / source).exists(), source
        assert any(rule == f"!{source.split('/')[0]}" for rule in rules), source
        assert not any(fnmatch(source.rstrip("/"), rule) for rule in rules[1:]), source
    # Nothing of the repository's own past, or of this machine, gets into an image.
    assert not {".", "./"} & set(copied())


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as its stage makes it; what it depends on is what these tests run with."""
    build, prefix = tmp_path_factory.mktemp("build"), tmp_path_factory.mktemp("installed")
    for source in copied("package"):
        where = build / source
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, where, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, where)
    [run] = [rest for word, rest in steps("package") if word == "RUN"]
    pip, *arguments = shlex.split(run.replace("/installed", str(prefix)))
    assert pip == "pip"
    command = [
        sys.executable,
        "-m",
        "pip",
        *arguments,
        "--quiet",
        "--no-deps",
        "--ignore-installed",
        "--no-warn-script-location",
    ]
    done = subprocess.run(command, cwd=build, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return prefix


def in_image(installed: Path, data: Path, **more: str) -> dict[str, str]:
    """The image's environment, with its folder for data here."""
    [settings] = [rest for word, rest in steps("") if word == "ENV"]
    environ = dict(pair.split("=", 1) for pair in shlex.split(settings.replace("/data", str(data))))
    [packages] = installed.glob("lib/python3*/site-packages")
    path = [str(packages), *(entry for entry in sys.path if "site-packages" in entry)]
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(path), "HOME": str(data), **environ, **more}


def command(installed: Path) -> list[str]:
    [entrypoint] = [json.loads(rest) for word, rest in steps("") if word == "ENTRYPOINT"]
    [arguments] = [json.loads(rest) for word, rest in steps("") if word == "CMD"]
    return [sys.executable, str(installed / "bin" / entrypoint[0]), *arguments, "--port", "0"]


def test_the_image_serves_with_a_key_and_says_what_to_do_without(installed: Path, tmp_path: Path) -> None:
    refused = subprocess.run(
        command(installed), env=in_image(installed, tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "headwater keys create" in refused.stderr
    keys = {"HEADWATER_SERVER__KEYS__0__OWNER": "me", "HEADWATER_SERVER__KEYS__0__KEY": KEY}
    environ = in_image(installed, tmp_path, **keys)
    with subprocess.Popen(
        command(installed), env=environ, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert headwater.__version__ in line
            found = re.search(r"http://0\.0\.0\.0:(\d+)/", line)
            assert found, line
            port = found[1]
            assert check_health(port, environ) == 0
            asked = urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/models", headers={"authorization": f"Bearer {KEY}"}
            )
            assert "demo/echo" in urllib.request.urlopen(asked, timeout=30).read().decode()
            [stop] = [getattr(signal, rest) for word, rest in steps("") if word == "STOPSIGNAL"]
            process.send_signal(stop)
            assert process.wait(30) == 0
            assert check_health(port, environ) != 0
        finally:
            process.kill()
    assert (tmp_path / "headwater.db").exists()


def check_health(port: str, environ: dict[str, str]) -> int:
    [check] = [rest for word, rest in steps("") if word == "HEALTHCHECK"]
    _, *arguments = json.loads(check.partition("CMD ")[2].replace("8790", port))
    return subprocess.run([sys.executable, *arguments], env=environ, capture_output=True, timeout=60).returncode


def test_what_compose_sets_is_a_configuration() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    given = {"POSTGRES_PASSWORD": "secret", "HEADWATER_KEY": KEY}
    environ = {
        name: re.sub(r"\$\{(\w+)[^}]*\}", lambda found: given.get(found[1], ""), value)
        for name, value in services["headwater"]["environment"].items()
    }
    code, out, err = finished("config", "show", "--json", environ=environ)
    assert (code, err) == (0, "")
    said = json.dumps(json.loads(out))
    assert "postgresql://" in said
    assert "HEADWATER_SERVER__KEYS__0__SCOPES" in said
    assert KEY not in said
    assert "secret" not in said
    # It is given more time to end than it gives its runs.
    assert float(services["headwater"]["stop_grace_period"].removesuffix("s")) > ServerSettings().drain_s
