"""What `headwater config show` prints: every value with its source, secrets masked.

As TOML it can be read again: a file with all that is said in it would load to the same settings,
save for secrets that were not given by reference.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from headwater.config.load import Loaded
from headwater.config.places import Place, dotted, key_text, quoted
from headwater.config.schema import Items, Kind, Map, Table, is_value, schema
from headwater.config.secret import Secret

_COMMENT_COLUMN = 48


def as_toml(loaded: Loaded) -> str:
    lines = [f"# {loaded.file or 'There is no file.'}"]
    for place, table, value in _tables(schema(), loaded.settings, ()):
        lines += ["", f"[[{_header(place)}]]" if isinstance(place[-1], int) else f"[{_header(place)}]"]
        for key in table.keys:
            if is_value(key.kind):
                lines.append(_line(key.name, getattr(value, key.name), loaded.sources[dotted((*place, key.name))]))
    lines += _remarks(loaded)
    return "\n".join(lines) + "\n"


def as_json(loaded: Loaded) -> str:
    values = {
        dotted((*place, key.name)): {
            "value": _plain(getattr(value, key.name)),
            "source": loaded.sources[dotted((*place, key.name))],
        }
        for place, table, value in _tables(schema(), loaded.settings, ())
        for key in table.keys
        if is_value(key.kind)
    }
    file = str(loaded.file) if loaded.file else None
    remarks = {"warnings": list(map(str, loaded.warnings)), "hints": list(map(str, loaded.hints))}
    return json.dumps({"file": file, "values": values, **remarks}, indent=2, ensure_ascii=False) + "\n"


def _tables(kind: Kind, value: Any, place: Place) -> Iterator[tuple[Place, Table, Struct]]:
    """Every table that has values of its own, outer ones first."""
    if isinstance(kind, Table):
        if any(is_value(key.kind) for key in kind.keys):
            yield place, kind, value
        for key in kind.keys:
            if not is_value(key.kind):
                yield from _tables(key.kind, getattr(value, key.name), (*place, key.name))
    elif isinstance(kind, Map):
        for name, item in value.items():
            yield from _tables(kind.value, item, (*place, name))
    else:
        assert isinstance(kind, Items)
        for number, item in enumerate(value):
            yield from _tables(kind.item, item, (*place, number))


def _header(place: Place) -> str:
    return ".".join(key_text(part) for part in place if isinstance(part, str))


def _line(name: str, value: Any, source: str) -> str:
    text = f"# {name} is not set" if value is None else f"{name} = {_toml(_plain(value))}"
    return f"{text:<{_COMMENT_COLUMN - 1}} # {source}"


def _remarks(loaded: Loaded) -> list[str]:
    remarks = [f"# Warning: {warning}" for warning in loaded.warnings] + [f"# Hint: {hint}" for hint in loaded.hints]
    return ["", *remarks] if remarks else []


def _plain(value: Any) -> Any:
    """With secrets masked, and what is a whole number written as one."""
    match value:
        case Secret():
            return value.shown()
        case tuple():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{key_text(name)} = {_toml(item)}" for name, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case str():
            return quoted(value)
        case _:
            return msgspec.json.encode(value).decode()
