"""Who answers for a model's name, and which names there are.

A name is one of the configured models, else `upstream/model` of what an upstream lists, else a model that just one
upstream lists. Agents have names, too: they are for the caller to look at first, and here only to be suggested.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from headwater.config.settings import ModelSettings, Settings, UpstreamSettings
from headwater.errors import CallerError
from headwater.upstream import demo
from headwater.upstream.listing import Fetch, Listings

May = Callable[[str], bool]
"""Whether whoever asks may ask for a name."""

_CHOICES_SHOWN: Final = 20
# Lists tell of everything that a provider has; a person who picks a model to talk to wants none of these.
_NO_TALKERS: Final = re.compile(
    r"embed|whisper|\btts\b|dall-e|moderation|\bimage|imagen|\bveo\b|\bsora\b|audio|realtime|transcribe|rerank"
    r"|davinci-00|babbage-00",
    re.IGNORECASE,
)


def anything(name: str) -> bool:
    return True


class Resolved(Struct, frozen=True, kw_only=True):
    """What a name stands for: `targets` says how that is asked."""

    name: str
    """What was asked for."""
    upstream: str
    settings: UpstreamSettings
    model: str
    """What the upstream is asked for."""
    model_settings: ModelSettings | None = None
    owned_by: str | None = None
    """What the upstream's list says of it: `targets.provider_of` may go by that."""
    fallbacks: tuple["Resolved", ...] = ()
    """Whom to ask next, in order. They have none themselves."""
    unresolved: tuple[str, ...] = ()
    """Fallbacks that nobody answers for."""


class Entry(Struct, frozen=True):
    """A name that can be asked for."""

    name: str
    owned_by: str
    created: int | None = None
    title: str | None = None


