"""What a shell may complete besides options: models, runs, conversations of the server that runs. Never starts one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

_SHOWN = 50


def complete_model(ctx: typer.Context, incomplete: str) -> list[str]:
    return [name for name in _asked(ctx, "/v1/models", lambda a: [m["id"] for m in a["data"]]) if incomplete in name]


def complete_run(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    runs = _asked(ctx, f"/api/runs?limit={_SHOWN}", lambda answer: answer["runs"])
    return [(run["id"], f"{run['status']}, {run['model']}") for run in runs if run["id"].startswith(incomplete)]


def complete_session(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    found = _asked(ctx, f"/api/sessions?limit={_SHOWN}", lambda answer: answer["sessions"])
    return [(one["id"], one["title"] or "") for one in found if one["id"].startswith(incomplete)]


def _asked(ctx: typer.Context, path: str, read: Callable[[Any], list[Any]]) -> list[Any]:
    """Nothing, if there is no server, or it says no: a shell is no place for a word about it."""
    import asyncio

    from headwater.cli.reach import Where, reached_if_running

    given = ctx.params
    file = given.get("file")
    where = Where(
        given.get("server") or os.environ.get("HEADWATER_ADDRESS"),
        given.get("key") or os.environ.get("HEADWATER_KEY"),
        Path(file) if file else None,
    )

    async def main() -> list[Any]:
        async with reached_if_running(where) as server:
            return [] if server is None else read(await server.client.ask("GET", path, timeout_s=2, attempts=1))

    try:
        return asyncio.run(main())
    except Exception:
        return []
