"""What a shell completes, and the pages and scripts that are made from the commands."""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from docs.cli_page import cli_page

from headwater.cli import exits
from tests.cli.conftest import House
from tests.cli.terminal import OTHER, PATIENCE_S, terminal_of

ROOT = Path(__file__).parent.parent.parent


def completed(house: House, *words: str) -> list[str]:
    """As bash asks for the last of these words."""
    environ = {
        "_HEADWATER_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(("headwater", *words)),
        "COMP_CWORD": str(len(words)),
    }
    return house.run(environ=environ)[1].split()


def known(house: House, *words: str) -> list[str]:
    """As often as it takes: what the server does not say within two seconds is left out, and a machine may be busy."""
    until_s = time.monotonic() + PATIENCE_S
    while not (found := completed(house, *words)):
        assert time.monotonic() < until_s
    return found


def test_conversations_and_runs_are_completed(house: House) -> None:
    house.run("chat", "--session", "river", "-m", "demo/echo", "?")
    assert known(house, "chat", "--session", "riv") == ["river"]
    [run] = known(house, "attach", "run_")
    assert run.startswith("run_")


def test_without_a_server_nothing_is_completed_and_none_is_started(empty: House) -> None:
    assert completed(empty, "chat", "-m", "demo/st") == []
    assert not (empty.folder / "headwater.db").exists()


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'PS1="rea""dy> "; eval "$(headwater completion bash)"\r'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'PS1="rea""dy> "; autoload -Uz compinit; compinit -u -D; eval "$(headwater completion zsh)"\r',
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        "headwater completion fish | source; function fish_prompt; echo -n rea'dy> '; end\r",
    ),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_completes_commands_options_and_what_the_server_knows(
    house: House, shell: str, tmp_path: Path
) -> None:
    """A real one, at a real terminal, with its own script."""
    if shutil.which(shell) is None:
        assert shell != "bash"
        pytest.skip(f"NOT TESTED: completion in {shell}, which is not installed here")
    (tmp_path / "headwater").write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'from headwater.cli import main; main()' \"$@\"\n"
    )
    (tmp_path / "headwater").chmod(0o755)
    environ = {**house.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    command, prepared = SHELLS[shell]
    with terminal_of([*OTHER, *command], environ, columns=100) as seen:
        seen.type(prepared)
        seen.wait_for("ready>")
        for typed, wanted in [
            ("headwater att", "headwater attach"),
            ("headwater chat --rea", "headwater chat --reasoning"),
            ("headwater chat -m demo/sto", "headwater chat -m demo/story"),
        ]:
            seen.type(typed)
            seen.wait_for(typed)
            until_s = time.monotonic() + PATIENCE_S
            seen.type("\t")
            # Again, for the reason that is told in `known`.
            while not seen.sees(wanted, within_s=10):
                assert time.monotonic() < until_s, seen.text()
                seen.type("\t")
            seen.type("\x15")


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_is_answered_in_its_own_way(house: House, shell: str) -> None:
    """Also where that shell is not installed."""
    code, script, _ = house.run("completion", shell)
    assert (code, f"complete_{shell}" in script) == (0, True)
    environ = {
        "_HEADWATER_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "headwater att",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "headwater att",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    assert "attach" in house.run(environ=environ)[1]


def test_the_page_is_as_the_commands_are() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert page == cli_page(), "run `make docs`"
    for code in exits.MEANINGS:
        assert f"| {code} |" in page
