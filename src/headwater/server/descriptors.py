"""File descriptors: each connection takes one, and when there is none left nobody can come.

uvloop then closes whoever comes, and tells nobody: so it is looked for.
"""

import errno
import logging
import math
import os
import resource
from typing import Final

_log = logging.getLogger("headwater.server")

_MOST: Final = 1 << 20
"""More than a process can serve. Some systems allow a thousand times as many, and programs that tools start may close
each of them by itself."""
_TOLD_S: Final = 60.0


def allow_many() -> None:
    """As many as this process may have: what it begins with is often 1024, for the sake of programs of old."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        _log.warning("%d files may be open at a time, and no more: %s", soft, error)
    else:
        _log.debug("%d files may be open at a time, instead of %d", wanted, soft)


class Shortage:
    """Looked for now and then, and told of once a minute."""

    def __init__(self) -> None:
        self._told_s = -math.inf

    def look(self, now_s: float) -> None:
        if now_s < self._told_s + _TOLD_S or not _is_none_left():
            return
        self._told_s = now_s
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        _log.error(
            "all %d file descriptors are in use: whoever comes is turned away. If so many connections are wanted, "
            "raise the limit (ulimit -n, LimitNOFILE= in systemd, --ulimit nofile= in Docker)",
            limit,
        )


def _is_none_left() -> bool:
    """1 µs."""
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno == errno.EMFILE
    return False
