"""For everyone: by keyboard alone, with a screen reader, on a phone, in the dark, signed in."""

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.page.axe import violations
from tests.page.house import SAFETY_MS, House, Tab

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src/headwater/server/page"


def a_story(house: House) -> str:
    session_id = house.said("thinker", "Think first")
    run = house.post(f"/api/sessions/{session_id}/messages", {"content": "A torn tool call", "model": "demo/flaky"})
    house.wait_for_outcome(run["run"]["id"])
    return session_id


def test_axe_finds_nothing_on_any_view(tab: Tab, house: House) -> None:
    page = tab.page
    expect(page.locator(".tries button").first).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name=re.compile("^Model:")).click()
    expect(page.get_by_role("option").first).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    tab.open(f"#/s/{a_story(house)}")
    expect(tab.answers).to_have_count(2)
    tab.answer.locator(".tool summary").click()
    tab.answers.first.locator(".thought summary").click()
    assert violations(page) == []
    page.get_by_role("button", name="Answer again").last.click()
    expect(page.get_by_role("menu")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Conversation settings").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    tab.ask("Go", "slow")
    tab.wait_for_words(3)
    tab.message.fill("waits")
    tab.message.press("Enter")
    expect(page.locator(".queue-text")).to_be_visible()
    assert violations(page) == []
    tab.stop.click()
    expect(page.get_by_text("Paused")).to_be_visible()
    page.get_by_role("button", name="Remove from the queue").click()
    page.get_by_label("Search all conversations").fill("think")
    expect(page.locator(".hit").first).to_be_visible()
    assert violations(page) == []
    tab.open("#/s/not-there")
    expect(page.get_by_role("heading", name="There is no such conversation")).to_be_visible()
    assert violations(page) == []


def test_all_of_a_conversation_by_keyboard_alone(tab: Tab) -> None:
    page = tab.page
    expect(tab.message).to_be_focused()
    press(page, "Shift+Tab", lambda: focused(page) == "Message", until=False)
    page.get_by_role("button", name=re.compile("^Model:")).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Find a model")).to_be_focused()
    page.keyboard.type("slow")
    expect(page.get_by_role("option")).to_have_text(["slow"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Model: slow")).to_be_focused()
    page.keyboard.press("Control+Shift+o")
    tab.message.focus()
    page.keyboard.type("Go on then")
    page.keyboard.press("Enter")
    tab.wait_for_words(5)
    expect(tab.message).to_be_focused()
    page.keyboard.press("Escape")
    expect(tab.answer.locator(".ending")).to_be_visible()
    # Continue is reached by going back from the composer.
    expect(tab.answer.get_by_role("button", name="Continue")).to_be_visible()
    press(page, "Shift+Tab", lambda: page.evaluate("document.activeElement.textContent").strip() == "Continue")
    page.keyboard.press("Enter")
    expect(tab.answers).to_have_count(2)
    page.keyboard.press("Escape")
    expect(tab.answer.locator(".ending")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("then")
    expect(page.locator(".hit").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".hit")).to_have_count(0)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('aria-label') ?? ''"))


def press(page: Page, key: str, condition: Callable[[], bool], *, until: bool = True) -> None:
    for _ in range(60):
        page.keyboard.press(key)
        if condition() == until:
            return
    raise AssertionError(f"{key} never got there")


def test_a_screen_reader_hears_how_it_ended_and_not_every_token(tab: Tab) -> None:
    page = tab.page
    page.evaluate(
        """() => {
            globalThis.heard = [];
            const region = document.querySelector('p[role=status]');
            new MutationObserver(() => heard.push(region.textContent)).observe(region, {subtree: true, childList: true, characterData: true});
        }"""
    )
    tab.ask("Go", "steady")
    tab.wait_for_end()
    expect(page.locator("p[role=status]")).to_have_text("The answer is complete.")
    assert len(page.evaluate("heard")) <= 2
    assert page.locator("[aria-live]:not([aria-live=off]), [role=log]").count() == 0


def test_on_a_phone_targets_are_large_nothing_is_cut_off_and_the_list_is_a_drawer(
    browser: Browser, house: House
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    context.set_default_timeout(SAFETY_MS)
    tab = Tab(context.new_page(), house).open(f"#/s/{a_story(house)}")
    page = tab.page
    expect(tab.answers).to_have_count(2)
    expect(page.get_by_role("navigation")).not_to_be_visible()
    small = """() => [...document.querySelectorAll('.main button, .main a[href], .main summary, .main textarea')]
        .filter((e) => e.offsetParent && !e.closest('.md'))
        .map((e) => [e.getAttribute('aria-label') ?? e.textContent, e.getBoundingClientRect()])
        .filter(([, r]) => r.height < 44 || r.width < 44).map(([name, r]) => `${name} ${r.width}×${r.height}`)"""
    # The text field is as high as its words, inside a larger area that takes the tap.
    assert [one for one in page.evaluate(small) if not one.startswith("Message ")] == []
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    page.get_by_role("button", name="Conversations").tap()
    expect(page.get_by_role("navigation")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("link", name="New chat").tap()
    expect(page.get_by_role("navigation")).not_to_be_visible()
    assert violations(page) == []
    context.close()


def test_less_motion_where_it_is_asked_for(tab: Tab) -> None:
    tab.ask("Go", "slow")
    tab.wait_for_words(3)
    moving = "document.getAnimations().length"
    assert tab.page.evaluate(moving) == 0
    tab.page.emulate_media(reduced_motion="no-preference")
    tab.until(lambda: tab.page.evaluate(moving) > 0)
    tab.stop.click()


# ------------------------------------------------------------------------ keys


@pytest.fixture
def locked(simulator_url: str, tmp_path: Path) -> Iterator[House]:
    key = f'[[server.keys]]\nowner = "ann"\nkey = "{"k" * 24}"\n'
    house = House(tmp_path, simulator_url, key)
    yield house
    house.close()


def test_where_keys_are_set_one_signs_in_and_out(context: BrowserContext, locked: House) -> None:
    page = context.new_page()
    page.goto(locked.url)
    expect(page.get_by_label("Key", exact=True)).to_be_focused()
    assert violations(page) == []
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not known")
    page.get_by_label("Key", exact=True).fill("k" * 24)
    page.keyboard.press("Enter")
    tab = Tab(page, locked)
    tab.ask("Go", "quick")
    tab.wait_for_end()
    assert page.evaluate("document.cookie") == ""
    page.reload()
    expect(tab.answer).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Key", exact=True)).to_be_visible()


# ------------------------------------------------------------------------ weight


def test_less_than_100_kb_of_script_before_the_first_message(house: House, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    scripts: list[str] = []
    page.on("request", lambda asked: scripts.append(asked.url) if asked.resource_type == "script" else None)
    page.goto(house.url)
    expect(page.locator(".tries button").first).to_be_visible()
    files = [BUILT / "assets" / url.rpartition("/")[2] for url in scripts]
    assert 0 < sum(len(gzip.compress(file.read_bytes())) for file in files) < 100_000
    context.close()


def test_something_is_painted_before_any_script_has_come(house: House, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(house.url)
    expect(page.get_by_text("Opening Headwater")).to_be_visible()
    context.close()
