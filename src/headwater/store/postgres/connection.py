"""Connections: how one is made, and what Postgres raises, in our words.

A connection commits each statement by itself; who wants a transaction begins one.
"""

import asyncio
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from headwater.errors import StoreError
from headwater.store.postgres.arrays import register
from headwater.store.tables import Undone
from headwater.store.troubles import Kinds, told

Connection = psycopg.AsyncConnection[tuple[Any, ...]]

DEFAULTS: Final[Mapping[str, str | int]] = {
    "application_name": "headwater",
    "connect_timeout": 5,
    # One that is cut off without a word is found out before the lease is over.
    "keepalives_idle": 3,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 9_000,
}
"""Unless the url says otherwise."""

_TROUBLES: Final[Kinds] = (
    (errors.DiskFull, "full", "{at} has no room left; make some, and what could not be kept can be again"),
    (errors.ReadOnlySqlTransaction, "read_only", "{at} can only be read from; is it a standby?"),
    (errors.InsufficientPrivilege, "read_only", "{at}: the role of store.url may not do that: {error}"),
    (errors.DataCorrupted, "corrupt", "{at} is damaged; restore a backup: {error}"),
    (errors.IndexCorrupted, "corrupt", "{at} is damaged; restore a backup: {error}"),
    (errors.DeadlockDetected, "locked", "{at}: others were in the way, again and again: {error}"),
    (errors.SerializationFailure, "locked", "{at}: others were in the way, again and again: {error}"),
    (psycopg.OperationalError, "unreachable", "{at} can't be reached: {error}"),
    (psycopg.Error, "unreachable", "{at} can't be used: {error}"),
)
# Tried again, on another connection: a server that has turned standby may have a successor.
_UNDONE: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
)


class Silent(StoreError):
    """It is there, its connection is open, and it says nothing: whether it has heard is not known."""


class Address:
    """Where the database is: what to connect with, and what to call it without its password."""

    def __init__(self, url: str) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise StoreError(f"store.url can't be read: {str(error).strip()}", trouble="unreachable") from None
        self.parameters: dict[str, Any] = {**DEFAULTS, **given}
        host, port = given.get("host") or "localhost", given.get("port") or 5432
        self.name = f"the Postgres at {host}:{port}/{given.get('dbname') or ''}".rstrip("/")

    async def connect(self) -> Connection:
        with self.translated():
            connection = await psycopg.AsyncConnection.connect(**self.parameters, autocommit=True)
        register(connection)
        return connection

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self.trouble(error) from error

    @contextmanager
    def answering(self, connection: Connection, within_s: float) -> Iterator[None]:
        """Translated. If what is asked in here takes longer, the connection is hung up on, and `Silent` raised.

        A cancel would not do: psycopg then has the server give up, and waits for its answer to that.
        """
        hung_up = False

        def hang_up() -> None:
            nonlocal hung_up
            hung_up = True
            _hang_up(connection)

        timer = asyncio.get_running_loop().call_later(within_s, hang_up)
        try:
            with self.translated():
                yield
        except StoreError as error:
            if not hung_up or not isinstance(error.__cause__, psycopg.Error):
                raise
            raise Silent(f"{self.name} did not answer for {within_s:.3g} s", trouble="unreachable") from error
        finally:
            timer.cancel()

    def trouble(self, error: psycopg.Error) -> StoreError:
        """A connection that breaks before it is told to commit takes everything with it."""
        found = told(_TROUBLES, error, self.name)
        undone = isinstance(error, _UNDONE) and found.trouble != "full"
        return Undone(found.message, trouble=found.trouble) if undone else found


def _hang_up(connection: Connection) -> None:
    """As if the server had: whoever waits for it finds that out. The descriptor stays psycopg's to close."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def usable(connection: Connection) -> bool:
    """It is open, and in no transaction."""
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
