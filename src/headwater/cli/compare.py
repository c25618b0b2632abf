"""`headwater compare`: several models asked the same, side by side."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli import exits
from headwater.cli.complete import complete_model
from headwater.cli.config import ConfigOption
from headwater.cli.reach import KeyOption, ServerOption, Where, with_server

if TYPE_CHECKING:
    from headwater.cli.panes import Comparison
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
    pick: Annotated[
        int | None,
        typer.Option(min=1, help="Go on with this one: 1 is the first. On a terminal you are asked at the end."),
    ] = None,
    server: ServerOption = None,
    key: KeyOption = None,
    file: ConfigOption = None,
) -> None:
    """Ask several models the same, and see their answers side by side.

    Ctrl-C stops all that go on, a number the one of that column. The exit code is that of the worst ending. Of the one
    that is picked it is said how to go on with it; the others are hidden.
    """
    if len(model) < 2:
        exits.leave("give two models or more: -m ONE -m OTHER.")
    if pick is not None and pick > len(model):
        exits.leave(f"--pick {pick}: there are {len(model)}.")
    piped = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
    asked = "\n\n".join(part for part in (" ".join(prompt), piped) if part)

    async def work(reached: "Reached") -> int:
        from headwater.cli.panes import Comparison

        body = {"models": model, "content": asked, "parameters": {"system": system}}
        group = await reached.client.ask("POST", "/api/groups", body)
        comparison = Comparison(reached, group)
        if as_json:
            code = await comparison.as_json()
        elif plain or not sys.stdout.isatty():
            code = await comparison.one_after_the_other()
        else:
            code = await comparison.side_by_side()
        if code != exits.CTRL_C:
            await _pick(comparison, pick, ask=not as_json and sys.stdin.isatty() and sys.stdout.isatty())
        return code

    raise typer.Exit(with_server(Where(server, key, file), work))


async def _pick(comparison: "Comparison", given: int | None, *, ask: bool) -> None:
    from headwater.cli.choosing import choose

    if given is None and ask:
        count = len(comparison.panes)
        given = await choose(f"Go on with one of them? 1 to {count}, or Enter for none:", count)
    if given is not None:
        session_id = await comparison.pick(given)
        print(f"To go on:\n  headwater chat --session {session_id}", file=sys.stdout if ask else sys.stderr)
