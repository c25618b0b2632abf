"""How an upstream is asked for a model: what the user has set, else what the table of providers knows.

Pure look-ups. What is known of some models goes before what is known of all of a provider's.
"""

import re
from urllib.parse import urlsplit

from headwater.config.settings import ModelSettings, UpstreamSettings
from headwater.conversation import Target
from headwater.errors import HeadwaterError
from headwater.policy import Prefill
from headwater.upstream.catalog import Resolved
from headwater.upstream.endpoint import Endpoint, Route
from headwater.upstream.providers import ANTHROPIC_VERSION, GENERIC, NAMES, PROVIDERS, ModelRule, Provider


def provider_of(settings: UpstreamSettings, owned_by: str | None = None) -> Provider:
    """By its name, else by its address, else by what its list of models says of them."""
    if settings.provider is not None:
        if settings.provider not in NAMES:
            raise HeadwaterError(f"provider '{settings.provider}' is not known; there are: {', '.join(NAMES)}")
        return NAMES[settings.provider]
    base = urlsplit(settings.base_url)
    for provider in PROVIDERS:
        if _is_host_of(provider, base.hostname or "") and base.path.startswith(provider.path):
            return provider
    for provider in PROVIDERS:
        at_its_port = provider.port is not None and provider.port == base.port
        if at_its_port or (owned_by is not None and provider.owned_by == owned_by):
            return provider
    return GENERIC


def _is_host_of(provider: Provider, host: str) -> bool:
    return any(host == known or host.endswith("." + known) for known in provider.hosts)


def rule_of(provider: Provider, model: str) -> ModelRule | None:
    return next((rule for rule in provider.rules if re.search(rule.models, model, re.IGNORECASE)), None)


def target(
    settings: UpstreamSettings,
    model_settings: ModelSettings | None,
    model: str,
    *,
    origin: str,
    stream: bool = True,
    owned_by: str | None = None,
) -> Target:
    """What a request for this model is written for. `origin` is the upstream's name."""
    provider = provider_of(settings, owned_by)
    rule = rule_of(provider, model)
    limit = (model_settings and model_settings.max_tokens) or (rule and rule.default_max_tokens)
    return Target(
        model=model,
        origin=origin,
        stream=stream,
        max_tokens_field=provider.max_tokens_field,
        reasoning_field=provider.reasoning_field,
        thinking=(model_settings and model_settings.thinking) or (rule and rule.thinking) or provider.thinking,
        omit=provider.omit | frozenset(settings.omit) | (rule.omit if rule else frozenset()),
        **({"default_max_tokens": limit} if limit else {}),
    )


def prefill_of(
    settings: UpstreamSettings, model_settings: ModelSettings | None, model: str, owned_by: str | None = None
) -> Prefill:
    """Whether, and how, this model can be made to go on with an answer."""
    provider = provider_of(settings, owned_by)
    rule = rule_of(provider, model)
    chosen = (model_settings and model_settings.prefill) or settings.prefill
    return chosen or (rule and rule.prefill) or provider.prefill


def route(endpoint: Endpoint, resolved: Resolved) -> Route:
    """What a model's name stands for, as a turn asks it."""
    settings, named, model = resolved.settings, resolved.model_settings, resolved.model
    return Route(
        endpoint=endpoint,
        model=model,
        target=target(settings, named, model, origin=resolved.upstream, owned_by=resolved.owned_by),
        prefill=prefill_of(settings, named, model, resolved.owned_by),
        prefix_flag=provider_of(settings, resolved.owned_by).prefix_flag,
    )


def needs_finish_reason(settings: UpstreamSettings, owned_by: str | None = None) -> bool:
    needs = settings.needs_finish_reason
    return provider_of(settings, owned_by).needs_finish_reason if needs is None else needs


# ----------------------------------------------------------------------- the request


def address(settings: UpstreamSettings, path: str) -> str:
    """Where one of `PATHS` is found, or `MODELS_PATH`."""
    base = settings.base_url.rstrip("/")
    if not urlsplit(base).path:
        base += provider_of(settings).root
    elif settings.dialect == "messages" and not base.endswith("/v1"):
        # As Anthropic's own clients have it: their base address is without the version.
        base += "/v1"
    return base + path


def headers(settings: UpstreamSettings, key: str | None) -> dict[str, str]:
    """What every request to it carries; the user's own headers go before ours."""
    auth = provider_of(settings).auth or ("x-api-key" if settings.dialect == "messages" else "bearer")
    found: dict[str, str] = {}
    if settings.dialect == "messages":
        found["anthropic-version"] = ANTHROPIC_VERSION
    if key is not None and auth == "bearer":
        found["authorization"] = f"Bearer {key}"
    elif key is not None and auth == "x-api-key":
        found["x-api-key"] = key
    return found | {name.lower(): value.reveal() for name, value in settings.headers.items()}
