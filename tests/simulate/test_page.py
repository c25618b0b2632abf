"""What docs/simulate.md says is so: its examples run, its scripts load, and it leaves out no word."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

from headwater.simulate.load import load_scenario
from headwater.simulate.names import FAULTS, WORDS
from headwater.simulate.script import POINTS, Answer, Fault

PAGE = (Path(__file__).parent.parent.parent / "docs" / "simulate.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_tests_in_it_pass(tmp_path: Path) -> None:
    (code,) = blocks("python")
    example = tmp_path / "test_example.py"
    example.write_text(code)
    apart = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", *apart, str(example)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "4 passed" in ran.stdout, ran.stdout + ran.stderr


def test_the_scripts_in_it_load() -> None:
    for script in blocks("toml"):
        assert load_scenario(script).models


def test_every_word_key_kind_and_point_is_in_it() -> None:
    for word in WORDS:
        assert f"`{word.form}`" in PAGE
    for name in (
        *FAULTS,
        *POINTS,
        *Answer.__struct_fields__,
        *(fault.__struct_config__.tag for fault in get_args(Fault)),
    ):
        assert re.search(rf"\b{name}\b", PAGE), name
