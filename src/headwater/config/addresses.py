"""What an address has to be, and how Ollama writes its own.

A fault never repeats the address: it may hold a password.
"""

import ipaddress
from typing import Final
from urllib.parse import SplitResult, urlsplit

from headwater.config.places import Fault

# What people copy from a provider's documentation along with the base.
_ROUTES: Final = ("/chat/completions", "/responses", "/messages", "/models", "/completions")


def http_fault(address: str, *, with_query: bool = False) -> Fault | None:
    """What keeps this from being an address that can be asked."""
    if any(letter.isspace() or not letter.isprintable() for letter in address):
        return Fault("has a blank in it.", "Take it out.")
    try:
        url = urlsplit(address)
        url.port  # noqa: B018 # it raises
    except ValueError:
        return Fault("is not an address.", 'Write it like "https://api.example.com/v1".')
    if url.scheme not in ("http", "https") or not url.hostname:
        return Fault("must begin with http:// or https:// and a host.", 'Write it like "https://api.example.com/v1".')
    if "@" in url.netloc:
        return Fault("has a user or a password in it.", "A key belongs into api_key, or into headers.")
    return None if with_query else _base_fault(url)


def _base_fault(url: SplitResult) -> Fault | None:
    if url.query or url.fragment:
        return Fault("has a query in it, but paths are put behind it.", "Leave out what begins with ? or #.")
    for route in _ROUTES:
        if url.path.rstrip("/").endswith(route):
            return Fault("is the address of one route, but has to be their base.", f"Leave out {route}.")
    return None


def store_fault(address: str) -> Fault | None:
    scheme, _, rest = address.partition(":")
    known = scheme == "memory" or (scheme == "sqlite" and rest) or scheme in ("postgresql", "postgres")
    return None if known else Fault("is no store that is known.", "There is: sqlite:PATH, postgresql://…, memory:.")


def network_fault(text: str) -> Fault | None:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return Fault("must be an address or a network.", 'Write it like "10.0.0.1" or "10.0.0.0/8".')
    return None


def ollama_base(host: str) -> str:
    """`OLLAMA_HOST` in all the forms that Ollama itself takes, as a base for its compatible API.

    It says where Ollama listens as well as where to reach it, so it may be an address that stands for all.
    """
    host = host.strip().strip("\"'").strip()
    scheme, found, rest = host.partition("://")
    if not found:
        scheme, rest = "http", host
    default_port = {"http": "80", "https": "443"}.get(scheme, "") if found else "11434"
    place, _, path = rest.partition("/")
    name, port = _split_port(place)
    path = f"/{path.strip('/')}".rstrip("/")
    return f"{scheme}://{_reachable(name)}:{port or default_port}{path}/v1"


def _split_port(place: str) -> tuple[str, str]:
    bare = place.strip("[]")
    if bare.count(":") > 1 and "]:" not in place:
        return bare, ""
    name, _, port = place.rpartition(":") if ":" in place else (place, "", "")
    return name.strip("[]"), port


def _reachable(name: str) -> str:
    try:
        address = ipaddress.ip_address(name or "127.0.0.1")
    except ValueError:
        return name
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return f"[{address}]" if address.version == 6 else str(address)
