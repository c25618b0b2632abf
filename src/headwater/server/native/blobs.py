"""Images, kept by the hash of their bytes; each owner has only what they put there themselves."""

import hashlib
from typing import Final

from headwater.records import Blob
from headwater.server.native.endpoint import Call, Endpoint, Nothing, Reply, endpoint
from headwater.server.native.shapes import BlobShape
from headwater.server.refusals import Refusal, not_found

# How they begin: what a file is goes by itself, not by what somebody says that it is.
_KINDS: Final = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
_HEADERS: Final = {
    # The same address is the same bytes for ever.
    "cache-control": "private, max-age=31536000, immutable",
    "content-security-policy": "default-src 'none'; sandbox",
}


async def put(call: Call, body: Nothing) -> Reply:
    media_type = _kind(call.body)
    if media_type is None:
        message = f"This is no image of a kind that models take: {', '.join(_KINDS)}."
        raise Refusal(message, status=415, code="unsupported_media_type")
    blob = Blob(hashlib.sha256(call.body).hexdigest(), media_type, call.body)
    await call.services.store.put_blob(call.owner, blob)
    location = f"{call.services.settings.server.base_path}/api/blobs/{blob.hash}"
    shape = BlobShape(hash=blob.hash, media_type=media_type, size_bytes=len(call.body))
    return Reply(shape, 201, {"location": location})


async def get(call: Call, query: Nothing) -> Reply:
    blob = await call.services.store.blob(call.owner, call.part("hash"))
    if blob is None:
        raise not_found("blob")
    return Reply(blob.data, headers=_HEADERS, media_type=blob.media_type)


def _kind(data: bytes) -> str | None:
    found = next((kind for kind, starts in _KINDS.items() if data.startswith(starts)), None)
    return None if found == "image/webp" and data[8:12] != b"WEBP" else found


ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    endpoint("POST", "/api/blobs", put, Nothing, BlobShape, "Keep an image", status=201, media_types=tuple(_KINDS)),
    endpoint("GET", "/api/blobs/{hash}", get, Nothing, "image/*", "An image"),
)
