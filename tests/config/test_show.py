"""What `headwater config show` prints."""

import json
import tomllib

from headwater.config.show import as_json, as_toml
from tests.config.loading import loaded, upstream

FILE = (
    '[server]\nport = 9000\ntrusted_proxies = ["10.0.0.0/8"]\n'
    '[[server.keys]]\nowner = "\\u007f\\u001b[31m"\nkey = "env:MY_KEY"\n'
    + '[store]\nurl = "postgresql://me:sk-012345@host/db"\nkeep_logs_days = 0.5\n'
    + upstream('"my.up"', headers='{"x y" = "sk-012345"}', api_key='["sk-012345", "env:MY_KEY"]').replace("x y", "x-y")
    + '[[models]]\nname = "fast"\nupstream = "my.up"\n[agents.helper]\nmodel = "fast"\nsystem = """two\nlines 😀"""\n'
    + '[mcp.files]\nurl = "http://host/mcp?key=sk-012345"\n'
)
ENVIRON = {"MY_KEY": "sk-0123456789abcdef", "HEADWATER_PORT": "1", "OPENAI_API_KEY": "x"}


def test_every_value_is_there_with_its_source() -> None:
    shown = as_toml(loaded(FILE, ENVIRON))
    assert tomllib.loads(shown)["server"]["port"] == 9000
    lines = {line.partition(" = ")[0]: line for line in shown.splitlines() if " = " in line}
    assert lines["port"].endswith("headwater.toml:2")
    assert lines["drain_s"].split() == ["drain_s", "=", "30", "#", "default"]
    assert "# default_model is not set" in shown
    assert '[upstreams."my.up"]\n' in shown
    assert "[[server.keys]]\n" in shown
    assert "# Warning: environment HEADWATER_PORT: is no setting" in shown
    assert "# Hint: environment OPENAI_API_KEY: is not used" in shown


def test_secrets_are_masked_and_references_are_not() -> None:
    found = loaded(FILE, ENVIRON)
    for shown in (as_toml(found), as_json(found), repr(found)):
        assert "012345" not in shown
        assert "env:MY_KEY" in shown
        assert "postgresql://***@host/db" in shown
        assert "http://host/mcp?***" in shown
        assert "\x1b" not in shown


def test_what_is_shown_can_be_read_again_to_the_same() -> None:
    file = FILE.replace("me:sk-012345@", "").replace("?key=sk-012345", "").replace("sk-012345", "env:MY_KEY")
    found = loaded(file, ENVIRON)
    assert loaded(as_toml(found), ENVIRON).settings == found.settings


def test_with_no_file_that_is_said() -> None:
    assert as_toml(loaded()).startswith("# There is no file.\n")
    assert json.loads(as_json(loaded()))["file"] is None


def test_as_json_every_key_has_value_and_source() -> None:
    shown = json.loads(as_json(loaded(FILE, ENVIRON)))
    assert shown["file"].endswith("headwater.toml")
    assert shown["values"]["server.port"]["value"] == 9000
    assert shown["values"]["server.port"]["source"].endswith("headwater.toml:2")
    assert shown["values"]["server.default_model"] == {"value": None, "source": "default"}
    assert shown["values"]['upstreams."my.up".api_key']["value"] == ["***", "env:MY_KEY"]
    assert shown["values"]["models[0].name"]["value"] == "fast"
    assert len(shown["warnings"]) == 1
    assert len(shown["hints"]) == 1
