"""`headwater config`, as a real process."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.commands import finished
from tests.config.loading import upstream

SECRET = "sk-SECRET-0123456789"


def test_show_prints_what_is_in_force(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text(upstream(api_key=f'"{SECRET}"'))
    code, out, err = finished("config", "show", folder=tmp_path, environ={"HEADWATER_SERVER__PORT": "9000"})
    assert (code, err) == (0, "")
    assert out.startswith("# headwater.toml\n")
    assert tomllib.loads(out)["upstreams"]["up"]["api_key"] == ["***"]
    assert "# environment HEADWATER_SERVER__PORT\n" in out
    assert SECRET not in out


def test_show_has_a_form_for_programs(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text("[server]\nport = 1")
    code, out, _ = finished("config", "show", "--json", "--config", str(file))
    assert code == 0
    assert json.loads(out)["values"]["server.port"] == {"value": 1, "source": f"{file}:2"}


def test_check_is_content_with_nothing(tmp_path: Path) -> None:
    assert finished("config", "check") == (0, "No file: fine.\n", "")


def test_check_tells_hints_and_warnings_and_is_content(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text('[server]\ndefault_model = "x"\n' + upstream())
    code, out, err = finished("config", "check", folder=tmp_path, environ={"OPENAI_API_KEY": SECRET})
    assert (code, out) == (0, "headwater.toml: fine.\n")
    assert err.splitlines() == [
        'headwater: headwater.toml:2: server.default_model: "x" is not under [[models]]. It works if an upstream lists it.',
        "headwater: environment OPENAI_API_KEY: is not used: the file has upstreams of its own. An [upstreams.openai] in it could.",
    ]


@pytest.mark.parametrize(
    "text",
    [b"\xff", b"[", b"[server]\nport = 1\nport = 2", b"models = 1", b'upstreams = {a = {api_key = "env:X"}}', b"\0"],
)
def test_what_is_wrong_is_said_in_words_with_exit_code_2(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "headwater.toml").write_bytes(text)
    code, out, err = finished("config", "show" if text == b"[" else "check", folder=tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("headwater: headwater.toml:")
    assert "Traceback" not in err


def test_a_file_that_is_not_there_is_said_in_words() -> None:
    code, _, err = finished("config", "check", "--config", "nothing.toml")
    assert code == 2
    assert err == "headwater: nothing.toml: can't be read: No such file or directory. Is --config right?\n"
