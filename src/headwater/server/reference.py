"""`/docs`: the API for people, as one page made from the same document as programs get. No script, nothing fetched."""

from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Any, Final

_STYLE: Final = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code{font-size:.92em}h2{margin:2rem 0 .5rem}h3{font-size:1rem;margin:.8rem 0 .2rem}"
    "details{border-top:1px solid #8884;padding:.35rem 0}details>*:not(summary){margin-left:1.2rem}"
    "summary{cursor:pointer}summary b{display:inline-block;min-width:4.2rem;font:600 .85em ui-monospace,monospace}"
    "summary span{opacity:.75}table{border-collapse:collapse}td{padding:.1rem 1.2rem .1rem 0;vertical-align:top}"
    ".needed::after{content:' *';color:#c33}"
)
_DIALECTS: Final = (
    ("POST", "/v1/chat/completions", "OpenAI's chat completions"),
    ("POST", "/v1/responses", "OpenAI's Responses; GET and DELETE /v1/responses/{id}, POST /v1/responses/{id}/cancel"),
    ("POST", "/v1/messages", "Anthropic's Messages"),
    ("GET", "/v1/models", "what can be asked for"),
)


_HEAD: Final = f"""<!doctype html><html lang=en><meta charset=utf-8>
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Headwater: the API</title>
<style>{_STYLE}</style><h1>The API</h1>
<p>For programs: <a href=openapi.json>openapi.json</a>. A key goes into <code>Authorization: Bearer …</code> or
<code>x-api-key</code>; a server without keys needs none from its own machine. What is marked * must be there.</p>
<h2>/v1</h2><p>As their SDKs speak them; besides, each takes <code>session_id</code>, <code>on_disconnect</code>
and <code>on_cut</code>.</p>
"""


def page(document: dict[str, Any]) -> str:
    schemas: dict[str, Any] = document["components"]["schemas"]
    paths: dict[str, dict[str, Any]] = document["paths"]
    operations = [(path, method, said) for path, methods in paths.items() for method, said in methods.items()]
    parts = [
        _HEAD,
        *(f"<details><summary>{_title(*route)}</summary></details>" for route in _DIALECTS),
    ]
    for family, rows in groupby(operations, key=lambda row: _family(row[0])):
        parts.append(f"<h2>{escape(family)}</h2>")
        parts += [_operation(path, method, said, schemas) for path, method, said in rows]
    parts.append("<h2 id=types>Types</h2>")
    parts += [_type(name, schemas[name]) for name in sorted(schemas)]
    return "".join(parts)


def _family(path: str) -> str:
    first, second = [*path.split("/"), ""][1:3]
    return f"/{first}/{second}" if first == "api" else f"/{first}"


def _title(method: str, path: str, says: str) -> str:
    return f"<b>{method}</b><code>{escape(path)}</code> <span>{escape(says)}</span>"


def _operation(path: str, method: str, said: dict[str, Any], schemas: dict[str, Any]) -> str:
    parts = [f"<details><summary>{_title(method.upper(), path, said['summary'])}</summary>"]
    if said["parameters"]:
        rows = [(one["name"], one["schema"], one.get("required", False), one["in"]) for one in said["parameters"]]
        parts.append("<h3>Parameters</h3>" + _table(rows))
    for kind, body in said.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<h3>Body: <code>{escape(kind)}</code></h3>" + _fields(_resolved(body["schema"], schemas)))
    parts.append("<h3>Answers</h3><table>")
    for status, answer in said["responses"].items():
        parts.append(f"<tr><td>{status}<td>{escape(answer['description'])}<td>{_contents(answer)}")
    return "".join([*parts, "</table></details>"])


def _contents(answer: dict[str, Any]) -> str:
    return ", ".join(
        _kind(content["schema"]) if kind == "application/json" else f"<code>{escape(kind)}</code>"
        for kind, content in answer.get("content", {}).items()
    )


def _type(name: str, schema: dict[str, Any]) -> str:
    summary = f"<details id={escape(name)}><summary><code>{escape(name)}</code></summary>"
    return summary + (_fields(schema) or f"<p>{_kind(schema)}</p>") + "</details>"


def _fields(schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = [(name, kind, name in needed, "") for name, kind in schema.get("properties", {}).items()]
    return _table(rows) if rows else ""


def _table(rows: list[tuple[str, dict[str, Any], bool, str]]) -> str:
    return "<table>" + "".join(_row(*row) for row in rows) + "</table>"


def _row(name: str, schema: dict[str, Any], needed: bool, place: str) -> str:
    mark = " class=needed" if needed else ""
    about = "; ".join(filter(None, (place, schema.get("description", ""), *_limits(schema))))
    return f"<tr><td><code{mark}>{escape(name)}</code><td>{_kind(schema)}<td>{escape(about)}"


def _limits(schema: dict[str, Any]) -> Iterator[str]:
    for word, says in (("minimum", "at least"), ("maximum", "at most"), ("maxLength", "characters at most")):
        if word in schema:
            yield f"{says} {schema[word]}"
    if schema.get("default") not in (None, [], {}, ""):
        yield f"else {schema['default']}"


def _kind(schema: dict[str, Any]) -> str:
    """Its type, in a few words; what has a name is a link."""
    match schema:
        case {"$ref": str(ref)}:
            name = escape(ref.rpartition("/")[2])
            return f"<a href=#{name}>{name}</a>"
        case {"anyOf": list(kinds)}:
            return " | ".join(_kind(kind) for kind in kinds)
        case {"enum": list(values)}:
            return " | ".join(f"<code>{escape(str(value))}</code>" for value in values)
        case {"type": "array", "items": dict(items)}:
            return f"[{_kind(items)}]"
        case {"type": str(name)}:
            return escape(name)
        case _:
            return "any"


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    ref = schema.get("$ref")
    found: dict[str, Any] = schema if ref is None else schemas[ref.rpartition("/")[2]]
    return found
