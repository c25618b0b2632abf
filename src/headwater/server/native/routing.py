"""Which path is meant. Clients of `/v1` choose the names of their sessions, and any of them can be reached (C63)."""

from typing import Final
from urllib.parse import parse_qs, unquote

from starlette.routing import Match, Route
from starlette.types import ASGIApp, Scope

_SLASH: Final = "\udc2f"
"""In the place of one that is part of a name: no path that was unquoted has it."""


class NamedRoute(Route):
    """There are names in its path, and a slash may be in a name: so it is cut up before it is unquoted."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw = scope["raw_path"].decode("ascii")
        if "%2f" not in raw.lower():
            return super().matches(scope)
        path = "/".join(unquote(part).replace("/", _SLASH) for part in raw.split("/"))
        match, found = super().matches({**scope, "path": path})
        if match is not Match.NONE:
            names = found["path_params"].items()
            found["path_params"] = {field: name.replace(_SLASH, "/") for field, name in names}
        return match, found


class QuestionRoute(Route):
    """A path that may be meant as a name, too: it is the question only where something is asked."""

    def __init__(self, path: str, app: ASGIApp, asked: str) -> None:
        super().__init__(path, app)
        self._asked = asked

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        if match is Match.NONE or not self._is_asked(scope):
            return Match.NONE, {}
        return match, found

    def _is_asked(self, scope: Scope) -> bool:
        query = scope["query_string"].decode("latin-1")
        return scope["method"] == "GET" and self._asked in parse_qs(query, keep_blank_values=True)
