"""OpenAPI 3.1, made from the table of endpoints and the types that read the requests; and the same as a page."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import fields

import headwater
from headwater.server.native.endpoint import Call, Endpoint, Nothing, Reply, endpoint
from headwater.server.native.shapes import ErrorAnswer
from headwater.server.reference import page

_PARAMETER: Final = re.compile(r"{(\w+)}")
_REF: Final = "#/components/schemas/{name}"
_REFUSED: Final = (400, 401, 403, 404, 413, 415, 421, 429, 431, 503)
"""What any of them may answer."""
_CSP: Final = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"}


def described(endpoints: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """The endpoints that tell of the others. Both are made once."""
    made = openapi(endpoints)
    document, html = msgspec.json.encode(made), page(made).encode()

    async def tell(call: Call, query: Nothing) -> Reply:
        return Reply(document)

    async def show(call: Call, query: Nothing) -> Reply:
        return Reply(html, headers=_CSP, media_type="text/html; charset=utf-8")

    return (
        endpoint("GET", "/openapi.json", tell, Nothing, "application/json", "This API, for programs", needs=None),
        endpoint("GET", "/docs", show, Nothing, "text/html", "This API, for people", needs=None),
    )


def openapi(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    types = [ErrorAnswer, *(one.takes for one in endpoints), *(one.gives for one in endpoints if _is_json(one))]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headwater", "version": headwater.__version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
        # None is needed where the server has no keys.
        "security": [{}, {"bearer": []}, {"header": []}],
    }


def _is_json(one: Endpoint) -> bool:
    return isinstance(one.gives, type) and issubclass(one.gives, Struct)


def _operation(one: Endpoint, schema_of: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "operationId": f"{one.method.lower()}{re.sub(r'[^a-z]+', '_', one.path.removeprefix('/api'))}".rstrip("_"),
        "summary": one.says,
        "parameters": [*_path_parameters(one), *_headers(one), *(_query(one, components) if one.from_query else ())],
        "responses": _responses(one, schema_of),
    }
    if one.needs is None:
        said["security"] = []
    if one.media_types:
        said["requestBody"] = {"required": True, "content": {kind: {"schema": {}} for kind in one.media_types}}
    elif not one.from_query:
        needed = any(field.required for field in fields(one.takes))
        said["requestBody"] = {"required": needed, "content": {"application/json": {"schema": schema_of[one.takes]}}}
    return said


def _path_parameters(one: Endpoint) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in _PARAMETER.findall(one.path)]


def _headers(one: Endpoint) -> list[dict[str, Any]]:
    if one.once:
        about = "unique for its owner; the same key and body again give the same answer, for 24 hours by default"
        schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 255}
        return [{"name": "Idempotency-Key", "in": "header", "description": about, "schema": schema}]
    if one.gives == "text/event-stream":
        return [{"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}}]
    return []


def _query(one: Endpoint, components: dict[str, Any]) -> list[dict[str, Any]]:
    properties = components[one.takes.__name__]["properties"]
    return [
        {
            "name": field.encode_name,
            "in": "query",
            "required": field.required,
            "schema": _not_null(properties[field.encode_name]),
        }
        for field in fields(one.takes)
    ]


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query has no null: there a field is left out."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    schema = {name: value for name, value in schema.items() if value is not UNSET and name not in ("anyOf", "default")}
    return schema | (kinds[0] if kinds else {})


def _responses(one: Endpoint, schema_of: dict[Any, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": schema_of[one.gives]}} if _is_json(one) else {}
    if isinstance(one.gives, str):
        content = {one.gives: {"schema": {"type": "string"}}}
        if one.gives == "text/markdown":
            content["application/json"] = {"schema": {"type": "object"}}
    error = {"application/json": {"schema": schema_of[ErrorAnswer]}}
    found: dict[str, Any] = {}
    for status in sorted({one.status, *one.also, *_REFUSED}):
        said = content if status == one.status or (status < 300 and status != 204) else error
        found[str(status)] = {"description": HTTPStatus(status).phrase} | ({"content": said} if said else {})
        if status == 204:
            found["204"].pop("content", None)
    return found
