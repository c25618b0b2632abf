"""The `headwater` command, a module for each subcommand. What one needs is imported when it runs."""

import os
from typing import Annotated

import typer

import headwater
from headwater.cli.backup import backup
from headwater.cli.chat import attach, chat, stop
from headwater.cli.compare import compare
from headwater.cli.complete import COMPLETE_VARIABLE, completion
from headwater.cli.config import config
from headwater.cli.doctor import doctor
from headwater.cli.keys import keys
from headwater.cli.runs import events, models, runs
from headwater.cli.serve import serve
from headwater.cli.sessions import sessions
from headwater.cli.simulate import simulate

# Plain help: with rich's boxes it takes three times as long, and forty columns are not enough for it.
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="A streaming server for LLM chat and agents.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(headwater.__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app.command()(serve)
app.command()(chat)
app.command()(attach)
app.command()(stop)
app.command()(runs)
app.command()(events)
app.add_typer(sessions, name="sessions")
app.command()(compare)
app.command()(models)
app.command()(doctor)
app.command()(simulate)
app.command()(backup)
app.add_typer(config, name="config")
app.add_typer(keys, name="keys")
app.command()(completion)


def main() -> None:
    if COMPLETE_VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    # Also where it is started as a module, or by a test.
    app(prog_name="headwater")
