"""Which server a command talks to.

One that was named; else the one that holds the configured database, which says so in the lock beside it; else, where
the database is no file, one that answers at the configured address; else one of its own, in this process, for as long
as the command lasts. A database that a server holds is never opened here.
"""

import fcntl
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import typer

from headwater.cli import exits
from headwater.cli.config import load_or_exit

if TYPE_CHECKING:
    from headwater.client import Client
    from headwater.config.settings import Settings
    from headwater.upstream.catalog import Catalog

T = TypeVar("T")

ServerOption = Annotated[
    str | None,
    typer.Option("--server", envvar="HEADWATER_ADDRESS", help="Its address. Else the one that holds the database."),
]
KeyOption = Annotated[str | None, typer.Option(envvar="HEADWATER_KEY", help="Where the server wants one.")]

_HOLDER: Final = re.compile(r"server at (\S+)")
_ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
_LOOK_S: Final = 5.0


class Where(NamedTuple):
    """What the options of a command say about its server."""

    server: str | None = None
    key: str | None = None
    file: Path | None = None


class NoServer(Exception):
    """And none can be started, for the reason given."""


class Reached:
    """A server, and a client of it."""

    def __init__(
        self,
        client: "Client",
        settings: "Settings | None",
        catalog: "Catalog | None" = None,
        database: Path | None = None,
    ) -> None:
        self.client = client
        self.settings = settings
        """By which it was found; its own may be others. None: it was named."""
        self.catalog = catalog
        """Of one that is in this process."""
        self._database = database
        """By which it was found."""

    @property
    def embedded(self) -> bool:
        """It is in this process, and goes with it."""
        return self.catalog is not None

    def move(self) -> bool:
        """Whether another server has the database by now; if so, it is the one that is asked from now on."""
        url = None if self._database is None else holder_of(self._database)
        if url is None or "://" not in url or _nearby(url).rstrip("/") == self.client.url:
            return False
        self.client.close()
        self.client = _client(_nearby(url), self.client.key)
        return True


def holder_of(database: Path) -> str | None:
    """The address of the server that has this file, or something else that is said of the holder. None: nobody has."""
    database = database.expanduser().resolve()
    try:
        file = os.open(database.with_name(database.name + ".lock"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Shared, and for a moment only: a server that starts just now tries again.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        said = os.pread(file, 1000, 0).decode("utf-8", "replace").strip()
        found = _HOLDER.search(said)
        return found[1] if found else said or "another process"
    finally:
        os.close(file)
    return None


@asynccontextmanager
async def reached(where: Where) -> AsyncIterator[Reached]:
    """Raises `NoServer`, and `StoreError` where a server of our own can't have its database."""
    async with reached_if_running(where) as running:
        if running is not None:
            yield running
            return
    from headwater.cli.embedded import embedded

    settings = load_or_exit(where.file).settings
    async with embedded(settings) as own:
        client = _client(own.url, where.key)
        try:
            yield Reached(client, settings, own.catalog)
        finally:
            client.close()


@asynccontextmanager
async def reached_if_running(where: Where) -> AsyncIterator[Reached | None]:
    """None: there is none, and the database is free. Raises `NoServer`."""
    settings: Settings | None = None
    database: Path | None = None
    if where.server is not None:
        url: str | None = where.server if "://" in where.server else f"http://{where.server}"
    else:
        settings = load_or_exit(where.file).settings
        scheme, _, path = settings.store.url.reveal().partition(":")
        database = Path(path) if scheme == "sqlite" else None
        url = await _answering(settings) if database is None else holder_of(database)
        if url is not None and "://" not in url:
            raise NoServer(f"{path} is in use by {url}.")
    if url is None:
        yield None
        return
    server = Reached(await _remote(_nearby(url), where.key), settings, database=database)
    try:
        yield server
    finally:
        server.client.close()


def with_server(where: Where, work: Callable[[Reached], Awaitable[T]]) -> T:
    """`work`'s result; what is wrong is said on stderr, and is an exit code."""
    import asyncio

    from headwater.cli import leaving
    from headwater.client import ApiError, FollowError
    from headwater.errors import StoreError

    async def main() -> T:
        with leaving.by_signal():
            async with reached(where) as server:
                return await work(server)

    try:
        return asyncio.run(main())
    except leaving.Ended as ended:
        exits.leave(f"ended by {ended.signal.name}.", exits.BY_SIGNAL[ended.signal.name])
    except (NoServer, StoreError) as error:
        exits.leave(str(error), exits.NO_SERVER)
    except (ApiError, FollowError) as error:
        exits.leave(f"{error}{_hint(error.status)}", _code(error.status))
    except KeyboardInterrupt:
        raise typer.Exit(exits.CTRL_C) from None
    except BrokenPipeError:
        # Nothing more can be said there, also not by Python as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(exits.PIPE_CLOSED) from None


def _code(status: int | None) -> int:
    if status is None:
        return exits.NO_SERVER
    return exits.USAGE if status < 500 else exits.FAILED


def _hint(status: int | None) -> str:
    return " Give one with --key, or in HEADWATER_KEY." if status == 401 else ""


def _client(url: str, key: str | None) -> "Client":
    from headwater.client import Client

    try:
        return Client(url, key)
    except ValueError as error:
        exits.leave(f"--server {url}: {error}.")


async def _remote(url: str, key: str | None) -> "Client":
    from headwater.client import ApiError

    client = _client(url, key)
    try:
        await client.ask("GET", "/healthz", timeout_s=_LOOK_S, attempts=1)
    except ApiError as error:
        client.close()
        if error.status is not None:
            raise NoServer(f"What answers at {url} is not Headwater, or is not well: {error.message}") from None
        raise NoServer(error.message) from None
    return client


async def _answering(settings: "Settings") -> str | None:
    """Of a store that is no file: whoever answers where the configuration says."""
    from headwater.client import ApiError, Client

    server = settings.server
    url = _nearby(f"http://{server.host}:{server.port}")
    client = Client(url)
    try:
        await client.ask("GET", "/healthz", timeout_s=_LOOK_S, attempts=1)
    except ApiError:
        return None
    finally:
        client.close()
    return url


def _nearby(url: str) -> str:
    """A server that listens everywhere is asked on this machine."""
    host = urlsplit(url).netloc.rpartition(":")[0]
    return url.replace(host, _ANY_ADDRESS[host], 1) if host in _ANY_ADDRESS else url


def session_path(session_id: str, rest: str = "") -> str:
    """Whatever somebody has called it."""
    return f"/api/sessions/{quote(session_id, safe='')}{rest}"
