"""The settings' types as a tree of kinds that can be walked: by the reader, the environment, `show` and the docs.

Made from `settings` by msgspec's own view of them; a type that has no kind here is a mistake in `settings`.
"""

from functools import cache
from typing import Any, Final, assert_never

import msgspec.inspect as types
from msgspec import NODEFAULT, Struct

from headwater.config.secret import Secret
from headwater.config.settings import Settings


class Text(Struct, frozen=True):
    may_be_empty: bool


class Hidden(Struct, frozen=True):
    """A secret: a text, `env:NAME` or `file:PATH`."""

    cls: type[Secret]


class Number(Struct, frozen=True):
    whole: bool
    low: float
    high: float
    low_itself: bool
    """Whether `low` is still in."""


class YesNo(Struct, frozen=True):
    pass


class Choice(Struct, frozen=True):
    words: tuple[str, ...]


class Items(Struct, frozen=True):
    item: "Kind"


class Map(Struct, frozen=True):
    """Names that the user chooses."""

    value: "Kind"


class Table(Struct, frozen=True):
    cls: type[Struct]
    keys: tuple["Key", ...]

    def key(self, name: str) -> "Key | None":
        return next((key for key in self.keys if key.name == name), None)


Leaf = Text | Hidden | Number | YesNo | Choice
Kind = Leaf | Items | Map | Table


class Key(Struct, frozen=True):
    name: str
    kind: Kind
    required: bool
    default: Any
    about: str


def is_value(kind: Kind) -> bool:
    """Whether a key of this kind is written as one value, rather than as a table or several."""
    match kind:
        case Table() | Items(item=Table()) | Map(value=Table()):
            return False
        case _:
            return True


def hides(kind: Kind) -> bool:
    """Whether a value of this kind is a secret, or may hold one."""
    match kind:
        case Hidden() | Items(item=Hidden()) | Map(value=Hidden()):
            return True
        case _:
            return False


@cache
def schema() -> Table:
    return _table(Settings)


def _table(cls: type[Struct]) -> Table:
    described = types.type_info(cls)
    assert isinstance(described, types.StructType)
    return Table(cls, tuple(map(_key, described.fields)))


def _key(field: types.Field) -> Key:
    default = field.default_factory() if field.default_factory is not NODEFAULT else field.default
    description = ""
    if isinstance(field.type, types.Metadata):
        description = (field.type.extra_json_schema or {}).get("description", "")
    return Key(field.name, _kind(field.type), field.required, default, description)


def _kind(described: types.Type) -> Kind:
    match described:
        case types.Metadata(type=inner):
            return _kind(inner)
        case types.UnionType(types=(first, types.NoneType())):
            return _kind(first)
        case types.StrType(min_length=shortest):
            return Text(may_be_empty=not shortest)
        case types.CustomType(cls=cls):
            return Hidden(cls)
        case types.IntType() | types.FloatType():
            return _number(described)
        case types.BoolType():
            return YesNo()
        case types.LiteralType(values=words):
            return Choice(tuple(map(str, words)))
        case types.VarTupleType(item_type=item):
            return Items(_kind(item))
        case types.DictType(value_type=value):
            return Map(_kind(value))
        case types.StructType(cls=cls):
            return _table(cls)
        case _:  # pragma: no cover - a mistake in `settings`
            raise AssertionError(f"no kind of setting: {described}")


def _number(described: types.IntType | types.FloatType) -> Number:
    low, high = described.ge if described.gt is None else described.gt, described.le
    assert low is not None, "a number has a range"
    assert high is not None, "a number has a range"
    return Number(isinstance(described, types.IntType), low, high, described.gt is None)


# ------------------------------------------------------------------- in words

_HUGE: Final = 10**9


def words(kind: Kind) -> str:
    """What a value has to be."""
    match kind:
        case Text(may_be_empty=may_be_empty):
            return "a text" if may_be_empty else "a text that is not empty"
        case Hidden():
            return 'a text, "env:NAME" or "file:PATH"'
        case Number():
            return _number_words(kind)
        case YesNo():
            return "true or false"
        case Choice(words=known):
            *most, last = [f'"{word}"' for word in known]
            return f"{', '.join(most)} or {last}"
        case Items(item=Hidden() as item):
            return f"{words(item)}, or a list of them"
        case Items(item=item):
            return f"a list ({words(item)})"
        case Map(value=value):
            return f"a table of names ({words(value)})"
        case Table():
            return "a table"
        case unreachable:
            assert_never(unreachable)


def _number_words(kind: Number) -> str:
    what = "a whole number" if kind.whole else "a number"
    if kind.high < _HUGE:
        return f"{what} {'from' if kind.low_itself else 'above'} {kind.low:g} to {kind.high:g}"
    if not kind.low_itself:
        return f"{what} above {kind.low:g}"
    return f"{what}, {kind.low:g} or more"
