"""`env:NAME` and `file:PATH`: secrets that stand elsewhere.

A fault names the variable or the file, and nothing that could be the secret itself.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headwater.config.places import Fault, quoted

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def resolve(reference: str, environ: Mapping[str, str], folder: Path) -> str | Fault | None:
    """What it stands for; None if this is no reference. The path of a file is relative to `folder`."""
    scheme, _, target = reference.partition(":")
    if scheme == "env":
        return _variable(target, environ)
    if scheme == "file":
        return _file(target, folder)
    return None


def _variable(name: str, environ: Mapping[str, str]) -> str | Fault:
    if not _VARIABLE.fullmatch(name):
        # Not repeated: it may be the secret itself.
        return Fault("has no name of a variable after env:.", "Write it like env:OPENAI_API_KEY.")
    return environ.get(name) or Fault(f"the variable {name} is not set.", "Set it, or take this key out.")


def _file(name: str, folder: Path) -> str | Fault:
    what = f"the file {quoted(name)}"
    try:
        text = (folder / Path(name).expanduser()).read_text("utf-8").strip()
    except OSError as error:
        return Fault(f"{what} can't be read: {error.strerror}.", "Is its path right?")
    except (ValueError, RuntimeError):
        # No UTF-8; no name of a file; a ~ of nobody's.
        return Fault(f"{what} holds no text.", "It has to be UTF-8 with the secret alone.")
    return text or Fault(f"{what} is empty.", "It has to hold the secret alone.")
