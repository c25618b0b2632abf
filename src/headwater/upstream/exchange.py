"""What an attempt talks to: a request that was sent, and an answer that comes in pieces.

Only the agreement. `http` keeps it over sockets, `demo` without any.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from headwater.judge import Transport

OnBytes = Callable[[bytes], None]
OnEnd = Callable[[Transport], None]


class Exchange(Protocol):
    """An answer whose head has come. It is over when it has ended, or `close` was called."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Looked up in lower case."""

    @property
    def was_reset(self) -> bool:
        """It broke by a reset, not by a close in its midst."""

    def listen(self, on_bytes: OnBytes, on_end: OnEnd) -> None:
        """Hear what has come and what will come: once per read, in the read's own callback. The end comes once."""

    def pause(self) -> None:
        """Hear nothing for now; the peer is held up once the buffers are full."""

    def resume(self) -> None: ...

    def finish(self) -> None:
        """Hear nothing more: all that mattered has come. The connection is kept if the body ends in a moment."""

    def close(self) -> None:
        """Hear nothing more, and let go of the peer at once. Any number of times, also after `finish`."""


class Opener(Protocol):
    async def open(self, body: bytes, key: str | None) -> Exchange:
        """Send a request and wait for the answer's head. Raises `UpstreamError`; a cancel closes the connection."""
