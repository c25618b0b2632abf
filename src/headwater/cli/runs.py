"""`headwater runs`, `events` and `models`: what there is, and what happened. Only asks the server."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli import exits
from headwater.cli.chat import RunArgument
from headwater.cli.config import ConfigOption
from headwater.cli.reach import KeyOption, ServerOption, Where, with_server

if TYPE_CHECKING:
    from headwater.cli.reach import Reached

_EVERY_S = 1.0
_SHORT = 8
JsonOption = Annotated[bool, typer.Option("--json", help="For programs: one object a line.")]


def runs(
    status: Annotated[str | None, typer.Option(help="Only these: running, waiting, queued, failed, …")] = None,
    session: Annotated[str | None, typer.Option(help="Only of this conversation.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="How many.")] = 20,
    everybody: Annotated[bool, typer.Option("--all", help="Everybody's; the key needs the scope `admin`.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print them and leave, also on a terminal.")] = False,
    as_json: JsonOption = False,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """The runs, the newest first. On a terminal the table stays up to date until Ctrl-C or q."""
    from urllib.parse import urlencode

    wanted = {"status": status, "session_id": session, "limit": limit, "all": "true" if everybody else None}
    path = "/api/runs?" + urlencode({name: value for name, value in wanted.items() if value is not None})
    live = sys.stdout.isatty() and sys.stdin.isatty() and not once and not as_json

    async def work(reached: "Reached") -> int:
        if live:
            from headwater.cli.watching import watch

            return await watch(lambda: _rows(reached, path), _EVERY_S)
        found = (await reached.client.ask("GET", path))["runs"]
        _print(found, as_json)
        return exits.COMPLETED

    raise typer.Exit(with_server(Where(server, key, file), work))


async def _rows(server: "Reached", path: str) -> list[list[str]]:
    return table((await server.client.ask("GET", path))["runs"])


def _print(found: list[dict[str, Any]], as_json: bool) -> None:
    import json
    import shutil

    from headwater.cli.table import columns

    if as_json:
        for run in found:
            print(json.dumps(run))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in columns(table(found), width):
        print(line)


def table(found: list[dict[str, Any]]) -> list[list[str]]:
    """A row a run, below what the columns are."""
    rows = [["RUN", "STATUS", "MODEL", "TOOK", "TOKENS", "STARTED"]]
    for run in found:
        from headwater.cli.words import outcome_word

        used = run["usage"].get("output_tokens")
        tokens = "" if used is None else str(used)
        rows.append([run["id"][-_SHORT:], outcome_word(run), run["model"], _took(run), tokens, _ago(run["created_at"])])
    # What is worth most where there is little room comes first; the last is never left out.
    return [[row[0], row[1], row[3], row[4], row[5], row[2]] for row in rows]


def _took(run: dict[str, Any]) -> str:
    from datetime import UTC, datetime

    from headwater.cli.words import seconds

    if run["started_at"] is None:
        return ""
    end = datetime.fromisoformat(run["ended_at"]) if run["ended_at"] else datetime.now(UTC)
    return seconds(max(0.0, (end - datetime.fromisoformat(run["started_at"])).total_seconds()))


def _ago(moment: str) -> str:
    from datetime import UTC, datetime

    at = datetime.fromisoformat(moment)
    age_s = (datetime.now(UTC) - at).total_seconds()
    if age_s < 90:
        return "now" if age_s < 5 else f"{age_s:.0f} s ago"
    if age_s < 5400:
        return f"{age_s / 60:.0f} min ago"
    local = at.astimezone()
    return local.strftime("%H:%M") if age_s < 43_200 else local.strftime("%Y-%m-%d %H:%M")


# -------------------------------------------------------------------------- events


def events(
    run: RunArgument,
    every: Annotated[bool, typer.Option("--all", help="Each piece of text on its own line.")] = False,
    as_json: JsonOption = False,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """The log of a run as a timeline, to its end; one that goes on is followed."""

    async def work(reached: "Reached") -> int:
        from contextlib import aclosing

        from headwater.cli.pick import pick_run
        from headwater.cli.timeline import Timeline
        from headwater.events import encode_entry

        run_id = await pick_run(reached.client, run)
        timeline = Timeline(every)
        async with aclosing(reached.client.follow(run_id)) as entries:
            async for entry in entries:
                lines = [encode_entry(entry).decode()] if as_json else timeline.lines(entry)
                for line in lines:
                    print(line, flush=True)
        return exits.COMPLETED

    raise typer.Exit(with_server(Where(server, key, file), work))


# -------------------------------------------------------------------------- models


def models(
    as_json: JsonOption = False, server: ServerOption = None, key: KeyOption = None, file: ConfigOption = None
) -> None:
    """The models that can be asked for, and whose they are; on stderr, which upstreams gave no list of theirs."""

    async def work(reached: "Reached") -> int:
        import json

        from headwater.cli.showing import say
        from headwater.cli.table import columns
        from headwater.cli.unlisted import unlisted

        found = (await reached.client.ask("GET", "/v1/models"))["data"]
        if as_json:
            for model in found:
                print(json.dumps(model))
        else:
            for line in columns([[model["id"], model["owned_by"]] for model in found], None):
                print(line)
        for line in unlisted(reached, [model["id"] for model in found]):
            say(line)
        return exits.COMPLETED

    raise typer.Exit(with_server(Where(server, key, file), work))
