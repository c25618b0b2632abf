"""Upstreams from the variables of other programs, where the file has none."""

import pytest

from headwater.config.addresses import ollama_base
from tests.config.loading import loaded, one_problem, upstream

KEYS = {"OPENAI_API_KEY": "sk-one", "ANTHROPIC_API_KEY": "sk-two", "OLLAMA_HOST": "box"}


def test_each_variable_makes_an_upstream_and_is_its_source() -> None:
    found = loaded(None, KEYS)
    known = {name: (up.dialect, up.base_url) for name, up in found.settings.upstreams.items()}
    assert known == {
        "openai": ("chat", "https://api.openai.com/v1"),
        "anthropic": ("messages", "https://api.anthropic.com/v1"),
        "ollama": ("chat", "http://box:11434/v1"),
    }
    assert found.settings.upstreams["openai"].api_key[0].reveal() == "sk-one"
    assert found.settings.upstreams["anthropic"].api_key[0].reveal() == "sk-two"
    assert found.settings.upstreams["ollama"].provider == "ollama"
    assert found.sources["upstreams.openai.base_url"] == "environment OPENAI_API_KEY"
    assert found.sources["upstreams.openai.api_key"] == "environment OPENAI_API_KEY"
    assert found.sources["upstreams.openai.retries"] == "default"
    assert found.hints == ()


def test_addresses_of_their_own_are_used_and_are_the_source() -> None:
    bases = {"OPENAI_BASE_URL": "http://a/v1", "ANTHROPIC_BASE_URL": "http://b/"}
    found = loaded(None, KEYS | bases)
    assert found.settings.upstreams["openai"].base_url == "http://a/v1"
    assert found.settings.upstreams["anthropic"].base_url == "http://b/v1"
    assert found.sources["upstreams.anthropic.base_url"] == "environment ANTHROPIC_BASE_URL"
    assert (
        loaded(None, KEYS | {"ANTHROPIC_BASE_URL": "http://b/v1"}).settings.upstreams["anthropic"].base_url
        == "http://b/v1"
    )


def test_an_address_that_is_wrong_names_its_variable() -> None:
    assert one_problem(None, KEYS | {"OPENAI_BASE_URL": "api.example.com"}).startswith(
        "environment OPENAI_BASE_URL: upstreams.openai.base_url: must begin with http:// or https://"
    )
    assert one_problem(None, {"OLLAMA_HOST": "box:port"}).startswith(
        "environment OLLAMA_HOST: upstreams.ollama.base_url: is not"
    )


def test_an_empty_variable_makes_nothing() -> None:
    assert loaded(None, {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "http://a/v1"}).settings.upstreams == {}


def test_a_file_without_upstreams_may_use_them_by_name() -> None:
    found = loaded('[[models]]\nname = "fast"\nupstream = "openai"\n', KEYS)
    assert found.settings.models[0].upstream == "openai"


def test_our_own_variables_come_over_what_is_found() -> None:
    found = loaded(None, KEYS | {"HEADWATER_UPSTREAMS__OPENAI__RETRIES": "7"})
    assert found.settings.upstreams["openai"].retries == 7
    assert found.settings.upstreams["openai"].base_url == "https://api.openai.com/v1"


def test_a_file_with_upstreams_has_only_those_and_a_hint_tells_what_is_not_used() -> None:
    found = loaded(upstream(api_key='"env:ANTHROPIC_API_KEY"'), KEYS)
    assert list(found.settings.upstreams) == ["up"]
    assert [str(hint) for hint in found.hints] == [
        "environment OPENAI_API_KEY: is not used: the file has upstreams of its own. An [upstreams.openai] in it could.",
        "environment OLLAMA_HOST: is not used: the file has upstreams of its own. An [upstreams.ollama] in it could.",
    ]
    assert found.warnings == ()


def test_an_empty_table_of_upstreams_means_none() -> None:
    assert loaded("[upstreams]\n", KEYS).settings.upstreams == {}


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("box", "http://box:11434/v1"),
        ("box:1234", "http://box:1234/v1"),
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:1234", "http://127.0.0.1:1234/v1"),
        (":1234", "http://127.0.0.1:1234/v1"),
        ("::", "http://[::1]:11434/v1"),
        ("[::]:1234", "http://[::1]:1234/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("fe80::1", "http://[fe80::1]:11434/v1"),
        ("http://box", "http://box:80/v1"),
        ("https://box", "https://box:443/v1"),
        ("https://box:8443/", "https://box:8443/v1"),
        ("https://box/ollama/", "https://box:443/ollama/v1"),
        (' "box" ', "http://box:11434/v1"),
    ],
)
def test_ollamas_host_is_read_as_ollama_does(host: str, base: str) -> None:
    assert ollama_base(host) == base
    assert loaded(None, {"OLLAMA_HOST": host}).settings.upstreams["ollama"].base_url == base
