"""A copy of the file as of one moment, while a server writes to it: SQLite's own way of copying.

All is read in one go. In WAL mode a reader holds up no writer, and sees nothing that is committed later; what is
committed meanwhile only makes the WAL longer.
"""

import os
from pathlib import Path
from typing import Final

import apsw

from headwater.errors import StoreError
from headwater.store.sqlite.connection import BUSY_MS, open_private, translated, unopened

BESIDE: Final = ("", "-wal", "-shm", "-journal", ".lock")
"""What a database is made of, by the ends of the names."""


def is_part_of(path: Path, to: Path) -> bool:
    """`to` is the database itself or what lies beside it, by whichever name: a link is no other file."""
    whole, meant = path.resolve(), to.resolve()
    parts = [whole.with_name(whole.name + end) for end in BESIDE]
    return meant in parts or any(_same(part, meant) for part in parts)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def back_up(path: Path, to: Path) -> int:
    """How many bytes it has. It replaces what was at `to` once it is whole and was checked. Raises `StoreError`."""
    if not path.exists():
        raise StoreError(f"there is no {path} yet: a server makes it", trouble="unreachable")
    partial = to.with_name(f"{to.name}.partial")
    if is_part_of(path, to) or is_part_of(path, partial):
        # A server that has it open would go on writing to a file that has no name any more.
        raise StoreError(f"{to} is the store itself, of which it was to be a copy", trouble="locked")
    partial.unlink(missing_ok=True)
    os.close(open_private(partial))
    try:
        with translated(str(path)):
            _copy(path, partial)
        size_bytes = partial.stat().st_size
        os.replace(partial, to)
    except OSError as error:
        raise unopened(to, error) from error
    finally:
        partial.unlink(missing_ok=True)
    return size_bytes


def _copy(path: Path, to: Path) -> None:
    source = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    copy = apsw.Connection(str(to))
    try:
        source.set_busy_timeout(BUSY_MS)
        with copy.backup("main", source, "main") as copying:
            copying.step()
        # One file, which can be moved about: it is opened in WAL mode again when a server takes it.
        copy.pragma("journal_mode", "delete")
        if (found := copy.pragma("quick_check")) != "ok":
            raise StoreError(f"{path} is damaged, and so is its copy: {found}", trouble="corrupt")
    finally:
        copy.close()
        source.close()
