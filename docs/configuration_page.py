"""docs/configuration.md: what can be set, from the settings' own types."""

from collections.abc import Iterator
from typing import Any

from headwater.config.places import quoted
from headwater.config.schema import Items, Key, Kind, Map, Table, is_value, schema, words
from headwater.config.secret import Secret

PAGE = """\
# Configuration

<!-- Made from src/headwater/config/settings.py by `make docs`; a test keeps it so. -->

Nothing has to be set: with no file, Headwater serves on 127.0.0.1:8790 what it finds in the environment (below). All else is in
`headwater.toml`. [headwater.example.toml](../headwater.example.toml) has every section, to copy from.

```sh
headwater config show    # every value, and where it comes from; secrets masked; --json for programs
headwater config check   # all that is wrong, with line and fix; exit code 0 or 2
```

## Where a value comes from

The later ones win:

1. the default, as listed below;
2. **the file**: the one that `--config` names, else `./headwater.toml`, else the one in your configuration folder
   (`$XDG_CONFIG_HOME/headwater` or `~/.config/headwater`; on macOS `~/Library/Application Support/headwater`; on Windows
   `%APPDATA%\\headwater`). One file is read, never two;
3. **the environment**: `HEADWATER_` and the key, its parts joined by two underscores;
4. **flags**, such as `--port`.

| to set | the variable |
|---|---|
| `port` of `[server]` | `HEADWATER_SERVER__PORT=9000` |
| a list | `HEADWATER_SERVER__ALLOWED_HOSTS=a.example,b.example`, or as JSON: `["a.example", "b.example"]` |
| `retries` of `[upstreams.my-vllm]` | `HEADWATER_UPSTREAMS__MY_VLLM__RETRIES=5`: names in the file are found with `_` for what a variable can't have; a new name is in small letters |
| the first of `[[models]]` | `HEADWATER_MODELS__0__MODEL=gpt-5-mini` |
| a table, or a list of tables, as a whole | JSON: `HEADWATER_MODELS='[{{"name": "fast", "upstream": "openai"}}]'` |

An empty variable counts as none. A variable with `__` that leads to no key is an error; other `HEADWATER_…` variables are left alone.

## Secrets

Keys, headers, variables for tools and the addresses of stores and tools may be given as they are, or by reference:

- `"env:NAME"`: the variable `NAME`, which has to be set;
- `"file:PATH"`: a file that holds the secret alone. A relative path begins at the folder of the configuration.

No secret is shown by `headwater config show`, in an error or in a log. A `base_url` with a password in it is refused.

## With no upstreams in the file

The variables that other programs use each make an upstream, and its models are listed from there:

| variable | upstream | dialect | address |
|---|---|---|---|
| `OPENAI_API_KEY` | `openai` | chat, which all that stands behind an `OPENAI_BASE_URL` speaks | `OPENAI_BASE_URL`, else OpenAI's |
| `ANTHROPIC_API_KEY` | `anthropic` | messages | `ANTHROPIC_BASE_URL` (`/v1` is added), else Anthropic's |
| `OLLAMA_HOST` | `ollama` | chat | in any form that Ollama takes: `box`, `box:1234`, `https://box`; one that stands for all addresses (`0.0.0.0`) is asked at this machine |

A file that has `[upstreams]` (if only an empty one) says all that there is: then these variables count only where it refers to them,
and `headwater config check` gives a hint of those that are not used.

## What is checked

All at once, not the first error only, each with its line (or variable, or flag), key and fix: unknown keys, types and ranges;
that a model's upstream exists, and that fallbacks go in no circles; that an agent has either `model` or `python`, its tools are under
`[mcp]`, and each pattern of `approve` fits one of them; that names are there once; that addresses are addresses. `demo` is the
name of the built-in upstream and can't be taken. A `default_model`, a fallback or an agent's `model`
may be one of `[[models]]`, or `UPSTREAM/MODEL`; another name is a warning as long as some upstream may list it, else an error.

## The keys

{keys}
"""


def configuration_page() -> str:
    return PAGE.format(keys="\n\n".join(_section(header, table) for header, table in _tables(schema(), "")))


def _tables(kind: Kind, header: str) -> Iterator[tuple[str, Table]]:
    """Every table that has values of its own, and how its header is written."""
    match kind:
        case Table(keys=keys):
            if any(is_value(key.kind) for key in keys):
                yield header if header.startswith("[") else f"[{header}]", kind
            for key in keys:
                if not is_value(key.kind):
                    yield from _tables(key.kind, f"{header.strip('[]')}.{key.name}".strip("."))
        case Map(value=value):
            yield from _tables(value, f"{header}.NAME")
        case Items(item=item):
            yield from _tables(item, f"[[{header}]]")
        case _:
            raise AssertionError("only tables have tables in them")


def _section(header: str, table: Table) -> str:
    rows = "\n".join(_row(key) for key in table.keys if is_value(key.kind))
    about = (table.cls.__doc__ or "").strip()
    return f"### `{header}`\n\n{about}\n\n| key | what | default | |\n|---|---|---|---|\n{rows}"


def _row(key: Key) -> str:
    default = "**needed**" if key.required else _default(key.default)
    return f"| `{key.name}` | {words(key.kind)} | {default} | {key.about} |"


def _default(value: Any) -> str:
    match value:
        case None:
            return "not set"
        case bool():
            return f"`{str(value).lower()}`"
        case Secret():
            return f"`{quoted(value.shown())}`"
        case str():
            return f"`{quoted(value)}`"
        case int():
            return f"`{value:_}`" if value >= 10_000 else f"`{value}`"
        case float():
            return f"`{value:g}`" if value < 10_000 else f"`{int(value):_}`"
        case dict():
            return "`{}`"
        case _:
            return f"`[{', '.join(map(quoted, value))}]`"
