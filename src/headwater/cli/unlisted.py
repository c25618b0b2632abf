"""Which upstreams a server's list of models lacks, as far as a command can know.

A server of its own says why. Of one that was found by the configuration, that tells who should be on the list; of one
that was named, nothing is known.
"""

from collections.abc import Collection

from headwater.cli.reach import Reached


def unlisted(server: Reached, names: Collection[str]) -> list[str]:
    """A sentence for each upstream that was to tell what it has, and is not among the models of these `names`."""
    upstreams = {} if server.settings is None else server.settings.upstreams
    asked = [(name, one.base_url) for name, one in upstreams.items() if one.list_models]
    found = [(f"{name} ({url})", _lack(server, name, names)) for name, url in asked]
    return [f"{who} {lack}" for who, lack in found if lack is not None]


def _lack(server: Reached, upstream: str, names: Collection[str]) -> str | None:
    failure = None if server.catalog is None else server.catalog.failures.get(upstream)
    if failure is not None:
        return f"gave no list of its models: {failure}"
    if any(name.startswith(f"{upstream}/") for name in names):
        return None
    if server.embedded:
        return "has no model to talk to."
    return f"has no model in the list of the server at {server.client.url}. To see why: headwater doctor"
