"""What may stand at a place of a typed request: the words to choose from, for whoever has sent another."""

import re
from typing import Any, Final

from msgspec.inspect import ListType, LiteralType, StructType, Type, UnionType, type_info

_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def choices(wanted: Any, path: str, value: Any) -> list[str]:
    """`path` as msgspec tells it; `value`: all that was sent, which tells one of several types from the others."""
    kinds = _each(type_info(wanted))
    for number, name in _STEP.findall(path):
        kinds = [inner for kind in kinds for inner in _within(kind, name, value)]
        value = _at(value, int(number) if number else name)
    return [str(word) for kind in kinds if isinstance(kind, LiteralType) for word in kind.values]


def listed(words: list[str]) -> str:
    *most, last = [f"'{word}'" for word in words]
    return f"{', '.join(most)} or {last}" if most else last


def _each(kind: Type) -> list[Type]:
    return list(kind.types) if isinstance(kind, UnionType) else [kind]


def _within(kind: Type, name: str, value: Any) -> list[Type]:
    """`name` is empty for a place in a list."""
    if isinstance(kind, ListType):
        return [] if name else _each(kind.item_type)
    if not isinstance(kind, StructType):
        return []
    if kind.tag_field == name:
        return [LiteralType((kind.tag,))]
    if kind.tag_field is not None and _at(value, kind.tag_field) != kind.tag:
        return []
    return [inner for field in kind.fields if field.encode_name == name for inner in _each(field.type)]


def _at(value: Any, step: int | str) -> Any:
    try:
        return value[step]
    except (LookupError, TypeError):
        return None
