"""The `headwater` command, a module for each subcommand. What one needs is imported when it runs."""

from typing import Annotated

import typer

import headwater
from headwater.cli.backup import backup
from headwater.cli.config import config
from headwater.cli.keys import keys
from headwater.cli.serve import serve
from headwater.cli.simulate import simulate

app = typer.Typer(no_args_is_help=True, add_completion=False, help="A streaming server for LLM chat and agents.")


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
app.command()(simulate)
app.command()(backup)
app.add_typer(config, name="config")
app.add_typer(keys, name="keys")


def main() -> None:
    app()
