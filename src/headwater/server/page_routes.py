"""The page at `/` and its files, as they were built into the package.

They are few and small, so they are held in memory, each also as gzip. What has a hash of its content in its name is
kept by browsers for ever; the page itself is asked for anew each time, and is mostly "not modified". Nothing here waits
for anything: whoever opens the page sees it before any other request has been answered.
"""

import gzip
import hashlib
import mimetypes
from collections.abc import Iterator, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

import headwater
from headwater.dialects import DIALECTS

_SAFE: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}
# What is not named is not allowed: no script but our files, no address but this server's, no picture from elsewhere.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# No script, no request to anywhere: it is only read.
_UNBUILT_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_PACKED: Final = (".html", ".js", ".css", ".svg")


class _File(Struct, frozen=True):
    path: str
    media_type: str
    body: bytes
    packed: bytes | None
    tag: str


def page_routes() -> list[BaseRoute]:
    built = files("headwater.server") / "page"
    found = list(_files(built)) if built.is_dir() else []
    if not any(file.path == "index.html" for file in found):
        return [_route("/", _file("index.html", _unbuilt()), _UNBUILT_POLICY)]
    return [_route("/" if file.path == "index.html" else f"/{file.path}", file, _POLICY) for file in found]


def _files(folder: Traversable, at: str = "") -> Iterator[_File]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{at}{entry.name}/")
        else:
            yield _file(f"{at}{entry.name}", entry.read_bytes())


def _file(path: str, body: bytes) -> _File:
    media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    packed = gzip.compress(body, mtime=0) if path.endswith(_PACKED) else None
    return _File(path, media_type, body, packed, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _route(path: str, file: _File, policy: str) -> Route:
    hashed = file.path.startswith("assets/")
    fixed = {
        **_SAFE,
        "content-security-policy": policy,
        "cache-control": _FOR_EVER if hashed else "no-cache",
        "etag": file.tag,
        "vary": "accept-encoding",
    }

    async def give(request: Request) -> Response:
        if file.tag in _listed(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=fixed)
        if file.packed is not None and "gzip" in _listed(request.headers.get("accept-encoding", "")):
            headers = {**fixed, "content-encoding": "gzip"}
            return Response(file.packed, media_type=file.media_type, headers=headers)
        return Response(file.body, media_type=file.media_type, headers=fixed)

    return Route(path, give)


def _listed(header: str) -> Sequence[str]:
    return [one.partition(";")[0].strip().removeprefix("W/") for one in header.split(",")]


def _unbuilt() -> bytes:
    template = (files("headwater.server") / "unbuilt.html").read_text()
    return template.replace("{{version}}", headwater.__version__).replace("{{dialects}}", ", ".join(DIALECTS)).encode()
