"""Images that tools have returned: kept as blobs, and shown to the model as such."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from headwater.agent.tools import Picture
from headwater.conversation import Message
from headwater.records import Blob
from headwater.sessions.images import BLOB, all_shown
from headwater.store.base import Store

KINDS: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Of which models see something."""
LIMIT_BYTES: Final = 5 * 1024 * 1024
LIMIT: Final = 10
"""Of one result."""


class Kept(Struct, frozen=True):
    urls: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """What was left out, for the model."""


class Pictures:
    """Of one owner."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner

    async def keep(self, pictures: Sequence[Picture]) -> Kept:
        urls: list[str] = []
        remarks: list[str] = []
        for picture in pictures[:LIMIT]:
            if picture.media_type not in KINDS:
                remarks.append(f"[An image of type {picture.media_type} is left out: models take none of that.]")
            elif len(picture.data) > LIMIT_BYTES:
                remarks.append(f"[An image of {len(picture.data)} bytes is left out: it is too large.]")
            else:
                blob = Blob(hashlib.sha256(picture.data).hexdigest(), picture.media_type, picture.data)
                await self._store.put_blob(self._owner, blob)
                urls.append(f"{BLOB}{blob.hash}")
        if len(pictures) > LIMIT:
            remarks.append(f"[{len(pictures) - LIMIT} more images are left out.]")
        return Kept(tuple(urls), tuple(remarks))

    async def shown(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        return await all_shown(self._store, self._owner, list(messages))
