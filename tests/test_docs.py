"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_readmes_example_prints_what_it_says() -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code is not None
    printed = subprocess.run([sys.executable, "-c", code[1]], capture_output=True, text=True, check=True).stdout
    promised = re.findall(r"^print.*\n# (.*)$", code[1], re.MULTILINE)
    assert len(promised) == 2
    for line, promise in zip(printed.splitlines(), promised, strict=True):
        assert line.startswith(promise.removesuffix("…)"))


def test_links_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
