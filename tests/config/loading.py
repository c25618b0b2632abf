"""Settings from a text, as if it were the file `headwater.toml`."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from headwater.config.load import Flag, Loaded, load
from headwater.errors import ConfigError


def loaded(text: str | bytes | None = None, environ: Mapping[str, str] | None = None, *flags: Flag) -> Loaded:
    """The file is gone by then; its name stays in the sources."""
    if text is None:
        return load(None, environ=environ or {}, flags=flags)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "headwater.toml")
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load(file, environ=environ or {}, flags=flags)


def problems(text: str | bytes | None = None, environ: Mapping[str, str] | None = None, *flags: Flag) -> list[str]:
    """What is wrong, each in one line, with files as their last part."""
    try:
        loaded(text, environ, *flags)
    except ConfigError as error:
        return [_short(str(problem)) for problem in error.problems]
    return []


def one_problem(text: str | bytes | None = None, environ: Mapping[str, str] | None = None, *flags: Flag) -> str:
    [problem] = problems(text, environ, *flags)
    return problem


def source(from_: Loaded, key: str) -> str:
    return _short(from_.sources[key])


def _short(text: str) -> str:
    folder, name, rest = text.partition("headwater.toml")
    return f"{name}{rest}" if name and folder.startswith("/") else text


def upstream(name: str = "up", **values: object) -> str:
    """The lines of an upstream that is right, and whatever else is given."""
    lines = [
        f"[upstreams.{name}]",
        'base_url = "http://127.0.0.1:1/v1"',
        *(f"{key} = {v}" for key, v in values.items()),
    ]
    return "\n".join(lines) + "\n"
