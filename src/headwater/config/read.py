"""A tree of plain values to `Settings`, by the schema.

Goes on after an error: in the place of a wrong value stands a harmless one, so that
all that is wrong is found at once. Nothing is to be used before `Problems` is seen to be empty.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, assert_never

from headwater.config.places import Origins, Place, Problems, closest, did_you_mean, dotted
from headwater.config.schema import (
    Choice,
    Hidden,
    Items,
    Key,
    Kind,
    Map,
    Number,
    Table,
    Text,
    YesNo,
    is_value,
    schema,
    words,
)
from headwater.config.settings import Settings

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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

    def _leaf(self, raw: object, kind: Text | Hidden | Number | YesNo | Choice, place: Place) -> Any:
        match kind:
            case Text(may_be_empty=may_be_empty):
                if isinstance(raw, str) and (raw or may_be_empty):
                    return self._utf8(raw, place)
            case Hidden(cls=cls):
                if isinstance(raw, str) and raw:
                    return cls(*self._secret(self._utf8(raw, place), place))
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

    def _utf8(self, raw: str, place: Place) -> str:
        """Bytes in the environment that are no text come as halves of characters."""
        try:
            raw.encode()
        except UnicodeEncodeError:
            self._problems.add(place, "has bytes that are no text.", "Write it in UTF-8.")
            return ""
        return raw

    def _secret(self, raw: str, place: Place) -> tuple[str, str | None]:
        scheme, _, target = raw.partition(":")
        if scheme == "env":
            return self._utf8(self._secret_variable(target, place), place), raw
        if scheme == "file":
            return self._utf8(self._secret_file(target, place), place), raw
        return raw, None

    def _secret_variable(self, target: str, place: Place) -> str:
        if not _VARIABLE.fullmatch(target):
            # Not repeated: it may be the secret itself.
            self._problems.add(place, "has no name of a variable after env:.", "Write it like env:OPENAI_API_KEY.")
            return ""
        value = self._environ.get(target, "")
        if not value:
            self._problems.add(place, f"the variable {target} is not set.", "Set it, or take this key out.")
        return value

    def _secret_file(self, target: str, place: Place) -> str:
        try:
            text = (self._folder / Path(target).expanduser()).read_text("utf-8").strip()
        except OSError as error:
            self._problems.add(place, f"the file {target} can't be read: {error.strerror}.", "Is its path right?")
        except (ValueError, RuntimeError):
            self._problems.add(place, f"the file {target} holds no text.", "It has to be UTF-8 with the secret alone.")
        else:
            if not text:
                self._problems.add(place, f"the file {target} is empty.", "It has to hold the secret alone.")
            return text
        return ""

    def _wrong(self, raw: object, kind: Kind, place: Place) -> None:
        near = closest(raw, kind.words) if isinstance(kind, Choice) and isinstance(raw, str) else None
        found = "a number" if isinstance(kind, Hidden) and isinstance(raw, int | float) else _found(raw)
        self._problems.add(place, f"must be {words(kind)}, not {found}.", f'Did you mean "{near}"?' if near else "")


def _fits(raw: object, kind: Number) -> bool:
    if isinstance(raw, bool) or not isinstance(raw, int if kind.whole else int | float):
        return False
    return raw <= kind.high and (raw >= kind.low if kind.low_itself else raw > kind.low)


def _stand_in(kind: Kind) -> Any:
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
        case Items() | Map() | Table():
            raise AssertionError("a table or a list is never missing")
        case unreachable:
            assert_never(unreachable)


def _found(raw: object) -> str:
    """In words that give away nothing long: it may be a secret in the wrong place."""
    match raw:
        case bool():
            return str(raw).lower()
        case int() | float():
            # Python refuses to write numbers of thousands of digits.
            return "a huge number" if abs(raw) >= 1e15 else str(raw)
        case str():
            return f'"{raw}"' if len(raw) <= 16 and raw.isprintable() else "such a text"
        case list():
            return "a list"
        case dict():
            return "a table"
        case None:
            return "null"
        case _:
            return "a date or a time"
