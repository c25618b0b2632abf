"""A call's arguments: from what the model wrote to what a tool takes, or to words that help the model."""

from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct

_SHOWN_CHARS: Final = 500
_SCHEMAS: Final = 512
"""Of how many tools the checker is kept ready."""


class Complaint(Struct, frozen=True):
    """For the model, which may do better in its next turn."""

    text: str


def prepare() -> None:
    """What checking needs is imported: a fifth of a second, once, and better on a thread."""
    _checker(b"{}")


def read(written: str, schema: dict[str, Any]) -> dict[str, Any] | Complaint:
    try:
        arguments = msgspec.json.decode(written) if written.strip() else {}
    except (ValueError, RecursionError) as error:
        return Complaint(f"The arguments are no JSON: {error}.")
    if not isinstance(arguments, dict):
        return Complaint("The arguments must be a JSON object.")
    wrong = _wrong(arguments, schema)
    return arguments if wrong is None else Complaint(f"The arguments do not fit the tool's schema: {wrong}")


def _wrong(arguments: dict[str, Any], schema: dict[str, Any]) -> str | None:
    """What is wrong, in one sentence. A schema that can't be used checks nothing: the tool sees to it itself."""
    # Late: it takes longer to import than the rest of a request.
    from jsonschema.exceptions import SchemaError, best_match
    from referencing.exceptions import Unresolvable

    try:
        error = best_match(_checker(msgspec.json.encode(schema)).iter_errors(arguments))
    except (SchemaError, Unresolvable, RecursionError, ValueError, TypeError, KeyError):
        return None
    if error is None:
        return None
    said = error.message if len(error.message) <= _SHOWN_CHARS else f"{error.message[:_SHOWN_CHARS]}…"
    return f"at {error.json_path}: {said}"


@lru_cache(_SCHEMAS)
def _checker(schema: bytes) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    known = msgspec.json.decode(schema)
    cls = validator_for(known, default=Draft202012Validator)
    cls.check_schema(known)
    # An empty registry: a schema that points elsewhere must not make us fetch what it points at.
    return cls(known, registry=Registry())
