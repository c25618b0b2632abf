"""Takes the pictures that the README shows, of the page as it is now: `make screenshots`."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, expect, sync_playwright
from tests.page.house import House, Tab, find_browser, open_simulator

PICTURES: Final = Path(__file__).parent / "pictures"
BEFORE: Final = ("How do glaciers move?", "Two sorting algorithms, side by side", "A walk along the Rhine")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with open_simulator() as simulator_url, tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = find_browser(playwright)
        assert browser is not None, "there is no browser here"
        house = House(Path(folder), simulator_url)
        try:
            for said in BEFORE:
                house.said("demo/echo", said)
            story = chat(browser, house, "light")
            for scheme in ("light", "dark"):
                kept(browser, house, scheme, story)
            phone(browser, house, story)
        finally:
            browser.close()
            house.close()


@contextmanager
def opened(browser: Browser, house: House, scheme: Literal["light", "dark"] = "light", **more: Any) -> Iterator[Tab]:
    size = {"viewport": {"width": 1200, "height": 760}, **more}
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce", **size)
    context.set_default_timeout(60_000)
    yield Tab(context.new_page(), house)
    context.close()


def take(tab: Tab, name: str) -> None:
    # Pointers and carets are nobody's business.
    tab.page.mouse.move(0, 0)
    tab.page.wait_for_timeout(300)
    tab.page.screenshot(path=PICTURES / f"{name}.png", caret="hide")


def chat(browser: Browser, house: House, scheme: Literal["light", "dark"]) -> str:
    """An answer on its way, with the next message waiting; then it is stopped."""
    with opened(browser, house, scheme) as tab:
        tab.open().ask("Tell me the story of a river.", "demo/story")
        expect(tab.answer.locator("table tr").nth(3)).to_be_visible(timeout=60_000)
        tab.message.fill("And one of a lake")
        tab.message.press("Enter")
        expect(tab.page.locator(".queue-text")).to_be_visible()
        take(tab, "streaming")
        tab.stop.click()
        expect(tab.answer.locator(".ending")).to_be_visible()
        tab.page.get_by_role("button", name="Remove from the queue").click()
        expect(tab.page.locator(".queue")).to_have_count(0)
        return tab.session_id


def kept(browser: Browser, house: House, scheme: Literal["light", "dark"], session_id: str) -> None:
    """What a stop leaves, and the ways on from there."""
    with opened(browser, house, scheme) as tab:
        tab.open(f"#/s/{session_id}")
        expect(tab.answer.locator(".ending")).to_be_visible()
        take(tab, f"stopped-{scheme}")


def phone(browser: Browser, house: House, session_id: str) -> None:
    small = {
        "viewport": {"width": 390, "height": 760},
        "has_touch": True,
        "is_mobile": True,
        "device_scale_factor": 1.5,
    }
    with opened(browser, house, "light", **small) as tab:
        tab.open(f"#/s/{session_id}")
        expect(tab.answer.locator(".ending")).to_be_visible()
        take(tab, "phone")


if __name__ == "__main__":
    main()
