"""The one form of a batch in any engine: a version, then entries, one a line. JSON has no newline of its own."""

from collections.abc import Sequence
from typing import Final

from headwater.errors import StoreError

VERSION: Final = b"\x01"


def pack(entries: Sequence[bytes]) -> bytes:
    return VERSION + b"\n".join(entries)


def unpack(data: bytes) -> list[bytes]:
    if data[:1] != VERSION:
        raise StoreError(
            f"a log is in format {data[:1].hex() or 'none'}, which this version of Headwater can't read",
            trouble="newer",
        )
    return data[1:].split(b"\n")
