"""Reads a client's JSON into a dialect's typed request, and says what is wrong with it.

The types are the allowlist: a field that they don't name is refused by name.
"""

import re
from difflib import get_close_matches
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from headwater.errors import CallerError

T = TypeVar("T", bound=Struct)

SessionId = Annotated[str, Meta(min_length=1, max_length=128)]

_WITH_PATH: Final = re.compile(r"(?s)(.*?)(?: - at (?:`key` in )?`\$\.?(.*)`)?")
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)


def parse(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), decoder.type, "") from None
    except (ValueError, RecursionError) as error:
        raise CallerError(f"The body is not valid JSON: {error}.", code="invalid_json") from None


def convert(value: Any, wanted: type[T], path: str) -> T:
    """A part of a request whose type only its content tells; `path` is where it stands."""
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), wanted, path) from None


def unsupported(field: str, why: str) -> CallerError:
    return CallerError(f"'{field}' can't be used here: {why}", code="unsupported_parameter", param=field)


def _invalid(message: str, wanted: Any, base: str) -> CallerError:
    match = _WITH_PATH.fullmatch(message)
    assert match is not None
    problem, path = match[1], match[2] or ""
    if unknown := _UNKNOWN_FIELD.fullmatch(problem):
        name = unknown[1]
        known = [field.encode_name for field in msgspec.structs.fields(wanted)] if not path else []
        param = ".".join(filter(None, (base, path, name)))
        close = get_close_matches(name, known, 1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        return CallerError(f"Unknown parameter: '{param}'.{hint}", code="unknown_parameter", param=param)
    param = ".".join(filter(None, (base, path)))
    place = f" at '{param}'" if param else ""
    return CallerError(f"Invalid value{place}: {problem[:1].lower()}{problem[1:]}.", param=param or None)
