"""The `headwater` command as a process of its own, that knows nothing of this machine's configuration."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

NOTHING_HERE = Path(__file__).parent / "wire"
"""A folder without configuration."""


def start(
    *arguments: str,
    folder: Path = NOTHING_HERE,
    environ: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stderr: int | IO[str] = subprocess.PIPE,
) -> subprocess.Popen[str]:
    """What lives long and logs needs a file for `stderr`: a pipe that nobody reads gets full, and blocks it."""
    command = [sys.executable, "-c", "from headwater.cli import main; main()", *arguments]
    # Paths in it may be relative to where the tests were started.
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "HOME": str(NOTHING_HERE), **(environ or {})}
    # Nothing is left behind; a test that wants a file says which.
    variables.setdefault("HEADWATER_STORE__URL", "memory:")
    return subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=folder, env=variables
    )


def finished(
    *arguments: str, folder: Path = NOTHING_HERE, environ: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Its exit code, and what it wrote."""
    with start(*arguments, folder=folder, environ=environ) as process:
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err
