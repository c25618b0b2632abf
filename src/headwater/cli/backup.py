"""`headwater backup`. Works beside a running server, and after it has gone."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from headwater.cli.config import ConfigOption, load_or_exit


def backup(
    to: Annotated[Path, typer.Argument(help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    file: ConfigOption = None,
) -> None:
    """Copy the database to a file, as of one moment, also while a server uses it."""
    from headwater.errors import StoreError
    from headwater.store.sqlite.backup import back_up, is_part_of

    url = load_or_exit(file).settings.store.url
    scheme, _, path = url.reveal().partition(":")
    if scheme == "memory":
        _exit("store.url is memory: there is nothing to be kept.")
    if scheme != "sqlite":
        how = f"pg_dump --format=custom --file={to} DATABASE"
        _exit(f"{url.shown()} is a Postgres, which brings its own way to copy it while it is in use: {how}")
    database = Path(path).expanduser()
    if is_part_of(database, to):
        # Not by --force, either.
        _exit(f"{to} is the store itself (store.url is {url.shown()}), or a part of it: a copy needs another place.")
    if to.exists() and not force:
        _exit(f"{to} is there already: give another name, or --force.")
    try:
        size_bytes = back_up(database, to)
    except StoreError as error:
        _exit(f"no backup was made: {error.message}", 1)
    typer.echo(f"{to}: {size_bytes / 1e6:.1f} MB. To restore it, stop the server and put it in the place of {path}.")


def _exit(message: str, code: int = 2) -> NoReturn:
    typer.echo(f"headwater: {message}", err=True)
    raise typer.Exit(code)
