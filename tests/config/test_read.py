"""Values by the schema: what is taken, and what is said of what is not."""

from pathlib import Path

import pytest

from headwater.config.load import Flag, load
from headwater.config.secret import Secret, SecretUrl
from headwater.config.settings import Settings
from headwater.errors import ConfigError
from tests.config.loading import loaded, one_problem, problems, source, upstream


def test_with_nothing_given_all_is_default() -> None:
    found = loaded()
    assert found.settings == Settings()
    assert set(found.sources.values()) == {"default"}
    assert found.sources["server.port"] == "default"
    assert (found.warnings, found.hints, found.file) == ((), (), None)


def test_each_value_knows_its_line_and_what_is_not_given_is_default() -> None:
    found = loaded('[server]\n\nport = 9000\nallowed_hosts = [\n"a",\n"b"]\n' + upstream(idle_timeout_s=5))
    assert found.settings.server.port == 9000
    assert found.settings.server.allowed_hosts == ("a", "b")
    assert found.settings.upstreams["up"].idle_timeout_s == 5.0
    assert source(found, "server.port") == "headwater.toml:3"
    assert source(found, "server.allowed_hosts") == "headwater.toml:4"
    assert source(found, "upstreams.up.idle_timeout_s") == "headwater.toml:9"
    assert source(found, "upstreams.up.retries") == "default"


def test_all_that_is_wrong_is_said_at_once_in_the_order_of_the_file() -> None:
    text = "[server]\nprot = 80\nport = 99999\n" + "\n" * 8 + '[store]\ndurability = "proces"\n[upstreams.x]\n'
    assert problems(text) == [
        'headwater.toml:2: server.prot: is not a key that is known here. Did you mean "port"?',
        "headwater.toml:3: server.port: must be a whole number from 0 to 65535, not 99999.",
        'headwater.toml:13: store.durability: must be "power" or "process", not "proces". Did you mean "process"?',
        "headwater.toml:14: upstreams.x.base_url: is missing. It is a text: its address, with the `/v1` or what else its paths begin with.",
    ]


def test_an_unknown_key_that_is_close_to_none_names_the_choice() -> None:
    assert one_problem("[store]\nq = 1").endswith(
        "There is: durability, keep_idempotency_hours, keep_logs_days, lease_s, max_unfollowed_s, tail_bytes, url."
    )
    assert one_problem(upstream(q=1)).endswith("upstreams.up.q: is not a key that is known here.")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("port = true", "must be a whole number from 0 to 65535, not true."),
        ("port = 1.0", "must be a whole number from 0 to 65535, not 1.0."),
        ("port = -1", "must be a whole number from 0 to 65535, not -1."),
        ('port = "80"', 'must be a whole number from 0 to 65535, not "80".'),
        ("port = 0x" + "f" * 9999, "must be a whole number from 0 to 65535, not a huge number."),
        ("port = 1979-05-27", "must be a whole number from 0 to 65535, not a date or a time."),
        ("port = [1]", "must be a whole number from 0 to 65535, not a list."),
        ("port = {a = 1}", "must be a whole number from 0 to 65535, not a table."),
        ("heartbeat_s = 0", "must be a number above 0, not 0."),
        ("heartbeat_s = inf", "must be a number above 0, not a huge number."),
        ("heartbeat_s = nan", "must be a number above 0, not nan."),
        ("heartbeat_s = 1e300", "must be a number above 0, not a huge number."),
        ("drain_s = -0.5", "must be a number, 0 or more, not -0.5."),
        ('host = ""', 'must be a text that is not empty, not "".'),
        ("host = 1", "must be a text that is not empty, not 1."),
        ("base_path = 1", "must be a text, not 1."),
        ("allowed_hosts = 1", "must be a list (a text that is not empty), not 1."),
        (f'port = "{"x" * 17}"', "must be a whole number from 0 to 65535, not such a text."),
        ('failure_style = ""', 'must be "error" or "finish_reason", not "".'),
        ("keys = [1]", "must be a table, not 1."),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_what_it_must_be(line: str, what: str) -> None:
    problem = one_problem(f"[server]\n{line}\n")
    assert problem.startswith("headwater.toml:2: server.")
    assert problem.endswith(f": {what}")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("server = 1", "server: must be a table, not 1."),
        ("upstreams = 1", "upstreams: must be a table of names (a table), not 1."),
        ("models = 1", "models: must be a list (a table), not 1."),
        (
            upstream() + "headers.x = true",
            'upstreams.up.headers.x: must be a text, "env:NAME" or "file:PATH", not true or false.',
        ),
        (upstream(record=1), "upstreams.up.record: must be true or false, not 1."),
        (
            upstream(headers=1),
            'upstreams.up.headers: must be a table of names (a text, "env:NAME" or "file:PATH"), not a number.',
        ),
    ],
)
def test_a_table_of_the_wrong_kind_is_told_so_and_hides_what_follows_from_it(text: str, what: str) -> None:
    assert one_problem(text).endswith(what)


