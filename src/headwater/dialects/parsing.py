"""Reads a client's JSON into a dialect's typed request, and says what is wrong with it.

The types are the allowlist: a field that they don't name is refused by name.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from headwater.errors import CallerError

T = TypeVar("T", bound=Struct)

SessionId = Annotated[str, Meta(min_length=1, max_length=128)]

_WITH_PATH: Final = re.compile(r"(?s)(.*?)(?: - at (?:`key` in )?`\$\.?(.*)`)?")
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)


_MAX_DEPTH: Final = 200
"""Of lists and objects in each other: far more than anyone needs, far less than makes a reader or writer give up."""


def parse(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        read = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), decoder.type, "") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise CallerError(f"The body is not valid JSON: {error}.", code="invalid_json") from None
    # Without so many brackets there is no such depth, and nothing to look for.
    if body.count(b"{") + body.count(b"[") > _MAX_DEPTH:
        _check_depth(read)
    return read


def _check_depth(read: Any) -> None:
    """Level by level, so that the depth of the body is not that of a stack."""
    level = [read]
    for _ in range(_MAX_DEPTH):
        level = [item for value in level for item in _inside(value)]
    if level:
        raise _too_deep()


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        inner: Iterable[Any] = value.values()
    elif isinstance(value, list):
        inner = value
    else:
        inner = (getattr(value, name) for name in value.__struct_fields__)
    return [item for item in inner if isinstance(item, dict | list | Struct)]


def _too_deep() -> CallerError:
    return CallerError(f"The body is nested more than {_MAX_DEPTH} levels deep.", code="invalid_json")


def convert(value: Any, wanted: type[T], path: str) -> T:
    """The same for a part of a body that was read without a type."""
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), wanted, path) from None


def unsupported(field: str, why: str) -> CallerError:
    return CallerError(f"'{field}' can't be used here: {why}", code="unsupported_parameter", param=field)


def _invalid(message: str, wanted: Any, prefix: str = "") -> CallerError:
    match = _WITH_PATH.fullmatch(message)
    assert match is not None
    problem, path = match[1], ".".join(filter(None, (prefix, match[2])))
    if unknown := _UNKNOWN_FIELD.fullmatch(problem):
        name = unknown[1]
        param = f"{path}.{name}" if path else name
        known = [field.encode_name for field in msgspec.structs.fields(wanted)] if path == prefix else []
        close = get_close_matches(name, known, 1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        return CallerError(f"Unknown parameter: '{param}'.{hint}", code="unknown_parameter", param=param)
    place = f" at '{path}'" if path else ""
    return CallerError(f"Invalid value{place}: {problem[:1].lower()}{problem[1:]}.", param=path or None)
