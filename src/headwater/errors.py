"""What this package raises, by blame, with the facts as fields.

Endings that are to be expected (a cut stream, a stop, a refusal) are not here:
they are values, `events.Outcome`.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from headwater.events import Failed


class HeadwaterError(Exception):
    """Base of every error that is raised on purpose."""


class UpstreamError(HeadwaterError):
    """There is no answer to read: no connection, or one that did not last to the head."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed


class CallerError(HeadwaterError):
    """We were misused: the request can't be served as it is. Becomes a 4xx."""

    def __init__(
        self, message: str, *, status: int = 400, code: str = "invalid_value", param: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param


class Problem(Struct, frozen=True):
    """One thing that is wrong with the configuration, or odd about it."""

    where: str
    """`headwater.toml:12`, `environment HEADWATER_SERVER__PORT`, `flag --port`."""
    key: str
    what: str
    fix: str = ""

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.where, self.key) if part)
        return f"{place}: {self.what} {self.fix}".rstrip()


class ConfigError(HeadwaterError):
    """The configuration can't be used as it is. All that is wrong with it, not the first thing only."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


class FrameTooLarge(HeadwaterError):
    """The peer sent a frame, or an answer, that is larger than we are willing to hold."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"more than {limit_bytes} bytes without an end")
        self.limit_bytes = limit_bytes


class FrameUnreadable(HeadwaterError):
    """The peer sent something that its protocol does not allow."""

    def __init__(self, what: str, data: bytes) -> None:
        # Its start tells the person who reads this the rest.
        super().__init__(f"{what}: {data[:120].decode('utf-8', 'replace')!r}")


StoreTrouble = Literal[
    "full",  # no room is left
    "read_only",
    "locked",  # somebody else has it
    "corrupt",
    "newer",  # written by a later version than this one
    "unreachable",  # it can't be opened, or went away
    "fenced",  # this worker was declared dead: it may write nothing more
    "lost",  # this run is no longer this worker's to write to
]


class StoreError(HeadwaterError):
    """What was to be kept was not: the log can't be trusted. `trouble` says why, the message what to do."""

    def __init__(self, message: str, *, trouble: StoreTrouble) -> None:
        super().__init__(message)
        self.message = message
        self.trouble = trouble
