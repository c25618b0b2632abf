"""`headwater compare`: several models asked the same, side by side."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli import exits
from headwater.cli.complete import complete_model
from headwater.cli.config import ConfigOption
from headwater.cli.reach import KeyOption, ServerOption, Where, with_server

if TYPE_CHECKING:
    from headwater.cli.reach import Reached


def compare(
    prompt: Annotated[list[str], typer.Argument(metavar="PROMPT")],
    model: Annotated[
        list[str],
        typer.Option("--model", "-m", help="Two or more; repeat it for each.", autocompletion=complete_model),
    ],
    system: Annotated[str | None, typer.Option("--system", "-s", help="Instructions for all of them.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One event a line, with its `run_id` and whom it was `asked`.")
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="One after the other, also on a terminal.")] = False,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """Ask several models the same, and see their answers side by side.

    Ctrl-C stops all that go on, a number the one of that column. The exit code is that of the worst ending.
    """
    if len(model) < 2:
        exits.leave("give two models or more: -m ONE -m OTHER.")
    piped = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
    asked = "\n\n".join(part for part in (" ".join(prompt), piped) if part)

    async def work(reached: "Reached") -> int:
        from headwater.cli.panes import Comparison

        body = {"models": model, "content": asked, "parameters": {"system": system}}
        group = await reached.client.ask("POST", "/api/groups", body)
        comparison = Comparison(reached, group)
        if as_json:
            return await comparison.as_json()
        if plain or not sys.stdout.isatty():
            return await comparison.one_after_the_other()
        return await comparison.side_by_side()

    raise typer.Exit(with_server(Where(server, key, file), work))
