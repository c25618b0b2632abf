"""Who has the file: an OS lock, which goes with its process and outlasts any sleep of the machine.

A lease would not do here: a laptop that was closed for an hour has missed every beat, and has lost nothing.
"""

import fcntl
import os
import time
from pathlib import Path

from headwater.errors import StoreError
from headwater.store.sqlite.connection import open_private


class FileLock:
    def __init__(self, database: Path, address: str) -> None:
        """Raises `StoreError` that names the holder."""
        # The file itself: a link to it is no second one.
        database = database.resolve()
        path = database.with_name(database.name + ".lock")
        self._file = open_private(path)
        try:
            _lock(self._file)
        except BlockingIOError:
            holder = os.pread(self._file, 1000, 0).decode("utf-8", "replace").strip() or "another server"
            os.close(self._file)
            raise StoreError(
                f"{database} is in use by {holder}; stop that one, or give this one another store.url", trouble="locked"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"the server at {address} (process {os.getpid()})\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)


def _lock(file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # A command that looks who has it holds it for a moment.
        time.sleep(0.05)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
