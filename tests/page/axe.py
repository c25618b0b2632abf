"""What axe finds on a page."""

from pathlib import Path
from typing import Final

from playwright.sync_api import Page

SCRIPT: Final = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"


def violations(page: Page) -> list[str]:
    """By the first element that has it. Its script comes by the debugger, around the page's policy."""
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(SCRIPT.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then((all) => all.violations)")
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}" for one in found]
