"""What a shell completes, and the pages and scripts that are made from the commands."""

import subprocess
from pathlib import Path

import pytest
from docs.cli_page import cli_page

from headwater.cli import exits
from tests.cli.conftest import House

ROOT = Path(__file__).parent.parent.parent


def completed(house: House, *words: str) -> list[str]:
    """As bash asks for the last of these words."""
    environ = {
        "_HEADWATER_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(("headwater", *words)),
        "COMP_CWORD": str(len(words)),
    }
    return house.run(environ=environ)[1].split()


def test_commands_options_models_and_runs_are_completed(house: House) -> None:
    assert completed(house, "att") == ["attach"]
    assert "--session" in completed(house, "chat", "--s")
    assert completed(house, "chat", "-m", "demo/st") == ["demo/story"]
    house.run("chat", "--session", "river", "-m", "demo/echo", "?")
    assert completed(house, "chat", "--session", "riv") == ["river"]
    [run] = completed(house, "attach", "run_")
    assert run.startswith("run_")


def test_without_a_server_nothing_is_completed_and_none_is_started(empty: House) -> None:
    assert completed(empty, "chat", "-m", "demo/st") == []
    assert not (empty.folder / "headwater.db").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(house: House, shell: str) -> None:
    code, out, _ = house.run("completion", shell)
    assert code == 0
    assert f"complete_{shell}" in out
    assert "_HEADWATER_COMPLETE" in out


def test_bash_takes_its_script(house: House) -> None:
    _, script, _ = house.run("completion", "bash")
    done = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p headwater"], capture_output=True, text=True, timeout=30
    )
    assert "_headwater_completion" in done.stdout


def test_the_page_is_as_the_commands_are() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert page == cli_page(), "run `make docs`"
    for code in exits.MEANINGS:
        assert f"| {code} |" in page
