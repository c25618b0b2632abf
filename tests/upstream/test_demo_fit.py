"""Arguments that fit, judged by pydantic: tools are usually described by its schemas."""

from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from headwater.upstream.demo.fit import fit


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Place(BaseModel):
    name: str = Field(min_length=3, max_length=12)
    height_m: float = Field(ge=-500, lt=9000)


class Tree(BaseModel):
    value: int
    left: "Tree | None"
    right: "Tree | None" = None
    children: list["Tree"]


class Everything(BaseModel):
    when: datetime
    day: date
    id: UUID
    colour: Colour
    kind: Literal["fixed"]
    place: Place
    places: list[Place] = Field(min_length=2)
    maybe: int | None
    either: int | str
    count: Annotated[int, Field(gt=4, multiple_of=3)]
    small: Annotated[float, Field(le=0.5)]
    flag: bool
    nothing: None


TYPES: list[Any] = [
    str,
    int,
    float,
    bool,
    None,
    date,
    UUID,
    Colour,
    Place,
    list[int],
    dict[str, int],
    Place | str,
    Annotated[int, Field(ge=10, le=12)],
    Annotated[int, Field(lt=-3)],
    Annotated[float, Field(gt=0.25, multiple_of=0.5)],
    Annotated[int, Field(ge=10, le=14, multiple_of=10)],
    Annotated[str, Field(min_length=20)],
    Annotated[str, Field(max_length=2)],
    Annotated[list[str], Field(min_length=3)],
]


@given(
    st.lists(st.sampled_from(range(len(TYPES))), min_size=1, max_size=6),
    st.text(max_size=30) | st.just("Paris, 7 and 99999.5"),
)
def test_arguments_fit_the_schema(chosen: list[int], prompt: str) -> None:
    model = create_model("Arguments", **{f"field_{n}": (TYPES[type], ...) for n, type in enumerate(chosen)})  # type: ignore[call-overload]
    model.model_validate(fit(model.model_json_schema(), prompt))


@pytest.mark.parametrize("prompt", ["", "green", "Where is “Rome”? I have 12 of 1000.5"])
@pytest.mark.parametrize("model", [Everything, Tree])
def test_arguments_fit_a_schema_of_many_parts_and_one_that_contains_itself(model: type[BaseModel], prompt: str) -> None:
    model.model_validate(fit(model.model_json_schema(), prompt))


@pytest.mark.parametrize(
    ("schema", "prompt", "value"),
    [
        ({"enum": ["red", "green"]}, "A Green one", "green"),
        ({"enum": [3, 4]}, "any", 3),
        ({"const": 7}, "any", 7),
        ({"type": "string"}, "what about “this one”?", "this one"),
        ({"type": "string"}, "the boats on the Danube", "Danube"),
        ({"type": "string"}, "plain words", "plain words"),
        ({"type": "string"}, "", "river"),
        ({"type": "string", "examples": ["like this"]}, "plain words", "like this"),
        ({"type": "string", "default": "by default"}, "plain words", "by default"),
        ({"type": "string", "default": "by default"}, "“named”", "named"),
        ({"type": "integer"}, "take 12 of them", 12),
        ({"type": "integer", "default": 5}, "some", 5),
        ({"type": "integer", "default": None}, "some", 1),
        ({"type": ["null", "integer"]}, "12", 12),
        ({"type": []}, "x", "x"),
        ({"properties": {"a": {"type": "boolean"}, "b": {}}}, "x", {"a": True}),
        ({"items": {"type": "integer"}}, "1", [1]),
        ({"type": "array"}, "1", []),
        ({"type": "object", "properties": {"a": True}, "required": ["a", "b"]}, "x", {"a": "x", "b": "x"}),
        ({"allOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"b": {"const": 2}}, "required": ["b"]}]}, "", {"a": 1, "b": 2}),
        ({"allOf": [{"type": "integer"}, True]}, "5", 5),
        ({"oneOf": [{"type": "null"}]}, "", None),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"const": 1}}}, "", 1),
        ({"$ref": "#/nowhere/at/all"}, "x", "x"),
        ({"$ref": "#"}, "x", "x"),
    ],
)  # fmt: skip
def test_what_was_said_is_put_to_use(schema: dict[str, Any], prompt: str, value: Any) -> None:
    assert fit(schema, prompt) == value


LIMITS = ["minItems", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
PARTS = ["properties", "required", "items", "allOf", "anyOf", "oneOf", "$ref"]
words = st.sampled_from([*LIMITS, *PARTS, "type", "enum", "const", "multipleOf", "format", "default", "examples"])
scalars = st.sampled_from(
    [None, True, 0, -1, 10**30, 1e300, 0.5, "object", "array", "integer", "string", "#", "#/properties", ""]
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5), max_leaves=30
)


@given(st.dictionaries(words, anything, max_size=6), st.text(max_size=20))
def test_what_is_no_schema_gets_some_value_all_the_same(schema: dict[str, Any], prompt: str) -> None:
    msgspec.json.encode(fit(schema, prompt))


def test_a_schema_that_asks_for_too_much_gets_less() -> None:
    itself = {name: {"$ref": "#"} for name in "abcdefghij"}
    endless: dict[str, Any] = {"type": "object", "properties": itself, "required": list(itself)}
    long: list[dict[str, Any]] = [
        {"type": "array", "items": {}, "minItems": 10**9},
        {"type": "string", "minLength": 10**9},
    ]
    for schema in [endless, *long]:
        assert len(msgspec.json.encode(fit(schema, "x"))) < 20_000
