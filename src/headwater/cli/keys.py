"""`headwater keys`: who may ask, besides those in the configuration. Works beside a running server."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

from headwater.cli.config import ConfigOption, load_or_exit

if TYPE_CHECKING:
    from headwater.store.base import Store

T = TypeVar("T")

keys = typer.Typer(no_args_is_help=True, help="Keys that clients come with: made, listed, revoked.")


@keys.command()
def create(
    owner: Annotated[str, typer.Argument(help="Whose it is: all that is made with it belongs to them.")],
    name: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="chat, approve or admin; may be given several times.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="A pattern of models; may be given several times.")] = None,
    requests_per_minute: Annotated[int, typer.Option(min=1)] = 600,
    concurrent_runs: Annotated[int, typer.Option(min=1, help="On one worker.")] = 50,
    file: ConfigOption = None,
) -> None:
    """Make a key, and print it: it is kept as its hash only, and never shown again."""
    import os
    import secrets
    import time

    import msgspec

    from headwater.events import make_id
    from headwater.records import Key
    from headwater.server.callers import hash_of

    text = f"hw_{secrets.token_urlsafe(32)}"
    now = time.time()
    given = {
        "id": make_id("key", int(now * 1000), os.urandom(16)),
        "owner": owner,
        "hash": hash_of(text),
        "created_at": now,
        "hint": text[:8],
        "name": name,
        "scopes": scope or ["chat"],
        "models": model or ["*"],
        "requests_per_minute": requests_per_minute,
        "concurrent_runs": concurrent_runs,
    }
    if not owner.strip():
        _exit("an owner has a name.")
    try:
        key = msgspec.convert(given, Key)
    except msgspec.ValidationError:
        _exit("a scope is chat, approve or admin.")
    _with_store(file, lambda store: store.put_key(key))
    typer.echo(f"{key.id} of {owner}. Keep it: it is not shown again.", err=True)
    typer.echo(text)


@keys.command("list")
def list_keys(file: ConfigOption = None) -> None:
    """Print all keys of the store. Those in the configuration are not among them: see `headwater config show`."""
    from datetime import UTC, datetime

    found = _with_store(file, lambda store: store.keys())
    if not found:
        typer.echo("There are no keys in the store. Make one: headwater keys create NAME", err=True)
    for key in found:
        made = datetime.fromtimestamp(key.created_at, UTC).strftime("%Y-%m-%d")
        state = "revoked" if key.revoked_at is not None else ",".join(key.scopes)
        typer.echo("  ".join((key.id, made, f"{key.hint}…", state, key.owner, key.name or "")).rstrip())


@keys.command()
def revoke(
    id: Annotated[str, typer.Argument(help="As `headwater keys list` prints it.")], file: ConfigOption = None
) -> None:
    """Let a key in no more. A running server knows within seconds."""
    import time

    from msgspec.structs import replace

    async def work(store: "Store") -> bool:
        key = next((key for key in await store.keys() if key.id == id), None)
        if key is not None and key.revoked_at is None:
            await store.put_key(replace(key, revoked_at=time.time()))
        return key is not None

    if not _with_store(file, work):
        _exit(f"there is no key {id}. See: headwater keys list")


@keys.command()
def adopt(
    owner: Annotated[str, typer.Argument(help="Whose it is to be from now on.")],
    of: Annotated[str, typer.Option("--of", help="Whose it was; `local` is whoever came before there were keys.")] = (
        "local"
    ),
    file: ConfigOption = None,
) -> None:
    """Give an owner what was another's: conversations, runs, images."""
    adopted = _with_store(file, lambda store: store.adopt(owner, of))
    count, left = adopted.sessions, adopted.left
    of_sessions = f"{count} {'conversation' if count == 1 else 'conversations'}"
    typer.echo(f"{of_sessions}, and all runs outside of conversations, are {owner}'s now.")
    if left:
        stay = "stays" if len(left) == 1 else "stay"
        typer.echo(f"{len(left)} {stay} {of}'s, as {owner} has one of the same id: {', '.join(left)}", err=True)


def _with_store(file: Path | None, work: "Callable[[Store], Awaitable[T]]") -> T:
    """`work`'s result, on the configured store; or what is wrong with that on stderr, and exit code 1."""
    import asyncio

    from headwater.errors import StoreError

    url = load_or_exit(file).settings.store.url.reveal()

    path = Path(url.partition(":")[2]).expanduser()

    async def main() -> T:
        store = await _visit(url, path)
        try:
            return await work(store)
        finally:
            await store.close()

    try:
        return asyncio.run(main())
    except StoreError as error:
        _exit(error.message, 1)


async def _visit(url: str, path: Path) -> "Store":
    import os

    from headwater.clock import SystemClock
    from headwater.errors import StoreError
    from headwater.store.opening import open_store
    from headwater.store.sqlite import open_sqlite

    scheme = url.partition(":")[0]
    address, clock = "headwater keys", SystemClock()
    if scheme == "memory":
        raise StoreError("store.url is memory: a key in it would be gone at once", trouble="unreachable")
    if scheme == "sqlite":
        return await open_sqlite(path, address=address, clock=clock, entropy=os.urandom, beside=True)
    return await open_store(url, address=address, clock=clock, entropy=os.urandom)


def _exit(message: str, code: int = 2) -> NoReturn:
    typer.echo(f"headwater: {message}", err=True)
    raise typer.Exit(code)
