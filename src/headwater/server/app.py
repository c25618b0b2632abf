"""The application: what is served today is one page that says what there is."""

from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

import headwater
from headwater.dialects import DIALECTS

# No script, no request to anywhere: the page is only read.
_HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"}


def build_app() -> Starlette:
    template = (files("headwater.server") / "page.html").read_text()
    page = template.replace("{{version}}", headwater.__version__).replace("{{dialects}}", ", ".join(DIALECTS))

    async def index(request: Request) -> Response:
        return HTMLResponse(page, headers=_HEADERS)

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    return Starlette(routes=[Route("/", index), Route("/healthz", healthz)])
