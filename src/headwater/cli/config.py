"""`headwater config`, and how every command comes to its settings."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headwater.config.load import Flag, Loaded

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="The file. Else ./headwater.toml, else the one in your configuration folder."),
]

config = typer.Typer(no_args_is_help=True, help="What is set, where it comes from, and what is wrong with it.")


def load_or_exit(named: Path | None, flags: Sequence["Flag"] = ()) -> "Loaded":
    """The settings; or what is wrong with them on stderr, and exit code 2."""
    from headwater.errors import ConfigError

    try:
        return load_settings(named, flags)
    except ConfigError as error:
        for problem in error.problems:
            typer.echo(f"headwater: {problem}", err=True)
        raise typer.Exit(2) from None


def load_settings(named: Path | None, flags: Sequence["Flag"] = ()) -> "Loaded":
    """Raises `ConfigError`."""
    from headwater.config.load import find_file, load

    file = find_file(named, folder=Path(), environ=os.environ, platform=sys.platform)
    return load(file, environ=os.environ, flags=flags)


@config.command()
def show(
    file: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs rather than people.")] = False,
) -> None:
    """Print every value with its source, secrets masked."""
    from headwater.config import show as printed

    loaded = load_or_exit(file)
    text = printed.as_json(loaded) if as_json else printed.as_toml(loaded)
    # Both are UTF-8 by definition, whatever the terminal's encoding.
    typer.echo(text.encode(), nl=False)


@config.command()
def check(file: ConfigOption = None) -> None:
    """Say all that is wrong, on stderr. The exit code is 0 if nothing is, else 2."""
    loaded = load_or_exit(file)
    for remark in (*loaded.warnings, *loaded.hints):
        typer.echo(f"headwater: {remark}", err=True)
    typer.echo(f"{loaded.file or 'No file'}: fine.")
