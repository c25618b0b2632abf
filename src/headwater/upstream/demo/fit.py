"""Makes a value that fits a JSON schema, out of what somebody said.

The part of JSON schema that tools are described with. What it has no idea for, it gives the simplest value of the
right type. A schema that nothing fits, or that is none, gets some value all the same: there is always an answer.
"""

import re
from typing import Any, Final

from msgspec import Struct

Schema = dict[str, Any]

_DEEPEST: Final = 8
"""A schema may contain itself; below this, only what is required."""
_LARGEST: Final = 500
"""Values in one answer."""
_LONGEST: Final = 1000
"""Characters of a text, and of what is read of a prompt."""
_QUOTED: Final = re.compile(r"[\"“'‘«]([^\"”'’»]+)[\"”'’»]")
_NAMED: Final = re.compile(r"\b(?:in|of|for|about|to|from|at|on)\s+(?:the\s+)?((?:[A-Z][\w-]*\s?)+)")
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_FORMATS: Final = {
    "date": "2026-03-21",
    "date-time": "2026-03-21T08:30:00Z",
    "time": "08:30:00Z",
    "duration": "PT1H",
    "email": "ada@example.com",
    "uri": "https://example.com/rivers",
    "uuid": "7c0e5a4e-3f0b-4d5c-9a54-2b1f0c9d8e7f",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
}
_BY_TYPE: Final = ("object", "array", "string", "integer", "number", "boolean", "null")


class Said(Struct):
    """What there is to fill in, used up one by one."""

    prompt: str
    texts: list[str]
    numbers: list[float]
    room: int = _LARGEST


def fit(schema: Schema, prompt: str) -> Any:
    prompt = prompt[:_LONGEST]
    texts = [*_QUOTED.findall(prompt), *(name.strip() for name in _NAMED.findall(prompt))]
    said = Said(prompt, texts, [float(number) for number in _NUMBER.findall(prompt)])
    return _value(schema, schema, said, 0)


def _value(schema: Schema, root: Schema, said: Said, depth: int) -> Any:
    said.room -= 1
    if said.room < 0 or depth > 2 * _DEEPEST:
        return None
    schema = _resolved(schema, root, depth)
    if "const" in schema:
        return schema["const"]
    if options := _list(schema.get("enum")):
        # One that was named, else the first.
        return next((option for option in options if str(option).lower() in said.prompt.lower()), options[0])
    match _type(schema):
        case "object":
            return _object(schema, root, said, depth)
        case "array":
            wanted = 1 if depth < _DEEPEST and "items" in schema else 0
            count = int(min(_number_or(schema.get("minItems"), wanted), _LARGEST))
            return [_value(_schema(schema.get("items")), root, said, depth + 1) for _ in range(count)]
        case "integer":
            return int(_number(schema, said, 1))
        case "number":
            return _number(schema, said, 0)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return _string(schema, said)


def _schema(schema: Any) -> Schema:
    """`true` is one that anything fits."""
    return schema if isinstance(schema, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number_or(value: Any, other: float) -> float:
    return value if isinstance(value, int | float) and abs(value) < 1e15 else other


def _resolved(schema: Schema, root: Schema, depth: int) -> Schema:
    """References followed, parts put together, a choice made."""
    for _ in range(_DEEPEST):
        if isinstance(reference := schema.get("$ref"), str):
            schema = _pointed_at(reference, root) | {name: part for name, part in schema.items() if name != "$ref"}
        elif parts := _list(schema.get("allOf")):
            schema = {name: part for name, part in schema.items() if name != "allOf"}
            for part in parts:
                schema = _merged(schema, _schema(part))
        elif choices := _list(schema.get("anyOf")) or _list(schema.get("oneOf")):
            # A null is the way out of a schema that contains itself; else it says least.
            ends = [choice for choice in choices if choice == {"type": "null"}]
            rest = [choice for choice in choices if choice != {"type": "null"}]
            chosen = (ends or rest if depth >= _DEEPEST else rest or ends)[0]
            schema = _merged(
                {name: part for name, part in schema.items() if name not in ("anyOf", "oneOf")}, _schema(chosen)
            )
        else:
            break
    return schema


def _pointed_at(reference: str, root: Schema) -> Schema:
    found: Any = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        found = _schema(found).get(name.replace("~1", "/").replace("~0", "~")) if name else found
    return _schema(found)


def _merged(schema: Schema, part: Schema) -> Schema:
    """Both at once; of two lists of parts, all."""
    both = schema | part
    if "properties" in schema and "properties" in part:
        both["properties"] = _schema(schema["properties"]) | _schema(part["properties"])
    for name in ("required", "allOf"):
        if name in schema and name in part:
            both[name] = [*_list(schema[name]), *_list(part[name])]
    return both


def _type(schema: Schema) -> str:
    named = schema.get("type")
    if isinstance(named, list):
        return next((type for type in _BY_TYPE if type in named), "string")
    if isinstance(named, str):
        return named
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _object(schema: Schema, root: Schema, said: Said, depth: int) -> dict[str, Any]:
    """What is required; where nothing is, the first of what is possible."""
    properties = _schema(schema.get("properties"))
    required = _list(schema.get("required")) or ([] if depth else list(properties)[:1])
    names = [name for name in required if isinstance(name, str)]
    return {name: _value(_schema(properties.get(name)), root, said, depth + 1) for name in names}


def _number(schema: Schema, said: Said, step: int) -> float:
    """The next number that was said, moved to where it is allowed; `step` is 1 for whole ones."""
    number = said.numbers.pop(0) if said.numbers else _number_or(schema.get("default"), 1)
    multiple = abs(_number_or(schema.get("multipleOf"), step)) or step
    # As good as any step where every number will do.
    beyond = multiple or 0.5
    low, high = float("-inf"), float("inf")
    least = max(_number_or(schema.get("minimum"), low), _number_or(schema.get("exclusiveMinimum"), low) + beyond)
    most = min(_number_or(schema.get("maximum"), high), _number_or(schema.get("exclusiveMaximum"), high) - beyond)
    number = max(min(number, most), least)
    if multiple:
        # Upwards where that is allowed, so that a least one stays reached.
        up = -(-number // multiple) * multiple
        number = up if up <= most else number // multiple * multiple
    return number


def _string(schema: Schema, said: Said) -> str:
    known = _FORMATS.get(str(schema.get("format")))
    if known is not None:
        return known
    for example in (*_list(schema.get("examples")), schema.get("default")):
        if isinstance(example, str) and not said.texts:
            return example
    text = said.texts.pop(0) if said.texts else said.prompt.strip() or "river"
    least = int(min(_number_or(schema.get("minLength"), 0), _LONGEST))
    most = int(max(_number_or(schema.get("maxLength"), _LONGEST), 0))
    return text.ljust(least, ".")[:most]
