"""A file that can't be read, and what of it may be repeated."""

from pathlib import Path

import pytest

from headwater.config.document import read_document
from headwater.errors import ConfigError
from tests.config.loading import loaded, one_problem


def test_a_mistake_in_the_grammar_names_its_line_and_shows_it() -> None:
    problem = one_problem('[server]\nhost = "127.0.0.1"\nport = 80 80\n')
    assert problem.startswith("headwater.toml:3: is not valid TOML: ")
    assert "(column 11)" in problem
    assert problem.endswith("The line is: port = 80 80")


def test_a_mistake_at_the_end_is_at_the_last_line() -> None:
    problem = one_problem("[server]\nallowed_hosts = [\n\n")
    assert problem.startswith("headwater.toml:")
    assert "is not valid TOML" in problem


def test_a_key_that_is_given_twice_is_a_mistake() -> None:
    assert one_problem("[server]\nport = 1\nport = 2\n").startswith("headwater.toml:3: is not valid TOML")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("retries = two", "retries = two"),
        ("retries = 2 api_key = sk-0123456789", "retries = …"),
        ("upstreams = {a = {api_key = sk-0123456789}}", "upstreams = …"),
        ('base_url = "http://me:sk-0123456789@host', "base_url = …"),
        ("port = \x1b[31m", ""),
        ("\tport\t= 1 2", "port\t= 1 2"),
        ("[server", "[server"),
        ("[[models]", "[[models]"),
        ("[sk-0123456789", ""),
        ('api_key = "sk-0123456789', "api_key = …"),
        ("upstreams.x.api_key = sk-0123456789", "upstreams.x.api_key = …"),
        ('apikey "sk-0123456789"', "apikey …"),
        ("key = sk-0123456789", "key = …"),
        ("headers = {a = sk-0123456789}", "headers = …"),
        ('url = "postgresql://me:sk-0123456789@host', "url = …"),
        ("sk-0123456789", ""),
        ("c2stMDEyMzQ1Njc4OQ==", ""),
        ('= "sk-0123456789"', ""),
    ],
)
def test_a_line_that_can_not_be_read_gives_no_secret_away(line: str, shown: str) -> None:
    problem = one_problem(f"{line}\n")
    assert problem.endswith(f" The line is: {shown}") if shown else "The line is" not in problem
    assert "0123456789" not in problem or not shown.endswith("…")
    assert "c2stMDEy" not in problem


def test_a_number_of_thousands_of_digits_is_a_mistake() -> None:
    assert "is not valid TOML" in one_problem(f"a = {'9' * 5000}")


def test_nesting_that_is_too_deep_is_a_mistake() -> None:
    assert "TOML" in one_problem(f"a = {'[' * 100_000}") or "nested too deeply" in one_problem(f"a = {'[' * 100_000}")


def test_keys_may_be_nested_to_any_depth_and_are_only_unknown() -> None:
    assert "a: is not a key that is known here." in one_problem(f"{'.'.join('a' * 500)} = 1")


def test_a_file_that_is_no_utf_8_is_told_by_its_line() -> None:
    assert one_problem(b'[server]\nhost = "\xff"\n') == "headwater.toml:2: is no UTF-8. Save the file in that encoding."


def test_a_byte_order_mark_and_line_ends_of_windows_are_fine() -> None:
    found = loaded(b"\xef\xbb\xbf[server]\r\nport = 1\r\n")
    assert found.settings.server.port == 1
    assert found.sources["server.port"].endswith("headwater.toml:2")


@pytest.mark.parametrize(
    ("name", "what"),
    [("nothing.toml", "can't be read: No such file"), (".", "can't be read"), ("a\0b", "is no name of a file")],
)
def test_a_file_that_can_not_be_read_is_said_in_words(tmp_path: Path, name: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        read_document(tmp_path / name)
