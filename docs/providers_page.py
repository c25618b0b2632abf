"""The page on providers, from their table."""

import msgspec

from headwater.upstream.providers import ANTHROPIC_VERSION, PROVIDERS, ModelRule, PrefixFlag, Provider

PAGE = """\
# Providers

<!-- Made from src/headwater/upstream/providers.py by `make docs`; a test keeps it so. -->

An upstream is a dialect and an address; most need nothing else. What a provider does otherwise than others is in one table: it is
recognised by its address, or by what its list of models says, or named in the configuration:

```toml
[upstreams.mine]
dialect = "chat"
base_url = "http://gpu.example.com:8000/v1"
provider = "vllm"
```

An address without a path gets the one in the table. What you set yourself (`prefill`, `needs_finish_reason`, `omit` of an upstream;
`prefill`, `thinking`, `max_tokens` of a model) goes before all that is said here.

| provider | `provider =` | recognised by | path | key |
|---|---|---|---|---|
{known}

*The dialect's own*: `Authorization: Bearer` for chat and responses; `x-api-key`, and `anthropic-version: {version}`, for messages.

## What they take

*Limit*: the name of the limit of tokens (chat). *Reasoning*: where a model's earlier reasoning goes back to it (chat). *Left out*: fields
that it refuses; where a client had asked for one, that is noted. *Going on*: how it is made to go on with an answer that was cut.

| provider | limit | reasoning | left out | going on |
|---|---|---|---|---|
{taken}

Where it can't be made to go on, a cut answer is continued in a new turn, with an instruction.

## By model

The first row that fits is the one.

| provider | models | left out | going on | thinking (messages) |
|---|---|---|---|---|
{models}

## Oddities

{oddities}
"""


def providers_page() -> str:
    rules = {rule.models: rule for provider in PROVIDERS for rule in provider.rules}
    return PAGE.format(
        version=ANTHROPIC_VERSION,
        known="\n".join(map(_known_row, PROVIDERS)),
        taken="\n".join(map(_taken_row, PROVIDERS)),
        models="\n".join(_model_row(rule) for rule in rules.values()),
        oddities="\n".join(
            f"- **{provider.title}**: {oddity}" for provider in PROVIDERS for oddity in provider.oddities
        ),
    )


def _known_row(provider: Provider) -> str:
    signs = [f"`{host}{provider.path}`" for host in provider.hosts]
    signs += [f"port {provider.port}"] if provider.port else []
    signs += [f"`owned_by: {provider.owned_by}`"] if provider.owned_by else []
    auth = {"bearer": "`Authorization: Bearer`", "x-api-key": "`x-api-key`", "none": "none", None: "the dialect's own"}
    return f"| {provider.title} | `{provider.name}` | {', '.join(signs) or '–'} | `{provider.root}` | {auth[provider.auth]} |"


def _taken_row(provider: Provider) -> str:
    cells = [
        provider.title,
        f"`{provider.max_tokens_field}`",
        f"`{provider.reasoning_field}`" if provider.reasoning_field else "–",
        _fields(provider.omit),
        _going_on(provider.prefill, provider.prefix_flag),
    ]
    return f"| {' | '.join(cells)} |"


def _model_row(rule: ModelRule) -> str:
    holders = [provider.title for provider in PROVIDERS if rule in provider.rules]
    going_on = "–" if rule.prefill is None else _going_on(rule.prefill, PrefixFlag())
    cells = [", ".join(holders), rule.about, _fields(rule.omit), going_on, rule.thinking or "–"]
    return f"| {' | '.join(cells)} |"


def _fields(names: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "–"


def _going_on(prefill: str, flag: PrefixFlag) -> str:
    match prefill:
        case "assistant":
            return "by a last message of its own"
        case "prefix_flag":
            marks = [f"`{name}: {_json(value)}`" for name, value in (flag.message | flag.body).items()]
            return f"by a last message of its own and {', '.join(marks)}"
        case _:
            return "–"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
