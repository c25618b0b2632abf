"""What models an upstream says that it has: its answers read, and kept for a while.

That it can't say is no failure to serve: the list before stays, with the reason beside it. Time comes in as an
argument, the asking as a function.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from headwater.config.settings import UpstreamSettings
from headwater.errors import FrameUnreadable, HeadwaterError
from headwater.upstream.providers import MODELS_PATH

Fetch = Callable[[str, str], Awaitable[bytes]]
"""Asks an upstream, by its name, for a path below its address; gives the body of a 200. Raises `HeadwaterError`."""

_RETRY_S: Final = 30.0
"""An upstream that could not be asked is asked again after so long, if not sooner by its own setting."""
_FRESH_S: Final = 10.0
"""A list that is no older than this is not fetched again, not even for a name that is not on it."""
_MOST_PAGES: Final = 20
_PAGE_QUERY: Final = "?limit=1000"


class Listed(Struct, frozen=True):
    id: str
    """As the upstream wants to be asked for it."""
    title: str | None = None
    owned_by: str | None = None
    created: int | None = None
    """Unix seconds."""


class Page(Struct, frozen=True):
    models: tuple[Listed, ...]
    after: str | None = None
    """Where the next page begins; None if there is none."""


def read_page(body: bytes) -> Page:
    """OpenAI's form, Anthropic's, Ollama's own, or a bare list. Raises `FrameUnreadable`."""
    try:
        answer = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        raise FrameUnreadable("A list of models that is no JSON", body) from None
    fields = answer if isinstance(answer, dict) else {"data": answer}
    items = next((fields[name] for name in ("data", "models") if isinstance(fields.get(name), list)), None)
    if items is None:
        raise FrameUnreadable("JSON that is no list of models", body)
    models = [model for model in map(_listed, items) if model is not None]
    last = fields.get("last_id")
    return Page(tuple(models), last if fields.get("has_more") is True and isinstance(last, str) else None)


def _listed(item: Any) -> Listed | None:
    if isinstance(item, str):
        item = {"id": item}
    # Anthropic goes on listing the ones that it no longer serves.
    if not isinstance(item, dict) or item.get("lifecycle") == "retired":
        return None
    id = next((item[name] for name in ("id", "name", "model") if isinstance(item.get(name), str)), "")
    # Gemini's names: it takes them without this, too.
    id = id.removeprefix("models/")
    title = next((item[name] for name in ("display_name", "displayName") if isinstance(item.get(name), str)), None)
    owner = item.get("owned_by")
    return Listed(id, title, owner if isinstance(owner, str) else None, _created(item)) if id else None


def _created(item: dict[str, Any]) -> int | None:
    match item:
        case {"created": int(seconds)} | {"created": float(seconds)} if 0 < seconds < 1e11:
            return int(seconds)
        case {"created_at": str(moment)}:
            try:
                return int(datetime.fromisoformat(moment).timestamp())
            except ValueError:
                return None
        case _:
            return None


# ------------------------------------------------------------------------- kept


class Listing(Struct, frozen=True):
    models: dict[str, Listed] = field(default_factory=dict)
    """By their ids."""
    known: bool = False
    """It was read at least once: a model that is not on it is not there."""
    asked_at_s: float | None = None
    failure: str | None = None
    """Why the last try to read it came to nothing."""

    def get(self, model: str) -> Listed | None:
        """Also by Ollama's name without its tag, and by OpenRouter's with a variant, which it does not list."""
        wanted = (model, f"{model}:latest", model.rpartition(":")[0])
        return next((self.models[name] for name in wanted if name in self.models), None)


class Listings:
    """The lists of all upstreams that have one."""

    def __init__(
        self, upstreams: Mapping[str, UpstreamSettings], fetch: Fetch, changed: Callable[[], None] = lambda: None
    ) -> None:
        """`changed` is told of each list that was read, or could not be: until then all here stays as it is."""
        self._upstreams = {name: settings for name, settings in upstreams.items() if settings.list_models}
        self._fetch = fetch
        self._changed = changed
        self._kept: dict[str, Listing] = {}
        self._turns = {name: asyncio.Lock() for name in self._upstreams}

    def __getitem__(self, upstream: str) -> Listing:
        return self._kept.get(upstream, Listing())

    @property
    def heard(self) -> bool:
        """All have been asked by now."""
        return len(self._kept) == len(self._upstreams)

    def untold(self, upstream: str) -> bool:
        """It is not to be asked what it has, or was asked and has never told."""
        return upstream not in self._upstreams or (upstream in self._kept and not self._kept[upstream].known)

    async def refresh(self, now_s: float, *, missing: bool = False) -> None:
        """Fetch what is due; with `missing`, all that is not quite fresh: somebody looks for what is not there."""
        await asyncio.gather(*(self._refresh_one(name, now_s, missing) for name in self._upstreams))

    async def _refresh_one(self, name: str, now_s: float, missing: bool) -> None:
        async with self._turns[name]:
            # Within the lock: whoever waited for it finds the list just read.
            if now_s < self._due_s(name, missing):
                return
            before = self[name]
            try:
                models = await self._read_all(name)
            except HeadwaterError as error:
                self._kept[name] = replace(before, asked_at_s=now_s, failure=str(error))
            else:
                self._kept[name] = Listing(models, known=True, asked_at_s=now_s)
            self._changed()

    def _due_s(self, name: str, missing: bool) -> float:
        listing = self[name]
        if listing.asked_at_s is None:
            return float("-inf")
        keep_s = self._upstreams[name].list_models_ttl_s
        if listing.failure is not None:
            keep_s = min(keep_s, _RETRY_S)
        elif missing:
            keep_s = min(keep_s, _FRESH_S)
        return listing.asked_at_s + keep_s

    async def _read_all(self, name: str) -> dict[str, Listed]:
        # Only this dialect's providers have pages; a strict one of another may refuse a query that it doesn't know.
        query = _PAGE_QUERY if self._upstreams[name].dialect == "messages" else ""
        page = read_page(await self._fetch(name, MODELS_PATH + query))
        models = [*page.models]
        for _ in range(_MOST_PAGES - 1):
            if page.after is None:
                break
            page = read_page(
                await self._fetch(name, f"{MODELS_PATH}{_PAGE_QUERY}&after_id={quote(page.after, safe='')}")
            )
            models += page.models
        return {model.id: model for model in models}
