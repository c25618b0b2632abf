"""Reads a client's JSON into a dialect's typed request, and says what is wrong with it.

The types are the allowlist: a field that they don't name is refused by name.
"""

import re
from difflib import get_close_matches
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from headwater.dialects.choices import choices, listed
from headwater.dialects.nesting import MAX_DEPTH, is_deep, may_be_deep
from headwater.errors import CallerError
from headwater.records import NAME_PATTERN

T = TypeVar("T", bound=Struct)

SessionId = Annotated[str, Meta(min_length=1, max_length=128, pattern=NAME_PATTERN)]
Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]
"""As OpenAI's dialects have it."""

_WITH_PATH: Final = re.compile(r"(?s)(.*?)(?: - at (?:`key` in )?`\$\.?(.*)`)?")
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_NOT_A_CHOICE: Final = ("Invalid value ", "Invalid enum value ")


def parse(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        read = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), decoder.type, "", _loaded(body)) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise CallerError(f"The body is not valid JSON: {error}.", code="invalid_json") from None
    if may_be_deep(body) and is_deep(read):
        raise _too_deep()
    return read


def _loaded(body: bytes) -> Any:
    """As far as it goes: what comes after a value that was refused may be no JSON."""
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None


def _too_deep() -> CallerError:
    return CallerError(f"The body is nested more than {MAX_DEPTH} levels deep.", code="invalid_json")


def convert(value: Any, wanted: type[T], path: str, *, strict: bool = True) -> T:
    """The same for a part of a body that was read without a type. Not strict: texts may be numbers, as in a query."""
    try:
        return msgspec.convert(value, wanted, strict=strict)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), wanted, path, value) from None


def unsupported(field: str, why: str) -> CallerError:
    return CallerError(f"'{field}' can't be used here: {why}", code="unsupported_parameter", param=field)


def _invalid(message: str, wanted: Any, prefix: str, value: Any) -> CallerError:
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
    words = choices(wanted, match[2] or "", value) if problem.startswith(_NOT_A_CHOICE) else []
    hint = f" It can be {listed(words)}." if words else ""
    return CallerError(f"Invalid value{place}: {problem[:1].lower()}{problem[1:]}.{hint}", param=path or None)
