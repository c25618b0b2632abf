"""The file: its text to a tree of values and the line of each, or to words about why it can't be read.

Owns no meaning: what the keys are is `read`'s to know.
"""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from headwater.config.lines import locate
from headwater.config.places import Origins, closest
from headwater.config.schema import Items, Map, Table, hides, is_value, schema
from headwater.errors import ConfigError, Problem

_POSITION: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_START: Final = re.compile(r"\s*([A-Za-z0-9_.-]+)[ \t]*(=?)")
_TABLE: Final = re.compile(r"\s*\[{1,2}[ \t]*([a-z]+)[A-Za-z0-9_. -]*\]*\s*")

# The next key where a line break was lost, a table in braces, an address that may hold a password.
_DOUBTFUL: Final = re.compile(r"[={/@]")


class Document(Struct, frozen=True):
    tree: dict[str, Any]
    origins: Origins


def read_document(path: Path) -> Document:
    """Raises `ConfigError`."""
    name = str(path)
    try:
        # A byte order mark is what some editors of Windows begin a file with.
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise _unusable(name, f"can't be read: {error.strerror}.", "Is --config right?") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _unusable(f"{name}:{line}", "is no UTF-8.", "Save the file in that encoding.") from None
    except ValueError:
        raise _unusable(repr(name), "is no name of a file.", "Is --config right?") from None
    return parse_document(text, name)


def parse_document(text: str, name: str) -> Document:
    """Raises `ConfigError`."""
    text = text.replace("\r\n", "\n")
    try:
        tree = tomllib.loads(text)
    except RecursionError:
        raise _unusable(name, "lists or tables are nested too deeply.", "Nothing here needs more than four.") from None
    except ValueError as error:
        raise _syntax(str(error), text, name) from None
    lines = {place: f"{name}:{line}" for place, line in locate(text).items()}
    return Document(tree, Origins(name, lines))


def _unusable(where: str, what: str, fix: str) -> ConfigError:
    return ConfigError([Problem(where, "", what, fix)])


def _syntax(message: str, text: str, name: str) -> ConfigError:
    found = _POSITION.search(message)
    if found is None:
        # Not the grammar but a value, such as a number of thousands of digits.
        return _unusable(name, f"is not valid TOML: {message}.", "")
    lines = text.rstrip("\n").split("\n")
    number = int(found[1]) if found[1] else len(lines)
    shown = _may_be_shown(lines[number - 1]) if number <= len(lines) else ""
    column = f" (column {found[2]})" if found[2] else ""
    what = f"is not valid TOML: {_POSITION.sub('', message)}{column}."
    return _unusable(f"{name}:{number}", what, f"The line is: {shown}" if shown else "")


# ----------------------------------------------------- lines that tell nothing


def _may_be_shown(line: str) -> str:
    """The line, or what of it surely is no secret. It can't be parsed, so only known names are trusted."""
    if not line.expandtabs().isprintable():
        return ""
    plain, hidden = _names(schema())
    table = _TABLE.fullmatch(line)
    if table and schema().key(table[1]):
        return line.strip()
    start = _START.match(line)
    if start is None:
        return ""
    name, rest = start[1].rpartition(".")[2], line[start.end() :]
    if name in plain and name not in hidden and not _DOUBTFUL.search(rest):
        return line.strip()
    known = name in plain | hidden or closest(name, plain | hidden)
    return f"{start[0].strip()} …" if known else ""


def _names(table: Table) -> tuple[set[str], set[str]]:
    """Keys of plain values, and keys of which one, in some table, is a secret."""
    plain: set[str] = set()
    hidden: set[str] = set()
    for key in table.keys:
        if is_value(key.kind):
            (hidden if hides(key.kind) else plain).add(key.name)
        match key.kind:
            case (Table() as below) | Items(item=Table() as below) | Map(value=Table() as below):
                for names, more in zip((plain, hidden), _names(below), strict=True):
                    names |= more
            case _:
                pass
    return plain, hidden
