"""Where keys stand in a text that `tomllib` can read."""

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headwater.config.lines import locate
from headwater.config.places import Place, key_text, quoted

TEXT = '''\
# A comment = with [brackets]
[server]
port = 1 # one
"a.b" . c = """x
[not.a.table]
y = 2
""""
list = [ # ]
  "a,]", 'b'
  ,
  3, {x = 1, y = [1, 2]},
]
literal = \'\'\'
[nor.this]\'\'\'
[[models]]
name = "x"
[[models]]
name = "y"
  [models.sub]
  z = 1
[ one . "two" ]
three.four = 2
[[one.many]]
[[one.many.more]]
k = 1'''


def test_every_key_table_and_item_has_its_line() -> None:
    assert locate(TEXT) == {
        ("server",): 2,
        ("server", "port"): 3,
        ("server", "a.b"): 4,
        ("server", "a.b", "c"): 4,
        ("server", "list"): 8,
        ("server", "list", 0): 9,
        ("server", "list", 1): 9,
        ("server", "list", 2): 11,
        ("server", "list", 3): 11,
        ("server", "literal"): 13,
        ("models",): 15,
        ("models", 0): 15,
        ("models", 0, "name"): 16,
        ("models", 1): 17,
        ("models", 1, "name"): 18,
        ("models", 1, "sub"): 19,
        ("models", 1, "sub", "z"): 20,
        ("one", "two"): 21,
        ("one", "two", "three"): 22,
        ("one", "two", "three", "four"): 22,
        ("one", "many"): 23,
        ("one", "many", 0): 23,
        ("one", "many", 0, "more"): 24,
        ("one", "many", 0, "more", 0): 24,
        ("one", "many", 0, "more", 0, "k"): 25,
    }


def test_an_empty_text_has_no_keys() -> None:
    assert locate("") == {}
    assert locate("\n# nothing\n \t\n") == {}


NAMES = st.text(min_size=1, max_size=5) | st.sampled_from(["a", "b", "a-b", "1"])
WEIRD = st.text(alphabet="a\"'\\#[]{}=,.\n\t ", max_size=12)
LEAVES = st.integers() | st.booleans() | WEIRD
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=15
)
TABLES = st.dictionaries(NAMES, VALUES, max_size=4)


def written(value: Any, draw: st.DrawFn) -> str:
    """A value in one of the ways that TOML has for it."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            if "'''" not in value and not value.endswith("'") and draw(st.booleans()):
                return f"'''\n{value}'''"
            return '"""' + quoted(value)[1:-1].replace("\\n", "\n") + '"""' if draw(st.booleans()) else quoted(value)
        case list():
            gap = draw(st.sampled_from([" ", "\n", " # [,\n  "]))
            return f"[{gap}" + f",{gap}".join(written(item, draw) for item in value) + f"{gap}]"
        case dict():
            return "{" + ", ".join(f"{key_text(k)} = {written(v, draw)}" for k, v in value.items()) + "}"
        case _:
            return str(value)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[Place, int]]:
    """A text, and the lines at which its statements begin."""
    text = ""
    lines: dict[Place, int] = {}
    for name, table in draw(
        st.dictionaries(NAMES, TABLES | st.lists(TABLES, min_size=1, max_size=2), max_size=3)
    ).items():
        tables = table if isinstance(table, list) else [table]
        for number, inner in enumerate(tables):
            place: Place = (name, number) if isinstance(table, list) else (name,)
            lines[place] = text.count("\n") + 1
            text += f"[[ {key_text(name)} ]]\n" if isinstance(table, list) else f"[{key_text(name)}] # [x]\n"
            for key, value in inner.items():
                text += draw(st.sampled_from(["", "\n", "# = \n"]))
                lines[(*place, key)] = text.count("\n") + 1
                text += f"{key_text(key)} = {written(value, draw)}\n"
    return text, lines


@given(documents())
def test_any_document_is_located(document: tuple[str, dict[Place, int]]) -> None:
    text, lines = document
    tomllib.loads(text)
    found = locate(text)
    assert {place: found[place] for place in lines} == lines
