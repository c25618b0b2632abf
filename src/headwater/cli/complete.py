"""`headwater completion`, and what a shell may complete besides options: models, runs, conversations.

They are asked of the server that runs; none is started for it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

COMPLETE_VARIABLE: Final = "_HEADWATER_COMPLETE"
"""By which a shell says that it wants to know how to go on, and not that anything be done."""
_SHOWN: Final = 50


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print the script that completes this command: `eval "$(headwater completion bash)"`, in ~/.bashrc say."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    typer.echo(get_completion_script(prog_name="headwater", complete_var=COMPLETE_VARIABLE, shell=shell))


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
