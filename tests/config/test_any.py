"""Whatever a user can write: settings, or a `ConfigError`, and never a secret in it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.config.load import Flag
from headwater.config.places import key_text, quoted
from headwater.config.schema import Choice, Hidden, Items, Kind, Map, Number, Table, Text, YesNo, schema
from headwater.config.show import as_json, as_toml
from headwater.errors import ConfigError
from tests.config.loading import loaded

SECRET = "sk-SECRET-0123456789"

SCALARS = (
    st.none().map(lambda _: "1979-05-27")
    | st.booleans().map(lambda value: str(value).lower())
    | st.integers().map(str)
    | st.sampled_from(
        ["inf", "nan", "-0.0", "1e308", "0x" + "f" * 500, "[]", "{}", '""', '"env:A"', '"env:"', '"file:."']
    )
    | st.text(max_size=8).map(quoted)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.text(max_size=3), inner, max_size=2).map(
            lambda table: "{" + ", ".join(f"{key_text(k)} = {v}" for k, v in table.items()) + "}"
        )
    ),
    max_leaves=5,
)
NAMES = st.sampled_from(["a", "b", "demo", "a-b", "a_b"]) | st.text(max_size=3)


def right(kind: Kind) -> st.SearchStrategy[str]:
    """Mostly what a key wants: random values alone would never get past the types."""
    match kind:
        case Text():
            return NAMES.map(quoted) | st.sampled_from(['"http://x/v1"', '"mod:name"', '"demo/echo"', '"/x"', '"a/x"'])
        case Hidden():
            return st.sampled_from(
                [quoted(SECRET), '"env:KEY"', f'"memory:{SECRET}"', f'"http://u:{SECRET}@x/?{SECRET}"']
            )
        case Number(low=low):
            return st.integers(int(low), 70_000).map(str)
        case YesNo():
            return st.sampled_from(["true", "false"])
        case Choice(words=words):
            return st.sampled_from(words).map(quoted)
        case Items(item=item):
            return st.lists(right(item), max_size=3).map(lambda items: f"[{', '.join(items)}]")
        case Map(value=value):
            return st.dictionaries(NAMES, right(value), max_size=2).map(braces)
        case Table(keys=keys):
            return st.fixed_dictionaries(
                {key.name: right(key.kind) for key in keys if key.required},
                optional={key.name: right(key.kind) | VALUES for key in keys if not key.required},
            ).map(braces)


def braces(table: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key_text(name)} = {value}" for name, value in table.items()) + "}"


def attempt(text: str | bytes | None, environ: dict[str, str], *flags: Flag) -> str:
    """All that anybody gets to see of it."""
    try:
        found = loaded(text, environ, *flags)
    except ConfigError as error:
        return f"{error} {error!r} {error.problems!r}"
    return f"{as_toml(found)} {as_json(found)} {found!r}"


SECTIONS = st.fixed_dictionaries({}, optional={key.name: right(key.kind) | VALUES for key in schema().keys})


@given(SECTIONS, st.dictionaries(NAMES, VALUES, max_size=1))
def test_any_file_of_known_keys_loads_or_is_told_what_is_wrong(sections: dict[str, str], more: dict[str, str]) -> None:
    text = "\n".join(f"{key_text(name)} = {value}" for name, value in (more | sections).items())
    assert SECRET not in attempt(text, {"KEY": SECRET})


@given(st.text() | st.binary())
@example("\0")
@example("[" * 5000)
@example(f"{'a.' * 1500}a = 1")
def test_any_text_loads_or_is_told_what_is_wrong(text: str | bytes) -> None:
    attempt(text, {})


SECRETS = f"""\
[server]
port = 8790
[[server.keys]]
owner = "me"
key = "{SECRET}"
[store]
url = "postgresql://me:{SECRET}@host/db"
[upstreams.a]
base_url = "http://me:{SECRET}@host/v1"
api_key = [
  "{SECRET}", '{SECRET}',
  "{SECRET}",
]
retries = 2
headers = {{x-one = "{SECRET}"}}
[upstreams]
b = {{base_url = "http://host", api_key = "{SECRET}"}}
c.api_key = '''
{SECRET}'''
"""


@pytest.mark.parametrize("damage", ["", '"', "\n", "=", "]", "x", "#", "\\", ", "])
def test_a_file_that_is_damaged_anywhere_gives_no_secret_away(damage: str) -> None:
    """Whatever stands where the damage is, its line is shown only where it is surely no secret."""
    for at in range(len(SECRETS)):
        # Put in, or in place of what is there: by turns.
        lost = (at + len(damage)) % 2
        shown = attempt(SECRETS[:at] + damage + SECRETS[at + lost :], {})
        assert "SECRET" not in shown, SECRETS[at - 20 : at]
        assert "0123456789" not in shown, SECRETS[at - 20 : at]


def variables(kind: Kind, prefix: str) -> list[tuple[str, Kind]]:
    """Names of variables for a kind and all that is in it."""
    match kind:
        case Table(keys=keys):
            inner = [variables(key.kind, f"{prefix}__{key.name.upper()}") for key in keys]
        case Map(value=value):
            inner = [variables(value, f"{prefix}__A")]
        case Items(item=Table() as item):
            inner = [variables(item, f"{prefix}__0")]
        case _:
            inner = []
    return [(prefix, kind), *(one for some in inner for one in some)]


KNOWN = [one for key in schema().keys for one in variables(key.kind, f"HEADWATER_{key.name.upper()}")]
ENVIRON_TEXTS = (
    st.text(alphabet=st.characters(exclude_characters="\0", categories=None), max_size=8)
    | st.integers().map(str)
    | st.sampled_from(["true", "a,b", '["a"]', '{"a": {}}', "null", "[1", "http://x/v1", "nan", "1e999", "\udcff"])
)
ENVIRONS = st.dictionaries(
    st.sampled_from([name for name, _ in KNOWN])
    | st.text(alphabet="ABS_0", max_size=6).map(lambda rest: f"HEADWATER_{rest}")
    | st.sampled_from(["OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OLLAMA_HOST"]),
    ENVIRON_TEXTS,
    max_size=4,
)


@given(SECTIONS, ENVIRONS)
def test_any_environment_loads_or_is_told_what_is_wrong(sections: dict[str, str], environ: dict[str, str]) -> None:
    text = "\n".join(f"{name} = {value}" for name, value in sections.items())
    attempt(text, environ | {"KEY": SECRET}, Flag("--port", ("server", "port"), 1))


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kind in KNOWN if isinstance(kind, Hidden)])
def test_a_secret_in_a_variable_is_not_shown(name: str, kind: Kind) -> None:
    assert SECRET not in attempt("", {name: SECRET})
