"""Images that are kept as blobs: how a message points at one, and what a model is shown for it.

In a stored message such an image is `Image("blob:" + hash)`. No provider knows what that is: it becomes a `data:` URL
on the way out.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from headwater.conversation import Image, Message, Opaque, Text, ToolOutput, User
from headwater.records import Blob
from headwater.store.base import Store

BLOB: Final = "blob:"
GONE: Final = "(An image was here that is no longer kept.)"


def hash_of(image: Image) -> str | None:
    return image.url.removeprefix(BLOB) if image.url.startswith(BLOB) else None


def blobs_in(messages: Iterable[Message]) -> tuple[str, ...]:
    """Hashes, each once."""
    return tuple(dict.fromkeys(_hashes(messages)))


def _hashes(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, Image) and (hash := hash_of(part)) is not None:
                yield hash


async def all_shown(store: Store, owner: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    found = [await store.blob(owner, hash) for hash in blobs_in(messages)]
    blobs = {blob.hash: blob for blob in found if blob is not None}
    return tuple(shown(message, blobs) for message in messages)


def shown(message: Message, blobs: Mapping[str, Blob]) -> Message:
    """With the images themselves where it points at them."""
    if isinstance(message, User | ToolOutput):
        return replace(message, parts=tuple(_shown(part, blobs) for part in message.parts))
    return message


def _shown(part: Text | Image | Opaque, blobs: Mapping[str, Blob]) -> Text | Image | Opaque:
    if not isinstance(part, Image) or (hash := hash_of(part)) is None:
        return part
    blob = blobs.get(hash)
    if blob is None:
        return Text(GONE)
    return replace(part, url=f"data:{blob.media_type};base64,{base64.b64encode(blob.data).decode()}")
