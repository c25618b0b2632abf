"""What `headwater serve` says when it starts: where its data is, which models it found, and why others are missing."""

from collections.abc import Iterator
from typing import Final

import typer

from headwater.config.load import Loaded
from headwater.server.services import Services

_SHOWN: Final = 5


def at_once(loaded: Loaded) -> list[str]:
    settings = loaded.settings
    names = [*(model.name for model in settings.models), *settings.agents, "demo/story and other demo models"]
    lines = [
        f"data: {settings.store.url.shown()}",
        f"configuration: {loaded.file or 'no file; defaults and the environment'}",
        f"models: {', '.join(names)}",
    ]
    if not settings.upstreams:
        lines.append("upstreams: none yet; set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST, or write them down")
    return lines


async def tell_models(services: Services) -> None:
    """As soon as all upstreams have told what they have, or have not."""
    await services.upstreams.catalog.refresh(services.clock.now_s())
    for line in listed(services):
        typer.echo(f"  {line}")


def listed(services: Services) -> Iterator[str]:
    """A line for each upstream."""
    catalog = services.upstreams.catalog
    names = [entry.name for entry in catalog.entries()]
    for upstream, settings in services.settings.upstreams.items():
        where = f"{upstream} ({settings.dialect}, {settings.base_url})"
        found = [name for name in names if name.startswith(f"{upstream}/")]
        if (failure := catalog.failures.get(upstream)) is not None:
            yield f"{where}: its models are missing: {failure}"
        elif not settings.list_models:
            yield f"{where}: not asked for its models (list_models = false)"
        elif not found:
            yield f"{where}: it has no model to talk to"
        else:
            more = f" and {len(found) - _SHOWN} more: headwater models" if len(found) > _SHOWN else ""
            yield f"{where}: {', '.join(found[:_SHOWN])}{more}"