class Catalog:
    def __init__(self, settings: Settings, fetch: Fetch, changed: Callable[[], None] = lambda: None) -> None:
        """`changed` is told whenever a name may stand for something else than before."""
        self._default = settings.server.default_model
        self._models = {model.name: model for model in settings.models}
        self._agents = tuple(settings.agents)
        self._upstreams: Mapping[str, UpstreamSettings] = settings.upstreams | {demo.NAME: demo.SETTINGS}
        self._listings = Listings(settings.upstreams, fetch, changed)

    async def refresh(self, now_s: float) -> None:
        """Fetch the lists that are due. Nothing else depends on it: it may be done in the background."""
        await self._listings.refresh(now_s)

    @property
    def failures(self) -> dict[str, str]:
        """Upstreams whose models could not be listed, and why."""
        found = {name: self._listings[name].failure for name in self._upstreams}
        return {name: failure for name, failure in found.items() if failure is not None}

    def entries(self) -> list[Entry]:
        """All names, as far as they are known by now: the configured ones first."""
        return [
            *(Entry(model.name, model.upstream) for model in self._models.values()),
            *(Entry(name, "agent") for name in self._agents),
            *self._listed_entries(),
            *(Entry(f"{demo.NAME}/{model}", demo.NAME) for model in demo.MODELS),
        ]

    def _listed_entries(self) -> Iterator[Entry]:
        for upstream in self._upstreams:
            for model in self._listings[upstream].models.values():
                if not _NO_TALKERS.search(model.id):
                    yield Entry(f"{upstream}/{model.id}", model.owned_by or upstream, model.created, model.title)

    async def choose(self, name: str | None, now_s: float, may: May = anything) -> str:
        """The name that is meant: the default, or the only one there is, where none was given (C73).

        What they may not ask for is as if it were not there; but a name that was given is for the caller to refuse.
        """
        if name:
            return name
        if self._default and may(self._default):
            return self._default
        await self._listings.refresh(now_s)
        names = [entry.name for entry in self.entries() if may(entry.name)]
        # Demo models don't count: they are always there.
        own = [name for name in names if not name.startswith(f"{demo.NAME}/")]
        if len(own) == 1:
            return own[0]
        message = "Which model? The request names none, and there is no `default_model`."
        raise CallerError(f"{message}{_shown(own or names)}", param="model")

    async def resolve(self, name: str, now_s: float, may: May = anything) -> Resolved:
        """Raises `CallerError`: 404 for a name that nobody answers for, 400 for one that several do.

        It suggests only what they `may` ask for.

        A list that is old, or whose upstream is down, holds up nobody who asks for what is on it.
        """
        at_hand = self.at_hand(name)
        if at_hand is not None:
            return at_hand
        found = self._find(name)
        if not found:
            await self._listings.refresh(now_s, missing=True)
            found = self._find(name)
        match found:
            case [resolved]:
                resolved = self._with_fallbacks(resolved)
                if resolved.unresolved and not self._listings.heard:
                    await self._listings.refresh(now_s)
                    resolved = self._with_fallbacks(resolved)
                return resolved
            case []:
                raise self._not_found(name, may)
            case _:
                choices = " or ".join(f"'{whole}'" for one in found if may(whole := f"{one.upstream}/{name}"))
                which = f"Say which: {choices}." if choices else "This key may ask none of them by its whole name."
                message = f"Several upstreams have a model '{name}'. {which}"
                raise CallerError(message, code="model_ambiguous", param="model")

    def at_hand(self, name: str) -> Resolved | None:
        """What it stands for, by the lists that were read by now; None: that takes another one, or is an error."""
        found = self._find(name)
        if len(found) != 1:
            return None
        resolved = self._with_fallbacks(found[0])
        return None if resolved.unresolved and not self._listings.heard else resolved

    # ------------------------------------------------------------------- finding

    def _find(self, name: str) -> list[Resolved]:
        """Those who would answer for it: hopefully one."""
        if (chosen := self._models.get(name)) is not None:
            return [self._resolved(name, chosen.upstream, chosen.model or name, chosen)]
        upstream, slash, model = name.partition("/")
        if slash and upstream in self._upstreams and self._may_have(upstream, model):
            return [self._resolved(name, upstream, model)]
        others = [upstream for upstream in self._upstreams if upstream != demo.NAME]
        holders = [upstream for upstream in others if self._listings[upstream].get(name) is not None]
        if not holders and len(others) == 1 and self._listings.untold(others[0]):
            # There is nobody else to ask, and it can't say what it has.
            holders = others
        return [self._resolved(name, upstream, name) for upstream in holders]

    def _may_have(self, upstream: str, model: str) -> bool:
        """It lists the model; or it can't say what it has, and will have to say so when it is asked for it."""
        if upstream == demo.NAME:
            return model in demo.MODELS
        return self._listings[upstream].get(model) is not None or (bool(model) and self._listings.untold(upstream))

    def _resolved(self, name: str, upstream: str, model: str, model_settings: ModelSettings | None = None) -> Resolved:
        listed = self._listings[upstream].get(model)
        return Resolved(
            name=name,
            upstream=upstream,
            settings=self._upstreams[upstream],
            model=model,
            model_settings=model_settings,
            owned_by=None if listed is None else listed.owned_by,
        )

    def _with_fallbacks(self, first: Resolved) -> Resolved:
        """All that follow from its fallbacks and theirs, each once, nearest first."""
        followers: dict[str, Resolved] = {}
        unresolved: list[str] = []
        waiting = _fallbacks(first)
        while waiting:
            name = waiting.pop(0)
            if name in followers or name in unresolved or name == first.name:
                continue
            match self._find(name):
                case [follower]:
                    followers[name] = follower
                    waiting += _fallbacks(follower)
                case _:
                    unresolved.append(name)
        return replace(first, fallbacks=tuple(followers.values()), unresolved=tuple(unresolved))

    # ------------------------------------------------------------------- refusing

    def _not_found(self, name: str, may: May) -> CallerError:
        names = [entry.name for entry in self.entries() if may(entry.name)]
        # Without its upstream, too, which is how one remembers it.
        known = {**{full.partition("/")[2]: full for full in names if "/" in full}, **{full: full for full in names}}
        near = list(dict.fromkeys(known[close] for close in get_close_matches(name, known, n=5)))[:3]
        message = f"There is no model '{name}'."
        if name in self._agents:
            message = f"'{name}' is an agent, and a model is needed here."
        elif near:
            message += f" Did you mean {' or '.join(repr(close) for close in near)}?"
        else:
            message += _shown(names)
        for upstream in self._upstreams:
            if upstream != demo.NAME and self._listings.untold(upstream) and may(f"{upstream}/{name}"):
                failure = self._listings[upstream].failure
                why = f" could not list its models ({failure.rstrip('.')})" if failure else " does not list its models"
                message += f" '{upstream}'{why}: if it has this one, ask for '{upstream}/{name}'."
        return CallerError(message, status=404, code="model_not_found", param="model")


def _fallbacks(resolved: Resolved) -> list[str]:
    return [] if resolved.model_settings is None else list(resolved.model_settings.fallbacks)


def _shown(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _CHOICES_SHOWN} more" if len(names) > _CHOICES_SHOWN else ""
    return f" There are: {', '.join(names[:_CHOICES_SHOWN])}{more}."
