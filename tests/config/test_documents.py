"""What the documents say of configuration is what there is."""

from pathlib import Path
from typing import get_args

from docs.configuration_page import configuration_page

from headwater.config.load import load
from headwater.config.schema import Table, is_value, schema
from headwater.config.settings import ProviderName, StoreSettings
from headwater.upstream.providers import NAMES

ROOT = Path(__file__).parents[2]
SECRETS = ["HEADWATER_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"]


def test_every_provider_that_is_known_can_be_named() -> None:
    assert set(get_args(ProviderName)) == set(NAMES)


def test_the_page_is_what_the_settings_say() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text() == configuration_page(), "run `make docs`"


def test_the_example_loads_without_a_warning() -> None:
    found = load(ROOT / "headwater.example.toml", environ={name: f"{name:x<20}" for name in SECRETS})
    assert (found.warnings, found.hints) == ((), ())
    assert found.settings.server.default_model == "fast"
    assert found.settings.store == StoreSettings()


def test_the_example_has_every_section() -> None:
    text = (ROOT / "headwater.example.toml").read_text()
    for key in schema().keys:
        assert f"[{key.name}" in text


def test_every_key_has_a_line_about_it() -> None:
    page = configuration_page()
    tables = [key.kind for key in schema().keys if isinstance(key.kind, Table)]
    assert all(key.about for table in tables for key in table.keys if is_value(key.kind))
    assert "|  |\n" not in page
