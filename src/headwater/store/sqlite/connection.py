"""A connection to the file, set up and checked; what SQLite raises, in our words."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import apsw

from headwater.errors import StoreError
from headwater.store.troubles import Kinds, told

Durability = Literal["process", "power"]

SYNCHRONOUS: Final[dict[Durability, int]] = {"process": 0, "power": 2}
"""Off: the WAL is in the page cache, which a killed process leaves behind. Full: every commit waits for the disk."""
BUSY_MS: Final = 1000
"""How long a command that writes beside the server (`headwater keys`) may hold it up."""

_TROUBLES: Final[Kinds] = (
    (apsw.FullError, "full", "there is no room left for {at}; make some, and what could not be kept can be again"),
    (apsw.ReadOnlyError, "read_only", "{at} can't be written to; look at its permissions and its file system"),
    (apsw.BusyError, "locked", "{at} is held by another program; end that one"),
    (apsw.LockedError, "locked", "{at} is held by another program; end that one"),
    (apsw.CorruptError, "corrupt", "{at} is damaged; restore a backup, or move it away to begin anew"),
    (apsw.NotADBError, "corrupt", "{at} is no database, or is damaged; restore a backup, or move it away"),
    (apsw.CantOpenError, "unreachable", "{at} can't be opened; look at its folder and its permissions"),
    (apsw.Error, "unreachable", "{at} can't be used: {error}"),
)


@contextmanager
def translated(path: str) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise translation(error, path) from error


def translation(error: apsw.Error, path: str) -> StoreError:
    return told(_TROUBLES, error, path)


def prepare(path: Path) -> None:
    """The file is there, and nobody else's to read; SQLite gives what it puts beside it the same rights."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unopened(path, error) from error
    os.close(open_private(path))
    path.chmod(0o600)


def open_private(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unopened(path, error) from error


def unopened(path: Path, error: OSError) -> StoreError:
    refused = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    return StoreError(
        f"{path} can't be opened for writing: {error.strerror}", trouble="read_only" if refused else "unreachable"
    )


def connect(path: Path, durability: Durability) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_MS)
    # One by one: `execute` of several stops at the first that returns a row, and the rest is silently not set.
    wanted: dict[str, str | int] = {
        "journal_mode": "wal",
        "synchronous": SYNCHRONOUS[durability],
        "temp_store": 2,
        # What was deleted is overwritten.
        "secure_delete": 1,
    }
    for name, value in wanted.items():
        connection.pragma(name, value)
        if (found := connection.pragma(name)) != value:
            raise StoreError(f"{path}: {name} is {found!r} in SQLite, and must be {value!r}", trouble="unreachable")
    return connection
