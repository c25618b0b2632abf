"""A tree of plain values to `Settings`, by the schema.

Goes on after an error: in the place of a wrong value stands a harmless one, so that
all that is wrong is found at once. Nothing is to be used before `Problems` is seen to be empty.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_never

from headwater.config.places import Fault, Origins, Place, Problems, closest, did_you_mean, dotted, quoted
from headwater.config.references import resolve
from headwater.config.schema import (
    Choice,
    Hidden,
    Items,
    Key,
    Kind,
    Leaf,
    Map,
    Number,
    Table,
    Text,
    YesNo,
    hides,
    is_value,
    schema,
    words,
)
from headwater.config.secret import Secret
from headwater.config.settings import Settings


class Reader:
    def __init__(self, problems: Problems, origins: Origins, environ: Mapping[str, str], folder: Path) -> None:
        self._problems = problems
        self._origins = origins
        self._environ = environ
        self._folder = folder
        """What the path of a secret's file is relative to."""
        self.sources: dict[str, str] = {}
        """Where each value came from, by its key."""

    def settings(self, tree: object) -> Settings:
        read = self._table(tree, schema(), ())
        assert isinstance(read, Settings)
        return read

    def _table(self, raw: object, table: Table, place: Place) -> Any:
        if not isinstance(raw, dict):
            self._wrong(raw, table, place)
            raw = {}
        known = [key.name for key in table.keys]
        for name in raw:
            if name not in known:
                self._problems.add((*place, name), "is not a key that is known here.", did_you_mean(name, known))
        return table.cls(**{key.name: self._key(raw, key, (*place, key.name)) for key in table.keys})

    def _key(self, raw: dict[str, Any], key: Key, place: Place) -> Any:
        if is_value(key.kind):
            self.sources[dotted(place)] = self._origins.of(place) if key.name in raw else "default"
        if key.name in raw:
            return self._value(raw[key.name], key.kind, place)
        if isinstance(key.kind, Table):
            return self._table({}, key.kind, place)
        if key.required:
            self._problems.add(place, "is missing.", f"It is {words(key.kind)}: {key.about}.")
            assert isinstance(key.kind, Leaf), "a table or a list has a default"
            return _stand_in(key.kind)
        return key.default

    def _value(self, raw: object, kind: Kind, place: Place) -> Any:
        match kind:
            case Table():
                return self._table(raw, kind, place)
            case Map(value=value):
                return self._map(raw, kind, value, place)
            case Items(item=item):
                return self._items(raw, kind, item, place)
            case Text() | Hidden() | Number() | YesNo() | Choice():
                return self._leaf(raw, kind, place)
            case unreachable:
                assert_never(unreachable)

    def _map(self, raw: object, kind: Map, value: Kind, place: Place) -> dict[str, Any]:
        if not isinstance(raw, dict):
            self._wrong(raw, kind, place)
            return {}
        return {name: self._value(inner, value, (*place, name)) for name, inner in raw.items()}

    def _items(self, raw: object, kind: Items, item: Kind, place: Place) -> tuple[Any, ...]:
        if isinstance(item, Hidden) and isinstance(raw, str):
            return (self._value(raw, item, place),)
        if not isinstance(raw, list):
            self._wrong(raw, kind, place)
            return ()
        return tuple(self._value(inner, item, (*place, n)) for n, inner in enumerate(raw))

    # ------------------------------------------------------------------- leaves

    def _leaf(self, raw: object, kind: Leaf, place: Place) -> Any:
        match kind:
            case Text(may_be_empty=may_be_empty):
                if isinstance(raw, str) and (raw or may_be_empty):
                    return self._utf8(raw, place)
            case Hidden(cls=cls):
                if isinstance(raw, str) and raw:
                    return self._secret(raw, cls, place)
            case YesNo():
                if isinstance(raw, bool):
                    return raw
            case Number():
                if _fits(raw, kind):
                    return raw if kind.whole else float(raw)  # type: ignore[arg-type] # it fits: it is a number
            case Choice(words=known):
                if raw in known:
                    return raw
            case unreachable:
                assert_never(unreachable)
        self._wrong(raw, kind, place)
        return _stand_in(kind)

    def _secret(self, raw: str, cls: type[Secret], place: Place) -> Secret:
        text = resolve(self._utf8(raw, place), self._environ, self._folder)
        if text is None:
            return cls(raw)
        if isinstance(text, Fault):
            self._problems.add(place, *text)
            return cls("", raw)
        return cls(self._utf8(text, place), raw)

    def _utf8(self, raw: str, place: Place) -> str:
        """Bytes in the environment that are no text come as halves of characters."""
        try:
            raw.encode()
        except UnicodeEncodeError:
            self._problems.add(place, "has bytes that are no text.", "Write it in UTF-8.")
            return ""
        return raw

    def _wrong(self, raw: object, kind: Kind, place: Place) -> None:
        near = closest(raw, kind.words) if isinstance(kind, Choice) and isinstance(raw, str) else None
        found = _sort(raw) if hides(kind) or _is_long(raw) else _shown(raw)
        fix = f"Did you mean {quoted(near)}?" if near else ""
        self._problems.add_unread(place, f"must be {words(kind)}, not {found}.", fix)


def _fits(raw: object, kind: Number) -> bool:
    if isinstance(raw, bool) or not isinstance(raw, int if kind.whole else int | float):
        return False
    return raw <= kind.high and (raw >= kind.low if kind.low_itself else raw > kind.low)


def _stand_in(kind: Leaf) -> Any:
    match kind:
        case Text():
            return ""
        case Hidden(cls=cls):
            return cls("")
        case Number(low=low):
            return low
        case YesNo():
            return False
        case Choice(words=known):
            return known[0]
        case unreachable:
            assert_never(unreachable)


def _is_long(raw: object) -> bool:
    """What is long is no use in a message, may be a secret in the wrong place, or a number that Python won't write."""
    if isinstance(raw, str):
        return len(raw) > 16 or not raw.isprintable()
    return isinstance(raw, int | float) and abs(raw) >= 1e15


def _shown(raw: object) -> str:
    match raw:
        case bool():
            return str(raw).lower()
        case int() | float():
            return str(raw)
        case str():
            return quoted(raw)
        case _:
            return _sort(raw)


def _sort(raw: object) -> str:
    match raw:
        case bool():
            return "true or false"
        case int() | float():
            return "a huge number" if abs(raw) >= 1e15 else "a number"
        case str():
            return "such a text" if raw else "an empty one"
        case list():
            return "a list"
        case dict():
            return "a table"
        case None:
            return "null"
        case _:
            return "a date or a time"
