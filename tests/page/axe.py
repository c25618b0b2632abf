"""What axe finds on a page."""

from pathlib import Path
from typing import Final

from playwright.sync_api import Page

SCRIPT: Final = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
_RUN: Final = """(rules) => axe.run(document, {resultTypes: ['violations'], ...(rules ? {runOnly: rules} : {})})
    .then((all) => all.violations)"""


def violations(page: Page) -> list[str]:
    """By the first element that has it; in the light, and as far as colours go also in the dark."""
    # By the debugger, around the page's policy.
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(SCRIPT.read_text())
    # Nothing is on its way from one colour to the other.
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found = page.evaluate(_RUN, None)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    found += page.evaluate(_RUN, ["color-contrast"])
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}" for one in found]
