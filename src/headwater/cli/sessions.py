"""`headwater sessions`: conversations listed, searched, shown, let go on, taken away, deleted."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from typer.core import TyperGroup

from headwater.cli import exits
from headwater.cli.complete import complete_session
from headwater.cli.config import ConfigOption
from headwater.cli.reach import KeyOption, ServerOption, Where, session_path, with_server

if TYPE_CHECKING:
    from headwater.cli.reach import Reached


class _ListedByDefault(TyperGroup):
    """Options without a command are those of `list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = bool(args) and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        # A shell that completes what is not there yet is to be told of the commands.
        completes = not args and ctx.resilient_parsing
        return super().parse_args(ctx, args if named or completes else ["list", *args])


sessions = typer.Typer(
    cls=_ListedByDefault,
    help="Conversations: listed (which is the default, with its options), searched, shown, let go on, exported, "
    "deleted.",
)

_SHORT: Final = 8
JsonOption = Annotated[bool, typer.Option("--json", help="For programs: one object a line.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="How many.")]
SessionArgument = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="Its id, the end of it, or `last`.", autocompletion=complete_session),
]


@sessions.command("list")
def list_sessions(
    limit: LimitOption = 20,
    as_json: JsonOption = False,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """The newest first."""

    async def work(reached: "Reached") -> int:
        found = (await reached.client.ask("GET", f"/api/sessions?limit={limit}"))["sessions"]
        rows = [[one["id"], _day(one["updated_at"]), one["title"] or "(nothing was said)"] for one in found]
        _print(found, rows, as_json)
        return exits.COMPLETED

    raise typer.Exit(with_server(Where(server, key, file), work))


@sessions.command()
def search(
    words: Annotated[list[str], typer.Argument(help="All of them are in the message.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="How many.")] = 20,
    as_json: JsonOption = False,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """Messages that have all the words. The exit code is 1 if there is none."""
    from urllib.parse import urlencode

    async def work(reached: "Reached") -> int:
        from headwater.cli.words import one_line

        query = urlencode({"q": " ".join(words), "limit": limit})
        hits = (await reached.client.ask("GET", f"/api/sessions/search?{query}"))["hits"]
        rows = [[hit["session_id"], _day(hit["created_at"]), one_line(hit["snippet"])] for hit in hits]
        _print(hits, rows, as_json)
        return exits.COMPLETED if hits else exits.FAILED

    raise typer.Exit(with_server(Where(server, key, file), work))


@sessions.command()
def show(
    session: SessionArgument,
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs: one message, notice or queued message a line.")
    ] = False,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """What was said, on the branch that is shown; and what is queued."""

    async def work(reached: "Reached") -> int:
        import json

        from headwater.cli.pick import pick_session
        from headwater.cli.queued import lines, queue_of
        from headwater.cli.transcript import show_items

        session_id = await pick_session(reached.client, session)
        items = (await reached.client.ask("GET", session_path(session_id, "/messages")))["items"]
        queue = await queue_of(reached, session_id)
        if as_json:
            queued = [{"kind": "queued", "paused": queue["paused"], **item} for item in queue["items"]]
            for item in (*items, *queued):
                print(json.dumps(item))
        else:
            show_items(items)
            for line in lines(queue, session_id):
                print(line)
        return exits.COMPLETED

    raise typer.Exit(with_server(Where(server, key, file), work))


@sessions.command("resume")
def resume_queue(
    session: SessionArgument,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """Let a queue go on that was paused, by a stop, a failure or a crash, and say how to follow each answer.

    Where no server runs, they are followed here, to the end.
    """

    async def work(reached: "Reached") -> int:
        from headwater.cli.pick import pick_session
        from headwater.cli.queued import resume

        return await resume(reached, await pick_session(reached.client, session))

    raise typer.Exit(with_server(Where(server, key, file), work))


@sessions.command()
def export(
    session: SessionArgument,
    form: Annotated[Literal["md", "json"], typer.Option("--format", "-f", help="md or json.")] = "md",
    to: Annotated[Path | None, typer.Option("--to", "-o", help="A file; else it is printed.")] = None,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """To take away: Markdown, or JSON with every branch."""

    async def work(reached: "Reached") -> int:
        import json

        from headwater.cli.pick import pick_session

        session_id = await pick_session(reached.client, session)
        answer = await reached.client.ask("GET", session_path(session_id, f"/export?format={form}"))
        data = answer if isinstance(answer, bytes) else json.dumps(answer, indent=2, ensure_ascii=False).encode()
        if to is None:
            sys.stdout.buffer.write(data if data.endswith(b"\n") else data + b"\n")
            return exits.COMPLETED
        try:
            to.expanduser().write_bytes(data)
        except OSError as error:
            exits.leave(f"{to} can't be written: {error.strerror}.", exits.FAILED)
        return exits.COMPLETED

    raise typer.Exit(with_server(Where(server, key, file), work))


@sessions.command()
def delete(
    session: SessionArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """With all that is in it. There is no way back."""

    async def work(reached: "Reached") -> int:
        from headwater.cli.pick import pick_session

        session_id = await pick_session(reached.client, session)
        title = (await reached.client.ask("GET", session_path(session_id)))["title"] or "without a title"
        if not yes and not (sys.stdin.isatty() and typer.confirm(f"Delete {session_id} ({title})?", err=True)):
            exits.leave("nothing was deleted; --yes does it without asking.")
        await reached.client.ask("DELETE", session_path(session_id))
        typer.echo(f"Deleted: {session_id} ({title}).", err=True)
        return exits.COMPLETED

    raise typer.Exit(with_server(Where(server, key, file), work))


def _print(found: list[dict[str, Any]], rows: list[list[str]], as_json: bool) -> None:
    import json
    import shutil

    from headwater.cli.table import columns

    if as_json:
        for one in found:
            print(json.dumps(one))
        return
    if not sys.stdout.isatty():
        lines = columns(rows, None)
    else:
        # The end of an id is enough, and the beginning of one that was made tells nothing.
        short = [[row[0][-_SHORT:] if row[0].startswith("ses_") else row[0], *row[1:]] for row in rows]
        lines = columns(short, shutil.get_terminal_size().columns, needed=2)
    for line in lines:
        print(line)


def _day(moment: str) -> str:
    from datetime import datetime

    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
