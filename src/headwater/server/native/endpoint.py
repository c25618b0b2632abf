"""One endpoint of the native API: what it takes, what it gives, who may ask.

A table of these is the API: routes, checks and `/openapi.json` are made from it.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, Protocol, TypeVar

from msgspec import Struct, field
from starlette.datastructures import Headers
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from headwater.records import IdempotencyKey, Scope, can_name
from headwater.server.callers import Caller
from headwater.server.guard import Guard
from headwater.server.native.shapes import Taken
from headwater.server.refusals import Refusal, not_found
from headwater.server.services import Services

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
T = TypeVar("T", bound=Taken)

_KEY_CHARS: Final = 255


class Reply(Struct, frozen=True):
    value: Any = None
    """JSON, or bytes of `media_type`; None for nothing."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


class Stream(Protocol):
    """An answer that goes on."""

    async def send_to(self, receive: Receive, send: Send) -> None: ...


class Call(Struct, frozen=True, kw_only=True):
    """A request that was let in."""

    services: Services
    guard: Guard
    caller: Caller
    scope: AsgiScope
    headers: Headers
    body: bytes = b""

    @property
    def owner(self) -> str:
        return self.caller.owner

    @property
    def any_owner(self) -> str | None:
        """Whose runs may be meant: None is anybody's."""
        return None if self.caller.is_admin else self.caller.owner

    def part(self, name: str) -> str:
        """Of the path. Raises `Refusal` (404) for what nothing can be called."""
        part = str(self.scope["path_params"][name])
        if not can_name(part):
            raise not_found(name.removesuffix("_id"))
        return part

    def idempotency(self, part: str = "") -> IdempotencyKey | None:
        """`part` tells apart what one request starts several of. Raises `Refusal`."""
        key = self.headers.get("idempotency-key")
        if key is None:
            return None
        if not key or len(key) > _KEY_CHARS:
            message = f"Idempotency-Key must have between 1 and {_KEY_CHARS} characters."
            raise Refusal(message, status=400, code="invalid_value", param="Idempotency-Key")
        said = f"{self.scope['method']} {self.scope['path']}\n".encode() + self.body
        return IdempotencyKey(f"{key}{part}", hashlib.sha256(said).hexdigest(), self.services.keep_keys_s)


Handler = Callable[[Call, Any], Awaitable[Reply | Stream]]


class Nothing(Taken, frozen=True, kw_only=True):
    pass


class Endpoint(Struct, frozen=True, kw_only=True):
    method: Method
    path: str
    handler: Handler
    takes: type[Taken]
    """The query of a GET or DELETE, else the body."""
    gives: Any
    """The type of the answer; a text is the media type of one that is no JSON."""
    status: int
    says: str
    needs: tuple[Scope, ...] | None
    """Any of these is enough. None: no key is needed."""
    also: tuple[int, ...]
    """Other answers than errors of the request itself."""
    once: bool
    """An `Idempotency-Key` makes it happen once."""
    media_types: tuple[str, ...]
    """What a body that is no JSON may be."""

    @property
    def from_query(self) -> bool:
        return self.method in ("GET", "DELETE")


def endpoint(
    method: Method,
    path: str,
    handler: Callable[[Call, T], Awaitable[Reply | Stream]],
    takes: type[T],
    gives: Any,
    says: str,
    *,
    status: int = 200,
    needs: tuple[Scope, ...] | None = ("chat",),
    also: tuple[int, ...] = (),
    once: bool = False,
    media_types: tuple[str, ...] = (),
) -> Endpoint:
    """The handler takes what is read: the two types are one."""
    return Endpoint(
        method=method,
        path=path,
        handler=handler,
        takes=takes,
        gives=gives,
        status=status,
        says=says,
        needs=needs,
        also=also,
        once=once,
        media_types=media_types,
    )
