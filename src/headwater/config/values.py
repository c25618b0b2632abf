"""What is wrong with single values that their types allow: addresses, names, headers, keys."""

import re
from typing import Final

from headwater.config.addresses import http_fault, network_fault, store_fault
from headwater.config.places import Fault, Place, Problems
from headwater.config.secret import Secret
from headwater.config.settings import McpSettings, ServerSettings, Settings, UpstreamSettings

DEMO: Final = "demo"
"""The built-in upstream, there without being configured."""

_SHORTEST_KEY: Final = 16
_UPSTREAM_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
# No dot: it parts the server from the tool in `approve`.
_MCP_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# They belong to the connection, and would break it.
_NOT_YOURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "te"})
_PYTHON: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def check_values(settings: Settings, problems: Problems) -> None:
    _check_server(settings.server, problems)
    _note(problems, ("store", "url"), store_fault(settings.store.url.reveal()))
    for name, upstream in settings.upstreams.items():
        _check_upstream(name, upstream, problems)
    for number, model in enumerate(settings.models):
        _note(problems, ("models", number, "name"), _listed_fault(model.name))
    for name, mcp in settings.mcp.items():
        _check_mcp(name, mcp, problems)
    for name, agent in settings.agents.items():
        _note(problems, ("agents", name), _listed_fault(name))
        if agent.python is not None and not _PYTHON.fullmatch(agent.python):
            what = "must name a module and what is in it."
            problems.add(("agents", name, "python"), what, 'Write it like "mypackage.bots:mine".')


def _note(problems: Problems, place: Place, fault: Fault | None) -> None:
    if fault:
        problems.add(place, *fault)


def _listed_fault(name: str) -> Fault | None:
    """Models and agents are listed for clients to choose from."""
    if name.startswith(f"{DEMO}/"):
        return Fault(f"begins with {DEMO}/, which is kept for the built-in models.", "Choose another name.")
    if not name.isprintable() or name.strip() != name or not name:
        return Fault("is no name to be listed.", "Leave out blanks at its ends, and what can't be printed.")
    return None


def _check_server(server: ServerSettings, problems: Problems) -> None:
    for number, proxy in enumerate(server.trusted_proxies):
        _note(problems, ("server", "trusted_proxies", number), network_fault(proxy))
    for number, host in enumerate(server.allowed_hosts):
        if not re.fullmatch(r"[A-Za-z0-9.*_-]+|\[[0-9a-fA-F:]+\]", host):
            fix = 'Write it like "chat.example.com", without http:// and without a port.'
            problems.add(("server", "allowed_hosts", number), "is no name of a host.", fix)
    for number, origin in enumerate(server.cors_origins):
        if not re.fullmatch(r"https?://([A-Za-z0-9._-]+|\[[0-9a-fA-F:]+\])(:\d+)?", origin):
            fix = 'Write it like "https://app.example.com", as a browser does in `Origin`: without a path.'
            problems.add(("server", "cors_origins", number), "is no origin.", fix)
    if server.base_path and not re.fullmatch(r"(/[A-Za-z0-9_.~-]+)+", server.base_path):
        problems.add(("server", "base_path"), "must begin with / and not end with one.", 'Write it like "/headwater".')
    for number, key in enumerate(server.keys):
        place: Place = ("server", "keys", number, "key")
        text = key.key.reveal()
        if len(text) < _SHORTEST_KEY:
            fix = "Take at least 16 random ones: openssl rand -hex 16"
            problems.add(place, "is too short: it could be guessed.", fix)
        _check_printable(key.key, place, problems)


def _check_upstream(name: str, upstream: UpstreamSettings, problems: Problems) -> None:
    place: Place = ("upstreams", name)
    if name == DEMO:
        problems.add(place, "is kept for the built-in models.", "Choose another name.")
    elif not _UPSTREAM_NAME.fullmatch(name):
        problems.add(place, "is no name for an upstream.", "Use letters, digits, and _ . - after the first.")
    _note(problems, (*place, "base_url"), http_fault(upstream.base_url))
    for number, key in enumerate(upstream.api_key):
        _check_printable(key, (*place, "api_key", number), problems)
    _check_headers(place, upstream.headers, problems)


def _check_headers(place: Place, headers: dict[str, Secret], problems: Problems) -> None:
    for header, value in headers.items():
        if not _HEADER.fullmatch(header):
            problems.add((*place, "headers", header), "is no name of a header.", 'Write it like "x-team".')
        elif header.lower() in _NOT_YOURS:
            problems.add((*place, "headers", header), "belongs to the connection.", "Take it out.")
        _check_printable(value, (*place, "headers", header), problems, blanks=True)


def _check_mcp(name: str, mcp: McpSettings, problems: Problems) -> None:
    place: Place = ("mcp", name)
    if not _MCP_NAME.fullmatch(name):
        problems.add(place, "is no name for a server of tools.", "Use letters, digits, and _ - after the first.")
    if not mcp.command and mcp.url is None:
        fix = 'Write it like command = ["uvx", "mcp-server-files"], or url = "http://…".'
        problems.add((*place, "command"), "is missing, and there is no url.", fix)
    if mcp.command and not mcp.command[0]:
        problems.add((*place, "command"), "begins with an empty text.", "The first one is the program.")
    if mcp.url is not None:
        _note(problems, (*place, "url"), http_fault(mcp.url.reveal(), with_query=True))
        for key in ("command", "env", "cwd"):
            if getattr(mcp, key):
                problems.add((*place, key), "can't stand beside a url.", "Take one of them out.")
    elif mcp.headers:
        problems.add((*place, "headers"), "can't stand beside a command.", "They are for a url.")
    _check_headers(place, mcp.headers, problems)
    for variable, value in mcp.env.items():
        if not variable or "=" in variable or "\0" in variable + value.reveal():
            problems.add((*place, "env", variable), "can't be a variable.", "No =, and no null byte.")


def _check_printable(secret: Secret, place: Place, problems: Problems, *, blanks: bool = False) -> None:
    """It goes into a header, where a line break would begin another."""
    text = secret.reveal()
    if not text.isascii() or not text.isprintable() or (" " in text and not blanks):
        problems.add(place, "has characters that no header can carry.", "Is there a blank or a line break in it?")