def test_items_of_a_list_are_told_by_their_number_and_line() -> None:
    assert one_problem('[server]\nallowed_hosts = [\n"a",\n1]') == (
        "headwater.toml:4: server.allowed_hosts[1]: must be a text that is not empty, not 1."
    )
    assert problems('[[server.keys]]\nowner = "me"') == [
        'headwater.toml:1: server.keys[0].key: is missing. It is a text, "env:NAME" or "file:PATH": at least 16 characters.'
    ]


# --------------------------------------------------------------------- secrets


def test_a_secret_may_be_given_by_a_variable_or_by_a_file_beside(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text(
        upstream(api_key='["env:ONE", "file:two", "three"]', headers='{x-team = "env:ONE"}')
    )
    (tmp_path / "two").write_text("second\n")
    found = load(tmp_path / "headwater.toml", environ={"ONE": "first"}).settings.upstreams["up"]
    assert [key.reveal() for key in found.api_key] == ["first", "second", "three"]
    assert [key.shown() for key in found.api_key] == ["env:ONE", "file:two", "***"]
    assert found.headers["x-team"].reveal() == "first"


def test_one_key_needs_no_list() -> None:
    assert loaded(upstream(api_key='"k"')).settings.upstreams["up"].api_key == (Secret("k"),)


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ('"env:NOPE"', "the variable NOPE is not set. Set it, or take this key out."),
        ('"env:EMPTY"', "the variable EMPTY is not set. Set it, or take this key out."),
        ('"env:"', "has no name of a variable after env:. Write it like env:OPENAI_API_KEY."),
        ('"env:sk-012345"', "has no name of a variable after env:. Write it like env:OPENAI_API_KEY."),
        ('"env:BYTES"', "has bytes that are no text. Write it in UTF-8."),
        ('"file:nothing"', 'the file "nothing" can\'t be read: No such file or directory. Is its path right?'),
        ('"file:."', 'the file "." can\'t be read: Is a directory. Is its path right?'),
        ('"file:a\\u0000b"', 'the file "a\\u0000b" holds no text. It has to be UTF-8 with the secret alone.'),
        (
            '"file:~nobody-of-that-name/key"',
            'the file "~nobody-of-that-name/key" holds no text. It has to be UTF-8 with the secret alone.',
        ),
        ('""', 'must be a text, "env:NAME" or "file:PATH", not an empty one.'),
        ("[4711]", 'must be a text, "env:NAME" or "file:PATH", not a number.'),
        ("4711", 'must be a text, "env:NAME" or "file:PATH", or a list of them, not a number.'),
    ],
)
def test_a_secret_that_is_not_there_is_an_error_that_does_not_show_it(key: str, what: str) -> None:
    assert one_problem(upstream(api_key=key), {"EMPTY": "", "BYTES": "\udcff"}).endswith(what)


def test_a_secrets_file_that_is_empty_or_no_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text(upstream(api_key='["file:empty", "file:bytes"]'))
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "headwater.toml", environ={})
    assert [problem.what for problem in caught.value.problems] == [
        'the file "empty" is empty.',
        'the file "bytes" holds no text.',
    ]


def test_a_secret_shows_itself_only_when_asked_by_name() -> None:
    secret = Secret("sk-012345")
    assert "sk-012345" not in f"{secret} {secret!r} {[secret]}"
    assert secret == Secret("sk-012345")
    assert secret != Secret("other")
    assert secret != "sk-012345"
    assert len({secret, Secret("sk-012345")}) == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:~/x.db", "sqlite:~/x.db"),
        ("memory:", "memory:"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://me:pw@host:5432/db?password=pw", "postgresql://***@host:5432/db?***"),
        ("http://[pw", "***"),
    ],
)
def test_an_address_hides_its_user_password_and_query(url: str, shown: str) -> None:
    assert SecretUrl(url).shown() == shown
    assert SecretUrl("x", "env:DATABASE_URL").shown() == "env:DATABASE_URL"
    assert repr(SecretUrl(url)) == f"SecretUrl({shown})"


# ----------------------------------------------------------------------- flags


def test_a_flag_is_over_the_environment_and_that_over_the_file() -> None:
    text, environ = "[server]\nport = 1\n", {"HEADWATER_SERVER__PORT": "2"}
    place = ("server", "port")
    assert source(loaded(text), "server.port") == "headwater.toml:2"
    assert loaded(text, environ).settings.server.port == 2
    assert loaded(text, environ).sources["server.port"] == "environment HEADWATER_SERVER__PORT"
    assert loaded(text, environ, Flag("--port", place, None)).settings.server.port == 2
    assert loaded(text, environ, Flag("--port", place, 3)).settings.server.port == 3
    assert loaded(text, environ, Flag("--port", place, 3)).sources["server.port"] == "flag --port"


def test_a_flag_with_a_wrong_value_is_named() -> None:
    assert one_problem("server = 1", None, Flag("--port", ("server", "port"), 3)).startswith("headwater.toml:1: server")
    assert one_problem(None, None, Flag("--port", ("server", "port"), -3)) == (
        "flag --port: server.port: must be a whole number from 0 to 65535, not -3."
    )
