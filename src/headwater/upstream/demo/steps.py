"""What a demo model does, step by step. Whoever plays the steps brings the clock."""

from msgspec import Struct


class Pause(Struct, frozen=True):
    seconds: float


class Send(Struct, frozen=True):
    data: bytes
    """A piece of an event stream, whole frames."""


class End(Struct, frozen=True):
    """The body ends as HTTP says that it should."""


class Cut(Struct, frozen=True):
    """The connection breaks."""


class Hang(Struct, frozen=True):
    """Nothing comes any more, and the connection stays open."""


Step = Pause | Send | End | Cut | Hang
"""The last one of an answer is `End`, `Cut` or `Hang`."""
