"""The native API, asked in JSON. What may safely be sent again is, while the server can't be reached.

Knows no route but those that need care: whoever asks names the path, and docs/api.md says what comes back.
"""

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from headwater.client.follow import Persistence, follow
from headwater.errors import HeadwaterError, UpstreamError
from headwater.events import Entry, make_id
from headwater.policy import backoff
from headwater.upstream.connection import Ending
from headwater.upstream.http import HttpExchange, whole_body
from headwater.upstream.pool import Pool, proxy_of_environment, read_address

_LIMIT_BYTES: Final = 256 * 1024 * 1024
_ONCE: Final = frozenset({"POST", "PUT"})
"""They are sent with an `Idempotency-Key`, so that they can be sent again."""


class ApiError(HeadwaterError):
    """The server said no, and why; or nothing, if `status` is None: then it can't be reached."""

    def __init__(self, message: str, *, status: int | None = None, code: str = "", answer: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.answer = answer
        """What it said, if that was JSON."""


class Client:
    """Of one server, with one key. Made inside the event loop that it is used on; `close` it there."""

    def __init__(self, url: str, key: str | None = None, persistence: Persistence = Persistence()) -> None:
        """Raises `ValueError` for what is no address."""
        self.url = url.rstrip("/")
        self.key = key
        self._persistence = persistence
        address = read_address(self.url)
        self._base = urlsplit(self.url).path
        self._pool = Pool(address, proxy=proxy_of_environment(address), connect_timeout_s=persistence.connect_timeout_s)

    def close(self) -> None:
        self._pool.close()

    async def ask(
        self, method: str, path: str, body: Any = None, *, timeout_s: float = 90.0, attempts: int | None = None
    ) -> Any:
        """The answer's JSON; its bytes, if it is something else; None, if it is nothing. Raises `ApiError`."""
        data = b"" if body is None else msgspec.json.encode(body)
        return await self._persistently(method, path, data, "application/json", timeout_s, attempts)

    async def put_blob(self, data: bytes, media_type: str) -> str:
        """The hash by which a message may show it. Raises `ApiError`."""
        answer = await self._persistently("POST", "/api/blobs", data, media_type, 90.0, None)
        return str(answer["hash"])

    def follow(
        self, run_id: str, after: int = -1, on_lost: Callable[[str], None] | None = None
    ) -> AsyncGenerator[Entry, None]:
        """The run's events to its ending. Raises `FollowError`."""
        url = f"{self.url}/api/runs/{run_id}/events"
        return follow(url, after, key=self.key, persistence=self._persistence, on_lost=on_lost)

    # --------------------------------------------------------------------- asking

    async def _persistently(
        self, method: str, path: str, data: bytes, media_type: str, timeout_s: float, attempts: int | None
    ) -> Any:
        headers = self._headers(data, media_type)
        if method in _ONCE:
            headers["idempotency-key"] = make_id("cli", int(time.time() * 1000), os.urandom(16))
        most = self._persistence.attempts if attempts is None else attempts
        for attempt in range(1, most + 1):
            try:
                async with asyncio.timeout(timeout_s):
                    return await self._once(method, path, headers, data)
            except ApiError as error:
                if attempt == most or error.status not in (None, 503):
                    raise
            except TimeoutError:
                raise ApiError(f"{self.url} did not answer within {timeout_s:g} s.") from None
            delays = self._persistence
            await asyncio.sleep(backoff(attempt, delays.backoff_s, delays.backoff_cap_s, random.random()))
        raise AssertionError("the last attempt returns or raises")  # pragma: no cover

    def _headers(self, data: bytes, media_type: str) -> dict[str, str]:
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if self.key is not None:
            headers["authorization"] = f"Bearer {self.key}"
        if data:
            headers["content-type"] = media_type
        return headers

    async def _once(self, method: str, path: str, headers: Mapping[str, str], data: bytes) -> Any:
        exchange = HttpExchange(lambda: None)
        try:
            request = b"%bcontent-length: %d\r\n\r\n%b" % (
                self._pool.head(self._base + path, headers, method),
                len(data),
                data,
            )
            kept = self._pool.take()
            ending: Ending | None = "unanswered" if kept is None else await exchange.ask(kept, request)
            if ending == "unanswered":
                # A connection that was kept may be closed just as it is used again.
                ending = await exchange.ask(await self._pool.connect(), request)
            if ending is not None:
                raise ApiError(f"{self.url} closed the connection before it had answered.")
            body = await whole_body(exchange, _LIMIT_BYTES)
            if len(body) < int(exchange.headers.get("content-length", "0")):
                raise ApiError(f"{self.url} closed the connection in the midst of its answer.")
        except (OSError, UpstreamError) as error:
            raise ApiError(f"{self.url} can't be reached: {str(error) or type(error).__name__}.") from error
        finally:
            exchange.close()
        return _answer(exchange.status, exchange.headers, body)


def _answer(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    is_json = headers.get("content-type", "").partition(";")[0].strip() == "application/json"
    answer: Any = body or None
    if is_json:
        try:
            answer = msgspec.json.decode(body)
        except ValueError:
            raise ApiError(f"The server answered {status}, and JSON that can't be read.", status=status) from None
    if status < 300:
        return answer
    error = answer.get("error") if isinstance(answer, dict) else None
    said = error if isinstance(error, dict) else {}
    message = str(said.get("message") or f"The server answered {status}.")
    raise ApiError(message, status=status, code=str(said.get("code") or ""), answer=answer)
