"""Takes the pictures that the README shows, of the page as it is now: `make screenshots`."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, expect, sync_playwright
from tests.page.house import House, Tab, eventually, find_browser, open_simulator

PICTURES: Final = Path(__file__).parent / "pictures"
FALLS_BACK: Final = """
[upstreams.overloaded]
dialect = "chat"
base_url = "{url}/v1"
api_key = "any"
retries = 1
list_models = false
[[models]]
name = "large"
upstream = "overloaded"
model = "sim/status-503"
fallbacks = ["demo/story"]
"""
BEFORE: Final = ("How do glaciers move?", "Two sorting algorithms, side by side", "A walk along the Rhine")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with open_simulator() as simulator_url, tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = find_browser(playwright)
        assert browser is not None, "there is no browser here"
        house = House(Path(folder), simulator_url, FALLS_BACK.format(url=simulator_url))
        try:
            for said in BEFORE:
                house.said("demo/echo", said)
            story = chat(browser, house, "light")
            for scheme in ("light", "dark"):
                kept(browser, house, scheme, story)
            phone(browser, house, story)
            fell_back, group = fallen_back(house), compared(house)
            truth(browser, house, "light", fell_back)
            truth(browser, house, "dark", fell_back)
            compare(browser, house, "light", group)
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


def fallen_back(house: House) -> str:
    """A conversation whose answer came from another model than was asked for, and was stopped."""
    session_id: str = house.post("/api/sessions", {"parameters": {"model": "large"}})["id"]
    said = {"content": "Tell me the story of a river."}
    run_id = house.post(f"/api/sessions/{session_id}/messages", said)["run"]["id"]
    eventually(lambda: len(house.get(f"/api/runs/{run_id}")["text"]) > 900)
    house.post(f"/api/runs/{run_id}/stop", {})
    return session_id


def truth(browser: Browser, house: House, scheme: Literal["light", "dark"], session_id: str) -> None:
    with opened(browser, house, scheme, viewport={"width": 1200, "height": 920}) as tab:
        tab.open(f"#/s/{session_id}")
        tab.answer.get_by_role("button", name="What really happened").click()
        panel = tab.page.get_by_role("dialog")
        expect(panel.locator(".moments")).to_be_visible()
        tab.page.evaluate("document.activeElement.blur()")
        tab.page.mouse.move(0, 0)
        tab.page.wait_for_timeout(300)
        panel.screenshot(path=PICTURES / f"truth-{scheme}.png", caret="hide")


def compared(house: House) -> str:
    said = {"models": ["demo/story", "demo/think", "demo/flaky"], "content": "Where do rivers begin? Cut after 45."}
    group_id: str = house.post("/api/groups", said)["id"]
    return group_id


def compare(browser: Browser, house: House, scheme: Literal["light", "dark"], group_id: str) -> None:
    """One goes on, one is complete, one broke off."""
    with opened(browser, house, scheme) as tab:
        tab.open(f"#/compare/{group_id}")
        expect(tab.page.locator(".badge", has_text="Completed")).to_be_visible(timeout=60_000)
        expect(tab.page.locator(".badge", has_text="Failed")).to_be_visible(timeout=60_000)
        take(tab, "compare")


if __name__ == "__main__":
    main()
