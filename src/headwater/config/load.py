"""Settings from a file, the environment and flags, each over the one before; or all that is wrong with them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from headwater.config.discover import discover, unused
from headwater.config.document import Document, read_document
from headwater.config.environment import lay_over, put, referred_variables
from headwater.config.places import Origins, Place, Problems
from headwater.config.read import Reader
from headwater.config.relations import check_relations
from headwater.config.settings import Settings
from headwater.config.values import check_values
from headwater.errors import ConfigError, Problem

FILE_NAME: Final = "headwater.toml"


class Flag(Struct, frozen=True):
    """A value from the command line; none was given if it is None."""

    name: str
    place: Place
    value: str | int | float | bool | None


class Loaded(Struct, frozen=True):
    settings: Settings
    file: Path | None
    sources: dict[str, str]
    """By key: `headwater.toml:12`, `environment NAME`, `flag --port`, `default`."""
    warnings: tuple[Problem, ...] = ()
    hints: tuple[Problem, ...] = ()
    """Not worth a word each time that the server starts."""


def load(file: Path | None, *, environ: Mapping[str, str], flags: Sequence[Flag] = ()) -> Loaded:
    """Raises `ConfigError` with all that is wrong; only a file that is no TOML keeps the rest from being looked at."""
    document = Document({}, Origins("default", {})) if file is None else read_document(file)
    tree, origins = document.tree, document.origins
    problems = Problems(origins)
    hints: list[Problem] = []
    if "upstreams" in tree:
        hints = unused(environ, referred_variables(tree))
    else:
        discover(tree, environ, origins)
    warnings = lay_over(tree, environ, origins, problems)
    for flag in flags:
        if flag.value is not None:
            put(tree, flag.place, flag.value)
            origins.note(flag.place, f"flag {flag.name}")
    reader = Reader(problems, origins, environ, Path() if file is None else file.parent)
    settings = reader.settings(tree)
    check_values(settings, problems)
    check_relations(settings, problems)
    if found := problems.all():
        raise ConfigError(found)
    return Loaded(settings, file, reader.sources, (*warnings, *problems.warnings), tuple(hints))


def find_file(named: Path | None, *, folder: Path, environ: Mapping[str, str], platform: str) -> Path | None:
    """The file that is to be read: the one that was named, else one in this folder, else the user's."""
    if named is not None:
        return named
    user = user_folder(environ, platform)
    for path in [folder / FILE_NAME, *([user / FILE_NAME] if user else [])]:
        # Not Path.is_file: it raises where a folder may not be looked into.
        if os.path.isfile(path):
            return path
    return None


def user_folder(environ: Mapping[str, str], platform: str) -> Path | None:
    """Where a user's configuration is kept by the custom of the platform (`sys.platform`)."""
    if platform == "win32":
        return Path(environ["APPDATA"], "headwater") if environ.get("APPDATA") else None
    home = environ.get("HOME")
    if platform == "darwin":
        return Path(home, "Library", "Application Support", "headwater") if home else None
    xdg = environ.get("XDG_CONFIG_HOME", "")
    # One that is relative is to be ignored, says its specification.
    if os.path.isabs(xdg):
        return Path(xdg, "headwater")
    return Path(home, ".config", "headwater") if home else None
